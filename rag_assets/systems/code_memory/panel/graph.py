"""A walk as a picture: nodes in columns by distance from the start, drawn without a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.systems.code_memory.outlines import shown_name
from rag_assets.systems.code_memory.retrieval.nodes import Node
from rag_assets.systems.code_memory.retrieval.walk import Walk

_MOST_IN_A_COLUMN: Final = 14
_COLUMN: Final = 270
_ROW: Final = 56
_BOX: Final = (220, 42)
_MARGIN: Final = 10
_LONGEST: Final = 30


@dataclass(frozen=True, slots=True)
class Box:
    """A node of the picture, in pixels from the picture's upper left corner.

    Attributes:
        name: the name of the node; label: its shown name, shortened if it is long.
        about: its type, and its relation to the node before it.
        first: whether the walk started at it.
    """

    name: str
    label: str
    about: str
    x: int
    y: int
    width: int
    height: int
    first: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A relation of the picture.

    Attributes:
        path: an SVG path.
        title: the relation in words.
    """

    path: str
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture.

    Attributes:
        left_out: number of nodes for which there was no room.
    """

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int
    left_out: int


def picture_of(walk: Walk, roots: Sequence[str]) -> Picture:
    """Return the picture of a walk.

    Nodes whose relations lead to a node are on its left; the targets of its relations are on its
    right.

    Args:
        walk: the finished walk.
        roots: names of the nodes at which it started.
    """
    steps, kinds = _steps(walk, roots)
    columns: dict[int, list[Node]] = {}
    # Several repositories may each have a node with the same name.
    distinct = {node.name: node for node in walk.nodes}
    for node in distinct.values():
        columns.setdefault(steps.get(node.name, 0), []).append(node)
    shown = {step: nodes[:_MOST_IN_A_COLUMN] for step, nodes in columns.items()}
    tallest = max((len(nodes) for nodes in shown.values()), default=0)
    lowest = min(shown, default=0)
    boxes: dict[str, Box] = {}
    for step, nodes in shown.items():
        top = (tallest - len(nodes)) * _ROW // 2 + _MARGIN
        for row, node in enumerate(nodes):
            about = " · ".join(
                filter(None, (node.source_type.replace("_", " "), kinds.get(node.name)))
            )
            boxes[node.name] = Box(
                *(node.name, _short(shown_name(node.name)), about),
                *((step - lowest) * _COLUMN + _MARGIN, top + row * _ROW, *_BOX),
                first=node.name in roots,
            )
    return Picture(
        boxes=tuple(boxes.values()),
        lines=tuple(_lines(walk, boxes)),
        width=(max(shown, default=0) - lowest) * _COLUMN + _BOX[0] + 2 * _MARGIN,
        height=max(1, tallest) * _ROW + _MARGIN,
        left_out=len(distinct) - len(boxes),
    )


def _steps(walk: Walk, roots: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return each node's steps from the roots, negative against relations, and last relation."""
    steps, kinds = dict.fromkeys(roots, 0), {}
    ways: dict[str, list[tuple[str, str, int]]] = {}
    for one in walk.relations:
        ways.setdefault(one.source, []).append((one.target, one.kind, 1))
        ways.setdefault(one.target, []).append((one.source, one.kind, -1))
    frontier = list(roots)
    while frontier:
        following = []
        for name in frontier:
            for end, kind, way in ways.get(name, ()):
                if end not in steps:
                    steps[end] = steps[name] + way
                    kinds[end] = kind.replace("_", " ")
                    following.append(end)
        frontier = following
    return steps, kinds


def _lines(walk: Walk, boxes: Mapping[str, Box]) -> Iterator[Line]:
    for one in walk.relations:
        source, target = boxes.get(one.source), boxes.get(one.target)
        if source is None or target is None:
            continue
        forward = target.x >= source.x
        start = source.x + (source.width if forward else 0)
        end = target.x + (0 if forward and target.x > source.x else target.width)
        first, last = source.y + source.height // 2, target.y + target.height // 2
        bend = 26 if forward else -26
        path = f"M{start} {first}C{start + bend} {first} {end - bend} {last} {end} {last}"
        title = f"{shown_name(one.source)} {one.kind.replace('_', ' ')} {shown_name(one.target)}"
        yield Line(path, title)


def _short(name: str) -> str:
    """Return the end of a long name, because the end says more than the start."""
    return name if len(name) <= _LONGEST else f"…{name[1 - _LONGEST :]}"
