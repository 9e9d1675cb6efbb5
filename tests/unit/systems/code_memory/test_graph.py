"""The picture of a walk: columns by steps, relations between boxes, limited size."""

from __future__ import annotations

import itertools

from rag_assets.systems.code_memory.panel.pages import Picture, build_picture
from rag_assets.systems.code_memory.retrieval.nodes import Node, Relation
from rag_assets.systems.code_memory.retrieval.walk import WalkResult


def node(name: str) -> Node:
    return Node(name, "code", "repo")


def relation(source: str, target: str, kind: str = "calls") -> Relation:
    return Relation(kind, source, target, "stated", 1.0, "repo/a.php", 1, 1, "")


def drawn(*relations: Relation, roots: tuple[str, ...] = ("here",)) -> Picture:
    names = dict.fromkeys([*roots, *(end for one in relations for end in (one.source, one.target))])
    return build_picture(WalkResult(tuple(map(node, names)), relations), roots)


def test_callers_of_a_node_are_left_of_it_and_its_targets_right() -> None:
    picture = drawn(relation("caller", "here"), relation("here", "used"), relation("used", "far"))
    x = {box.name: box.x for box in picture.boxes}
    assert x["caller"] < x["here"] < x["used"] < x["far"]
    assert [box.name for box in picture.boxes if box.first] == ["here"]
    assert len(picture.lines) == 3
    assert {box.about for box in picture.boxes if box.name == "used"} == {"code · calls"}


def test_boxes_are_within_the_picture_and_do_not_overlap() -> None:
    picture = drawn(*(relation("here", f"n{i}") for i in range(9)), relation("here", "here"))
    places = {(box.x, box.y) for box in picture.boxes}
    assert len(places) == len(picture.boxes) == 10
    for box in picture.boxes:
        assert 0 <= box.x <= picture.width - box.width
        assert 0 <= box.y <= picture.height - box.height
    column = sorted(box.y for box in picture.boxes if not box.first)
    assert all(after - before >= box.height for before, after in itertools.pairwise(column))


def test_nodes_without_room_are_counted_and_have_no_lines() -> None:
    picture = drawn(*(relation("here", f"n{i}") for i in range(100)))
    assert picture.left_out + len(picture.boxes) == 101
    assert picture.left_out > 0
    assert len(picture.lines) == len(picture.boxes) - 1


def test_a_circle_and_an_empty_walk_have_a_picture() -> None:
    assert len(drawn(relation("here", "b"), relation("b", "here")).lines) == 2
    assert build_picture(WalkResult(), ()).boxes == ()


def test_a_long_name_is_cut_at_its_beginning() -> None:
    [box] = [box for box in drawn(relation("here", "A" * 99 + "::store")).boxes if not box.first]
    assert box.label.startswith("…")
    assert box.label.endswith("::store")
