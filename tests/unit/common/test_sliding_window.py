import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.models.transport.retries import SlidingWindowLimiter


def test_a_first_burst_may_use_the_whole_window_and_no_more():
    window = SlidingWindowLimiter(3)
    for _ in range(3):
        assert window.get_wait_seconds(1, 0.0) == 0
        window.begin(1)
    assert window.get_wait_seconds(1, 0.0) > 0


def test_room_comes_a_minute_after_the_end_and_not_the_beginning():
    window = SlidingWindowLimiter(1)
    window.begin(1)
    assert window.get_wait_seconds(1, 5.0) == 60  # at least: it ends now at the soonest
    window.end(1, 1, 8.0)
    assert window.get_wait_seconds(1, 10.0) == 58
    assert window.get_wait_seconds(1, 68.0) == 0


def test_it_waits_for_just_so_much_to_expire_as_is_needed():
    window = SlidingWindowLimiter(100)
    for amount, ended in ((30, 1.0), (30, 2.0), (40, 3.0)):
        window.begin(amount)
        window.end(amount, amount, ended)
    assert window.get_wait_seconds(20, 10.0) == 51
    assert window.get_wait_seconds(31, 10.0) == 52
    assert window.get_wait_seconds(100, 10.0) == 53


def test_unused_tokens_are_available_at_once():
    window = SlidingWindowLimiter(100)
    window.begin(90)
    assert window.get_wait_seconds(50, 1.0) > 0
    window.end(90, 40, 1.0)
    assert window.get_wait_seconds(50, 1.0) == 0


def test_more_than_the_limit_waits_for_an_empty_window_and_not_for_ever():
    window = SlidingWindowLimiter(100)
    assert window.get_wait_seconds(250, 0.0) == 0
    window.begin(250)
    window.end(250, 250, 1.0)
    assert window.get_wait_seconds(250, 2.0) == 59
    assert window.get_wait_seconds(250, 61.0) == 0


def test_without_a_limit_nothing_waits():
    window = SlidingWindowLimiter(None)
    window.begin(10**9)
    window.end(10**9, 10**9, 0.0)
    assert window.get_wait_seconds(10**9, 0.0) == 0


@pytest.mark.slow
@given(limit=st.integers(1, 30), seed=st.integers(0, 2**32), slowest=st.floats(0.0, 90.0))
def test_no_stretch_of_a_minute_sees_more_at_the_provider_than_the_limit(limit, seed, slowest):
    chance = random.Random(seed)
    window, now = SlidingWindowLimiter(limit), 0.0
    arrivals: list[float] = []
    under_way: list[float] = []
    for _ in range(4 * limit + 3):
        while True:
            for end in [end for end in under_way if end <= now]:
                under_way.remove(end)
                window.end(1, 1, end)
            wait = window.get_wait_seconds(1, now)
            if wait <= 0:
                break
            now = min([now + wait, *under_way])
        window.begin(1)
        latency = chance.uniform(0, slowest)
        arrivals.append(now + chance.uniform(0, latency))
        under_way.append(now + latency)
        under_way.sort()
        now += chance.choice([0.0, 0.1, 20.0])
    arrivals.sort()
    for first, beyond in zip(arrivals, arrivals[limit:], strict=False):
        assert beyond - first >= 60 - 1e-6
