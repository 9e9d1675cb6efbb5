import os
import signal
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.rate_limits import Rate, Rates, SharedTable, SharedWindows, TooManyRequests
from rag_assets.common.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("600/minute", Rate(600, 60.0)),
        (" 20 / second", Rate(20, 1.0)),
        ("5/hour", Rate(5, 3_600.0)),
        ("1000000/day", Rate(1_000_000, 86_400.0)),
        ("3 per minutes", Rate(3, 60.0)),
    ],
)
def test_a_rate_is_a_number_and_a_unit(text: str, rate: Rate) -> None:
    assert Rate.parse(text) == rate


@pytest.mark.parametrize(
    "text", ["", "600", "0/minute", "-1/minute", "1.5/second", "6/weeks", "1000001/day"]
)
def test_what_is_no_rate_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="RAG_ASSETS_SERVICE_RATE is not a rate"):
        Rate.parse(text)


def test_a_token_waits_until_its_first_request_is_a_window_ago() -> None:
    now = 1_000.0
    rates = Rates(SharedWindows(2, 60.0, keys=10, clock=lambda: now))
    rates.take("ada")
    now += 10.5
    rates.take("ada")
    rates.take("eve")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("ada")
    assert refused.value.retry_after == 50
    now += 49.5
    rates.take("ada")
    with pytest.raises(TooManyRequests) as refused:
        rates.take("ada")
    assert refused.value.retry_after == 11
    rates.take("eve")


STEPS = st.lists(st.floats(0, 40, allow_nan=False), max_size=60)


@given(STEPS, st.integers(1, 5))
def test_no_window_holds_more_than_the_limit(steps: Sequence[float], limit: int) -> None:
    now = 5_000.0
    windows = SharedWindows(limit, 60.0, keys=8, clock=lambda: now)
    taken: list[float] = []
    for step in steps:
        now += step
        wait = windows.take(b"ada")
        recent = [at for at in taken if at > now - 60.0]
        if not wait:
            taken.append(now)
            assert len(recent) < limit
        else:
            # Nobody is refused for longer than a sixtieth of the window more.
            assert len([at for at in taken if at > now - 61.0 - 1e-6]) >= limit
            assert wait <= 60.0
    assert len(taken) >= min(limit, len(steps))


@given(STEPS)
def test_who_waits_as_long_as_told_is_let_through(steps: Sequence[float]) -> None:
    now = 5_000.0
    windows = SharedWindows(2, 60.0, keys=8, clock=lambda: now)
    for step in steps:
        now += step
        if wait := windows.take(b"ada"):
            now += wait + 1e-6
            assert windows.take(b"ada") == 0.0


def test_events_close_to_each_other_count_as_long_as_the_last() -> None:
    now = 6_000.0
    windows = SharedWindows(2, 60.0, keys=8, clock=lambda: now)
    assert windows.take(b"ada") == 0.0
    now += 0.9
    assert windows.take(b"ada") == 0.0
    now += 59.1
    assert round(windows.take(b"ada"), 6) == 0.9


def test_what_happened_is_counted_beyond_the_limit() -> None:
    now = 1_000.0
    windows = SharedWindows(2, 60.0, keys=8, clock=lambda: now)
    assert windows.get_wait_seconds(b"ada") == 0.0
    for _ in range(5):
        windows.count(b"ada")
    assert windows.get_wait_seconds(b"ada") == 60.0
    assert windows.get_wait_seconds(b"eve") == 0.0
    now += 60.0
    assert windows.get_wait_seconds(b"ada") == 0.0


NUMBER = 8


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def test_a_record_is_there_until_it_expires_or_is_removed() -> None:
    table = SharedTable(100, NUMBER)
    with table.lock(b"ada", 0.0) as record:
        assert not record.is_live
        assert record.read() == bytes(NUMBER)
        record.write(b"12345678", until=10.0)
    with table.lock(b"ada", 9.0) as record:
        assert record.is_live
        assert record.read() == b"12345678"
    with table.lock(b"eve", 9.0) as record:
        assert not record.is_live
    with table.lock(b"ada", 10.0) as record:
        assert not record.is_live
        assert record.read() == bytes(NUMBER)
    with table.lock(b"ada", 9.0) as record:
        record.remove()
    with table.lock(b"ada", 9.0) as record:
        assert not record.is_live


def test_where_places_are_taken_the_record_that_expires_first_gives_way() -> None:
    table = SharedTable(8, NUMBER)
    for at in range(9):
        with table.lock(b"%d" % at, 0.0) as record:
            record.write(bytes(NUMBER), until=100.0 - at)
    there = []
    for at in range(9):
        with table.lock(b"%d" % at, 0.0) as record:
            there.append(record.is_live)
    # The eighth expired first when the ninth came.
    assert there == [True] * 7 + [False, True]


def test_processes_count_together() -> None:
    table, children, each = SharedTable(100, NUMBER), 4, 2_000
    pids = []
    for _ in range(children):
        pid = os.fork()
        if pid == 0:
            for _ in range(each):
                with table.lock(b"ada", 0.0) as record:
                    counted = number(record.read()) + 1
                    record.write(counted.to_bytes(NUMBER, "little"), until=1.0)
            os._exit(0)
        pids.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * children
    with table.lock(b"ada", 0.0) as record:
        assert number(record.read()) == children * each


def test_a_killed_process_locks_nothing() -> None:
    table = SharedTable(100, NUMBER)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        with table.lock(b"ada", 0.0):
            os.write(writer, b".")
            time.sleep(60)
        os._exit(0)
    assert os.read(reader, 1) == b"."
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    began = time.monotonic()
    with table.lock(b"ada", 0.0) as record:
        assert not record.is_live
    assert time.monotonic() - began < 5
    os.close(reader)
    os.close(writer)
