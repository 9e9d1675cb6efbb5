"""Answers about relations of named definitions, in repositories without types of definitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rag_assets.systems.code_memory.catalog.found_relations import FoundSymbol
from rag_assets.systems.code_memory.retrieval.nodes import build_node
from rag_assets.systems.code_memory.retrieval.question_subject import find_question_names
from rag_assets.systems.code_memory.retrieval.relevance import Neighbourhoods, flow_from_names
from rag_assets.systems.code_memory.retrieval.steps.walk import _select_answers
from tests.unit.systems.code_memory.retrieval.test_relevance import FakeRelations, view_of

ROUTE = "route:GET /orders"
CHAIN = (
    (ROUTE, "routes_to", "OrderHandler.show"),
    ("OrderHandler.show", "calls", "OrderStore.find"),
    ("OrderStore.find", "calls", "Order"),
    ("Order", "maps_to", "table:orders"),
    (ROUTE, "calls", "Logger.write"),
)
TYPES = {"OrderHandler": "controller", "OrderStore": "service", "Order": "model"}


def symbol(name: str, types: Mapping[str, str]) -> FoundSymbol:
    is_route = name.startswith("route:")
    fake = ("h", name, f"r/{name}.x", "r", "public", "route" if is_route else "code")
    role = "route" if is_route else "method" if "." in name else "class"
    return FoundSymbol(name, role, True, 1, 1, *fake, types, local_name=name)


class TypedRelations(FakeRelations):
    def __init__(self, types: Mapping[str, str]) -> None:
        super().__init__(*CHAIN)
        self._types = types

    def find_definitions(self, names: Sequence[str]) -> list[FoundSymbol]:
        return [symbol(name, self._types) for name in names if not name.startswith("table:")]


def answers(text: str, name: str, types: Mapping[str, str]) -> list[tuple[str, str]] | None:
    """Return the names and types of the nodes that answer a question about a name."""
    question = find_question_names(text)
    start = {("r", name): build_node(symbol(name, types))}
    flow = flow_from_names(
        view_of(TypedRelations(types)),
        *(Neighbourhoods(), dict.fromkeys(start, 1.0), start),
        depth=5,
        wanted=question.wanted_types,
    )
    selected = _select_answers(flow, question)
    if selected is None:
        return None
    return sorted((one.node.name, one.node.source_type) for one in selected.nodes)


WHOLE = "Which controller serves route /orders and which model and table does it touch?"


def test_select_answers_without_types_keeps_handler_and_path_to_table() -> None:
    assert answers(WHOLE, ROUTE, {}) == [
        ("Order", "code"),
        ("OrderHandler.show", "controller"),
        ("OrderStore.find", "code"),
        (ROUTE, "route"),
        ("table:orders", "table"),
    ]


def test_select_answers_with_types_keeps_wanted_types_alone() -> None:
    assert answers(WHOLE, ROUTE, TYPES) == [
        ("Order", "model"),
        ("OrderHandler.show", "controller_method"),
        (ROUTE, "route"),
        ("table:orders", "table"),
    ]


@pytest.mark.parametrize("types", [{}, TYPES])
def test_select_answers_for_controller_of_route_is_its_handler(types: Mapping[str, str]) -> None:
    found = answers("Which controller serves /orders?", ROUTE, types)
    assert found is not None
    assert [name for name, _ in found] == ["OrderHandler.show", ROUTE]
