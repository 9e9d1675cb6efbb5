"""Events in a sliding window."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.rate_limits import SharedWindows

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
