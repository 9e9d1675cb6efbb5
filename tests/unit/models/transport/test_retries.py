"""Turns: how many at once, in how many event loops and threads, and how long one waits."""

import asyncio
import threading
import time

import pytest

from rag_assets.common.errors import DeadlineExceeded
from rag_assets.models.transport.retries import Traffic


def soon(seconds: float = 5.0) -> float:
    return time.monotonic() + seconds


class Crowd:
    """Takes turns, and counts how many run at once."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic
        self._lock = threading.Lock()
        self.now = self.most = self.turns = 0

    async def take(self, seconds: float = 0.002) -> None:
        async with self._traffic.turn(1, soon()):
            with self._lock:
                self.now += 1
                self.turns += 1
                self.most = max(self.most, self.now)
            await asyncio.sleep(seconds)
            with self._lock:
                self.now -= 1

    async def take_many(self, count: int) -> None:
        await asyncio.gather(*(self.take() for _ in range(count)))


def test_turns_at_once_are_bounded_over_several_loops_in_several_threads():
    crowd = Crowd(Traffic(concurrency=3))
    threads = [threading.Thread(target=lambda: asyncio.run(crowd.take_many(40))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (crowd.turns, crowd.now) == (160, 0)
    assert crowd.most == 3


def test_a_waiter_that_times_out_or_is_cancelled_takes_no_slot():
    traffic = Traffic(concurrency=1)
    crowd = Crowd(traffic)

    async def scene() -> None:
        async with traffic.turn(1, soon()):
            with pytest.raises(DeadlineExceeded):
                async with traffic.turn(1, soon(0.02)):
                    pytest.fail("there was no second slot")
            waiting = asyncio.create_task(crowd.take())
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])
        await crowd.take_many(5)

    asyncio.run(scene())
    assert (crowd.turns, crowd.most) == (5, 1)


def test_a_slot_handed_over_in_the_moment_of_cancellation_is_not_lost():
    traffic = Traffic(concurrency=1)
    crowd = Crowd(traffic)

    async def scene() -> None:
        async with traffic.turn(1, soon()):
            waiting = asyncio.create_task(crowd.take())
            await asyncio.sleep(0)
        waiting.cancel()  # it has been handed the slot, and has not run since
        await asyncio.wait([waiting])
        await crowd.take()

    asyncio.run(scene())
    assert crowd.turns == 1


def test_a_loop_that_ended_while_it_waited_does_not_hold_up_the_others():
    traffic = Traffic(concurrency=1)
    holding, ended = threading.Event(), threading.Event()

    async def hold() -> None:
        async with traffic.turn(1, soon()):
            holding.set()
            await asyncio.to_thread(ended.wait, 5)

    holder = threading.Thread(target=lambda: asyncio.run(hold()))
    holder.start()
    assert holding.wait(5)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(Crowd(traffic).take())
    loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()  # without asyncio.run, which would have cancelled the task
    ended.set()
    holder.join()
    crowd = Crowd(traffic)
    asyncio.run(crowd.take())
    assert crowd.turns == 1
    waiting._log_destroy_pending = False


def test_requests_over_the_windows_limit_wait_for_the_next_window():
    traffic = Traffic(concurrency=10, requests_per_minute=4, window=1.0)
    crowd = Crowd(traffic)
    started = time.monotonic()
    asyncio.run(crowd.take_many(9))
    assert 2.0 <= time.monotonic() - started < 10
    assert crowd.most == 4


def test_tokens_count_as_the_provider_reports_them():
    traffic = Traffic(concurrency=10, tokens_per_minute=100)

    async def scene() -> None:
        async with traffic.turn(90, soon()) as turn:
            turn.tokens = 40
        async with traffic.turn(60, soon()):
            pass
        with pytest.raises(DeadlineExceeded):
            async with traffic.turn(1, soon(1)):
                pytest.fail("the minute's tokens are used up")

    asyncio.run(scene())


def test_a_short_question_does_not_wait_behind_a_long_batch_that_waits_for_its_minute():
    traffic = Traffic(concurrency=1, tokens_per_minute=100)

    async def scene() -> float:
        async with traffic.turn(80, soon()):
            pass
        batch = asyncio.create_task(long_batch(90))
        await asyncio.sleep(0.01)
        started = time.monotonic()
        async with traffic.turn(5, soon(50)):
            waited = time.monotonic() - started
        assert not batch.done()
        batch.cancel()
        await asyncio.wait([batch])
        return waited

    async def long_batch(tokens: int) -> None:
        async with traffic.turn(tokens, soon(120)):
            pytest.fail("the minute has no room for it")

    assert asyncio.run(scene()) < 30


def test_a_deadline_that_cannot_be_met_is_raised_at_once():
    traffic = Traffic(concurrency=1, requests_per_minute=1)

    async def scene() -> None:
        async with traffic.turn(0, soon()):
            pass
        async with traffic.turn(0, soon(30)):
            pytest.fail("the minute's only request is used up")

    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        asyncio.run(scene())
    assert time.monotonic() - started < 20


def test_a_pause_holds_for_all_and_the_longer_of_two_counts():
    traffic = Traffic(concurrency=4)
    traffic.pause(0.2)
    traffic.pause(0.05)
    assert 0.1 < traffic.pause_left <= 0.2
    crowd = Crowd(traffic)
    started = time.monotonic()
    asyncio.run(crowd.take_many(4))
    assert time.monotonic() - started >= 0.2
    assert traffic.pause_left == 0


@pytest.mark.parametrize("limits", [{"requests_per_minute": 20}, {"tokens_per_minute": 200}])
def test_bulk_requests_leave_room_for_others_in_every_window(limits: dict[str, int]):
    window = 0.5
    traffic = Traffic(concurrency=50, window=window, **limits)
    bulk: list[float] = []
    waited: list[float] = []

    async def send_bulk(until: float) -> None:
        while time.monotonic() < until:
            async with traffic.turn(10, soon(), is_bulk=True):
                bulk.append(time.monotonic())

    async def scene() -> None:
        sender = asyncio.create_task(send_bulk(soon(4 * window)))
        while not sender.done():
            await asyncio.sleep(window)
            started = time.monotonic()
            async with traffic.turn(10, soon()):
                waited.append(time.monotonic() - started)

    asyncio.run(scene())
    assert max(waited) < window / 5
    assert bulk[9] - bulk[0] < window / 5, "half of the limit is used at once"
    assert 40 <= len(bulk) <= 80, "most of the limit is used"
