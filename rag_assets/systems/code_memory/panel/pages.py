"""The panel's pages: a search with its chunks, a name with its relations, a file's definitions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple, TypeVar

from starlette.responses import Response

from rag_assets.common.errors import InvalidRequest
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.search.model import MAX_QUERY, Caller, SearchAnswer, SearchRequest
from rag_assets.systems.code_memory.catalog.found_relations import Direction
from rag_assets.systems.code_memory.outlines import format_name
from rag_assets.systems.code_memory.retrieval.nodes import Node
from rag_assets.systems.code_memory.retrieval.walk import Walker, WalkResult

_MAX_COLUMN_BOXES: Final = 14
_COLUMN_PIXELS: Final = 270
_ROW_PIXELS: Final = 56
_BOX_PIXELS: Final = (220, 42)
_MARGIN_PIXELS: Final = 10
_MAX_LABEL_CHARACTERS: Final = 30


class PictureBox(NamedTuple):
    """The box of a node in the picture of a walk.

    Attributes:
        name: the name of the node.
        label: the name as displayed, shortened if it is long.
        about: its type, and its relation to the node before it.
        x, y: pixels from the upper left corner of the picture.
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


class PictureLine(NamedTuple):
    """The line of a relation in the picture: an SVG path, and the relation in words."""

    path: str
    title: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a walk, with the number of nodes that do not fit into it."""

    boxes: tuple[PictureBox, ...]
    lines: tuple[PictureLine, ...]
    width: int
    height: int
    left_out: int


def build_picture(walk: WalkResult, roots: Sequence[str]) -> Picture:
    """Return the picture of a walk from the nodes `roots`; relations lead from left to right."""
    steps, kinds = _count_steps(walk, roots)
    columns: dict[int, list[Node]] = {}
    # Several repositories may each have a node with the same name.
    distinct = {node.name: node for node in walk.nodes}
    for node in distinct.values():
        columns.setdefault(steps.get(node.name, 0), []).append(node)
    shown_columns = {step: nodes[:_MAX_COLUMN_BOXES] for step, nodes in columns.items()}
    tallest = max((len(nodes) for nodes in shown_columns.values()), default=0)
    lowest = min(shown_columns, default=0)
    boxes: dict[str, PictureBox] = {}
    for step, nodes in shown_columns.items():
        top = (tallest - len(nodes)) * _ROW_PIXELS // 2 + _MARGIN_PIXELS
        for row, node in enumerate(nodes):
            facts = node.source_type.replace("_", " "), kinds.get(node.name)
            about = " · ".join(filter(None, facts))
            boxes[node.name] = PictureBox(
                *(node.name, _shorten_name(format_name(node.name)), about),
                *(
                    (step - lowest) * _COLUMN_PIXELS + _MARGIN_PIXELS,
                    top + row * _ROW_PIXELS,
                    *_BOX_PIXELS,
                ),
                first=node.name in roots,
            )
    return Picture(
        boxes=tuple(boxes.values()),
        lines=tuple(_draw_lines(walk, boxes)),
        width=(max(shown_columns, default=0) - lowest) * _COLUMN_PIXELS
        + _BOX_PIXELS[0]
        + 2 * _MARGIN_PIXELS,
        height=max(1, tallest) * _ROW_PIXELS + _MARGIN_PIXELS,
        left_out=len(distinct) - len(boxes),
    )


def _count_steps(walk: WalkResult, roots: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return two values by node: its column, counted from the roots, and the relation to reach it.

    A node reached against the direction of a relation is one column to the left.
    """
    steps, kinds = dict.fromkeys(roots, 0), {}
    neighbours: dict[str, list[tuple[str, str, int]]] = {}
    for relation in walk.relations:
        neighbours.setdefault(relation.source, []).append((relation.target, relation.kind, 1))
        neighbours.setdefault(relation.target, []).append((relation.source, relation.kind, -1))
    frontier = list(roots)
    while frontier:
        following = []
        for name in frontier:
            for end, kind, step in neighbours.get(name, ()):
                if end not in steps:
                    steps[end] = steps[name] + step
                    kinds[end] = kind.replace("_", " ")
                    following.append(end)
        frontier = following
    return steps, kinds


def _draw_lines(walk: WalkResult, boxes: Mapping[str, PictureBox]) -> Iterator[PictureLine]:
    for relation in walk.relations:
        source, target = boxes.get(relation.source), boxes.get(relation.target)
        if source is None or target is None:
            continue
        forward = target.x >= source.x
        start = source.x + (source.width if forward else 0)
        end = target.x + (0 if forward and target.x > source.x else target.width)
        first, last = source.y + source.height // 2, target.y + target.height // 2
        bend = 26 if forward else -26
        path = f"M{start} {first}C{start + bend} {first} {end - bend} {last} {end} {last}"
        kind = relation.kind.replace("_", " ")
        title = f"{format_name(relation.source)} {kind} {format_name(relation.target)}"
        yield PictureLine(path, title)


def _shorten_name(name: str) -> str:
    """Return the end of a long name: the end says more than the start."""
    return (
        name if len(name) <= _MAX_LABEL_CHARACTERS else f"…{name[1 - _MAX_PARAMETER_CHARACTERS :]}"
    )


_MAX_PARAMETER_CHARACTERS: Final = 1_000
_MAX_STEPS: Final = 3
_DIRECTIONS: Final[dict[str, Direction]] = {"both": "both", "in": "in", "out": "out"}
_FILE: Final = "file:"
_T = TypeVar("_T")


async def show_search(visit: Visit) -> Response:
    """Show the chunks that answer a question, with links, and how they were found."""
    query = _read_parameter(visit, "q", MAX_QUERY + 1)
    answer: SearchAnswer | None = None
    problem = ""
    if query.strip():
        try:
            request = SearchRequest.of(query=query, caller=_build_caller(visit))
            answer = await visit.backend.retriever.search(visit.tenant_id, request)
        except InvalidRequest as error:
            problem = str(error)
    return visit.html(
        "search.html", query=query, found=answer, problem=problem, format_name=format_name
    )


async def show_name(visit: Visit) -> Response:
    """Show a name, the graph around it, and the evidence of each relation."""
    parameter = _read_parameter(visit, "name")
    direction = _DIRECTIONS.get(_read_parameter(visit, "direction"), "both")
    number = _read_parameter(visit, "depth")
    depth = min(_MAX_STEPS, max(1, int(number) if re.fullmatch("[0-9]{1,2}", number) else 1))
    walk = WalkResult()
    if parameter:
        walk = await _walk(visit, parameter, direction=direction, depth=depth)
    roots = walk.start_names
    return visit.html(
        "name.html",
        name=parameter,
        direction=direction,
        depth=depth,
        steps=range(1, _MAX_STEPS + 1),
        walk=walk,
        roots=[node for node in walk.nodes if node.name in roots],
        picture=build_picture(walk, roots),
        format_name=format_name,
    )


async def show_file(visit: Visit) -> Response:
    """Show the definitions of a file, in the order of its lines, and their relations."""
    path = _read_parameter(visit, "path")
    definitions = await _read(
        visit, lambda walker, caller: walker.find_definitions(visit.tenant_id, caller, path=path)
    )
    walk = await _walk(visit, _FILE + path, direction="both", depth=1)
    definitions.sort(key=lambda node: (node.line_start or 0, node.name))
    return visit.html(
        "file.html", path=path, definitions=definitions, walk=walk, format_name=format_name
    )


async def _walk(visit: Visit, name: str, *, direction: Direction, depth: int) -> WalkResult:
    walk = partial(Walker.walk_from_name, direction=direction, depth=depth)
    return await _read(visit, lambda walker, caller: walk(walker, visit.tenant_id, caller, name))


async def _read(visit: Visit, work: Callable[[Walker, Caller], _T]) -> _T:
    """Return the result of blocking work on the relations that the user may read."""
    backend = visit.backend
    walker = Walker(backend.catalog, backend.reader.policy)
    read = partial(work, walker, _build_caller(visit))
    return await backend.run(visit.tenant_id, visit.session.name, read)


def _build_caller(visit: Visit) -> Caller:
    return Caller(principals=visit.session.principals, name=visit.session.name)


def _read_parameter(visit: Visit, name: str, most: int = _MAX_PARAMETER_CHARACTERS) -> str:
    """Return a query parameter without NUL characters, cut to `most` characters."""
    return visit.request.query_params.get(name, "").replace("\x00", "")[:most]


PANEL = SystemPanel(
    name="code-memory",
    path="code",
    package="rag_assets.systems.code_memory.panel",
    tabs={"": "Search", "/names": "Names"},
    pages=(
        PanelPage("", show_search),
        PanelPage("/names", show_name),
        PanelPage("/files", show_file),
    ),
)
