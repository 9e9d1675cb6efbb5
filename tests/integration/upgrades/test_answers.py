"""The comparison of answers allows other scores and new fields, but no other hits at the top."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.upgrades.answers import require_equal


def answer(order: Sequence[int], **hit: Any) -> dict[str, Any]:
    """Return an answer with numbered hits in an order, best first."""
    hits = [
        {"uri": f"notes/{number}.md", "text": str(number), "score": 1 / rank, **hit}
        for rank, number in enumerate(order, 1)
    ]
    return {"query": "pumps", "hits": hits}


@pytest.mark.parametrize(
    ("order", "case"),
    [
        ((1, 0, 2, 3, 4), "another hit is first"),
        ((0, 1, 4, 3, 2), "another hit is among the first three"),
        ((4, 3, 2, 1, 0), "the order is reversed"),
        ((0, 1, 2, 3), "a hit is missing"),
        ((0, 1, 2, 3, 5), "another hit is found"),
    ],
)
def test_require_equal_other_hits_at_the_top_fails(order: Sequence[int], case: str) -> None:
    with pytest.raises(AssertionError):
        require_equal(answer(range(5)), answer(order))


def test_require_equal_other_ranks_below_the_top_passes() -> None:
    require_equal(answer(range(5)), answer((0, 2, 1, 4, 3), added="new"))


def test_require_equal_exchanged_answers_fail() -> None:
    valves, prices = answer((0, 1, 2, 3)), answer((1, 0, 2, 3))
    with pytest.raises(AssertionError):
        require_equal(valves, prices)


def test_require_equal_other_value_fails() -> None:
    require_equal({"tokens": 31, "score": 0.5}, {"tokens": 31, "score": 0.51, "added": "new"})
    with pytest.raises(AssertionError):
        require_equal({"tokens": 31}, {"tokens": 30})
