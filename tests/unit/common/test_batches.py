import logging
import threading
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.batches import BackgroundBatcher, batched


@pytest.mark.slow
@given(st.lists(st.integers(0, 9)), st.none() | st.integers(1, 5), st.none() | st.integers(0, 12))
def test_batches_are_within_limits(items: list[int], size: int | None, most: int | None) -> None:
    batches = list(batched(items, size, weight=int, max_weight=most))
    assert [item for batch in batches for item in batch] == items
    for batch in batches:
        assert 1 <= len(batch) <= (size or len(items))
        assert most is None or sum(batch) <= most or len(batch) == 1


@pytest.mark.slow
@given(st.lists(st.integers(0, 9)), st.integers(1, 5), st.integers(0, 12))
def test_no_batch_has_room_for_the_next_item(items: list[int], size: int, most: int) -> None:
    batches = list(batched(items, size, weight=int, max_weight=most))
    for batch, following in pairwise(batches):
        assert len(batch) == size or sum(batch) + following[0] > most


def test_a_full_batch_is_passed_on_before_the_next_item_is_read() -> None:
    endless = count()
    assert next(batched(endless, 3)) == [0, 1, 2]
    assert next(endless) == 3


def test_batches_of_no_items_are_refused() -> None:
    with pytest.raises(ValueError, match="must be positive"):
        next(batched([1], 0))


def test_everything_is_worked_off_in_order_and_many_at_a_time() -> None:
    batches: list[list[int]] = []
    go = threading.Event()

    def work(batch: list[int]) -> None:
        go.wait(5)
        batches.append(batch)

    batcher = BackgroundBatcher(work, name="numbers")
    for number in range(100):
        batcher.put(number)
    go.set()
    batcher.close()
    assert [number for batch in batches for number in batch] == [*range(100)]
    assert len(batches) <= 3


def test_items_over_the_limit_are_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    batcher = BackgroundBatcher(done.extend, name="numbers", gather_seconds=60, max_waiting=3)
    for number in range(5):
        batcher.put(number)
    with caplog.at_level(logging.WARNING):
        batcher.close()
    assert (done, batcher.dropped) == ([0, 1, 2], 2)
    assert "2 dropped" in caplog.text


def test_a_failure_loses_one_batch_and_logs_its_kind(caplog: pytest.LogCaptureFixture) -> None:
    done: list[str] = []

    def work(batch: list[str]) -> None:
        if "bad" in batch:
            raise ValueError("the text of a document")
        done.extend(batch)

    batcher = BackgroundBatcher(work, name="words")
    with caplog.at_level(logging.WARNING):
        batcher.put("bad")
        batcher.close()
        batcher.put("good")
        batcher.close()
    assert done == ["good"]
    assert "1 lost: ValueError" in caplog.text
    assert "document" not in caplog.text
