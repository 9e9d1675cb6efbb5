from __future__ import annotations

import logging
import threading

import pytest

from rag_assets.common.background_batcher import Aside


def test_everything_is_worked_off_in_order_and_many_at_a_time() -> None:
    lots: list[list[int]] = []
    go = threading.Event()

    def work(lot: list[int]) -> None:
        go.wait(5)
        lots.append(lot)

    aside = Aside(work, name="numbers")
    for number in range(100):
        aside.put(number)
    go.set()
    aside.close()
    assert [number for lot in lots for number in lot] == [*range(100)]
    assert len(lots) <= 3


def test_what_is_too_much_is_dropped_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    done: list[int] = []
    aside = Aside(done.extend, name="numbers", gather_seconds=60, most=3)
    for number in range(5):
        aside.put(number)
    with caplog.at_level(logging.WARNING):
        aside.close()
    assert (done, aside.dropped) == ([0, 1, 2], 2)
    assert "2 were dropped" in caplog.text


def test_a_failure_loses_its_lot_alone_and_says_no_more_than_its_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    def work(lot: list[str]) -> None:
        if "bad" in lot:
            raise ValueError("the text of a document")
        done.extend(lot)

    aside = Aside(work, name="words")
    with caplog.at_level(logging.WARNING):
        aside.put("bad")
        aside.close()
        aside.put("good")
        aside.close()
    assert done == ["good"]
    assert "1 were lost: ValueError" in caplog.text
    assert "document" not in caplog.text
