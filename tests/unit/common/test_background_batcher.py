from __future__ import annotations

import logging
import threading

import pytest

from rag_assets.common.batches import BackgroundBatcher


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


def test_a_failure_loses_its_own_batch_and_logs_only_its_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
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
