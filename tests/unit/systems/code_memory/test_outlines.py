"""Answers as text: names without namespaces, and lists that share the space."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.outlines import LineFormatter, format_name
from rag_assets.systems.code_memory.retrieval.nodes import Node
from rag_assets.systems.code_memory.retrieval.uses import MAX_CANDIDATES, Use


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Shop::Modules::Orders::OrdersController::Post", "OrdersController::Post"),
        ("Shop::Orders::add", "Shop::Orders::add"),
        ("App\\Models\\Invoice::total", "App\\Models\\Invoice::total"),
        ("shop.billing.models.Invoice.total", "Invoice.total"),
    ],
)
def test_name_of_many_parts_is_shown_by_its_last_two(name: str, shown: str) -> None:
    assert format_name(name) == shown


def test_first_tests_are_shown_so_that_other_dependents_have_room() -> None:
    tests = [(Node(f"test_{n}", "test", "repo", "repo/test.py", n, n), ()) for n in range(30)]
    lines = [*LineFormatter(shows_repository=False).format_groups(tests, ())]
    assert lines[0] == "test (30):"
    assert lines[-1] == "  … and 10 more"
    assert len(lines) == 22


@pytest.mark.parametrize("candidates", [MAX_CANDIDATES, MAX_CANDIDATES + 1])
def test_uses_of_a_name_with_many_definitions_are_only_counted(candidates: int) -> None:
    place = ("repo/shop.py", 3, "repo", None, "")
    use = Use("Orders.get", "get", "call", "orders", *place, candidates)
    lines = [*LineFormatter(shows_repository=False).format_possible_uses([use])]
    heading = f"possibly Orders.get, one of {candidates} definitions of the name (1)"
    if candidates > MAX_CANDIDATES:
        assert lines == [heading]
    else:
        assert lines == [f"{heading}:", "  shop.py:3  calls  orders.get"]
