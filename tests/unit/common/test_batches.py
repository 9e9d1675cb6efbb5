"""Splitting items into batches."""

from __future__ import annotations

from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.batches import batched


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 9)),
    st.none() | st.integers(1, 5),
    st.none() | st.integers(0, 12),
)
def test_batches_hold_every_item_once_within_both_limits(
    items: list[int], size: int | None, most: int | None
) -> None:
    batches = list(batched(items, size, weight=int, most=most))
    assert [item for batch in batches for item in batch] == items
    for batch in batches:
        assert 1 <= len(batch) <= (size or len(items))
        assert most is None or sum(batch) <= most or len(batch) == 1


@pytest.mark.slow
@given(st.lists(st.integers(0, 9)), st.integers(1, 5), st.integers(0, 12))
def test_no_batch_could_have_taken_the_first_of_the_next(
    items: list[int], size: int, most: int
) -> None:
    batches = list(batched(items, size, weight=int, most=most))
    for batch, following in pairwise(batches):
        assert len(batch) == size or sum(batch) + following[0] > most


def test_a_full_batch_is_passed_on_before_the_next_item_is_read() -> None:
    endless = count()
    assert next(batched(endless, 3)) == [0, 1, 2]
    assert next(endless) == 3


def test_batches_of_no_items_are_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        next(batched([1], 0))
