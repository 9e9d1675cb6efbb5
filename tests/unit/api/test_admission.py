import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.admission import (
    CLIENT_GONE,
    Admission,
    ClientGone,
    FairQueue,
    Overloaded,
    Turns,
)


async def worked(admission: Admission, tenant: str, seconds: float = 0.0) -> str:
    async with admission.turn(tenant, "ada"):
        await asyncio.sleep(seconds)
    return tenant


def test_no_more_are_under_way_than_there_are_turns() -> None:
    async def run() -> int:
        admission = Admission(Turns.for_worker(4), wait_seconds=10)
        under_way = most = 0

        async def work(number: int) -> None:
            nonlocal under_way, most
            async with admission.turn(f"tenant{number % 3}", "ada"):
                under_way += 1
                most = max(most, under_way)
                await asyncio.sleep(0.001)
                under_way -= 1

        await asyncio.gather(*(work(number) for number in range(50)))
        return most

    assert asyncio.run(run()) == 4


def test_a_tenant_leaves_a_quarter_to_others() -> None:
    async def run() -> None:
        admission = Admission(Turns.for_worker(4), wait_seconds=10)
        slow = [asyncio.create_task(worked(admission, "slow", 0.5)) for _ in range(20)]
        await asyncio.sleep(0.01)
        async with asyncio.timeout(0.2):
            assert await worked(admission, "calm") == "calm"
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        # Cancelled requests released their turns.
        async with asyncio.timeout(0.2):
            await asyncio.gather(*(worked(admission, "slow") for _ in range(20)))

    asyncio.run(run())


def test_a_request_that_waits_too_long_is_refused() -> None:
    async def run() -> None:
        admission = Admission(Turns.for_worker(1), wait_seconds=0.05)
        busy = asyncio.create_task(worked(admission, "acme", 0.3))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as refused:
            await worked(admission, "acme")
        assert refused.value.retry_after == 1
        await busy
        assert await worked(admission, "acme") == "acme"

    asyncio.run(run())


def test_a_request_that_would_wait_too_long_is_refused_at_once() -> None:
    async def run() -> tuple[int, float]:
        admission = Admission(Turns.for_worker(1), wait_seconds=0.2)
        for _ in range(40):
            await worked(admission, "acme", 0.01)
        began = time.thread_time()
        tasks = [asyncio.create_task(worked(admission, "acme", 0.01)) for _ in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        refused = [task for task in tasks if task.done()]
        took = time.thread_time() - began
        assert all(isinstance(task.exception(), Overloaded) for task in refused)
        # One who asks for another tenant does not wait behind them.
        waiting = [task for task in tasks if not task.done()]
        await worked(admission, "other")
        done = [task for task in waiting if task.done()]
        assert 4 * len(done) <= len(waiting)
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(refused), took

    refused, took = asyncio.run(run())
    assert 60 <= refused <= 95
    assert took < 0.1


def test_a_closed_connection_leaves_the_queue() -> None:
    async def run() -> None:
        admission = Admission(Turns.for_worker(1), wait_seconds=10)
        busy = asyncio.create_task(worked(admission, "acme", 0.2))
        await asyncio.sleep(0)

        async def hung_up(gone: Callable[[], Awaitable[None]]) -> None:
            CLIENT_GONE.set(gone)
            with pytest.raises(ClientGone):
                await worked(admission, "acme")

        async with asyncio.timeout(0.1):
            await asyncio.create_task(hung_up(lambda: asyncio.sleep(0.01)))
        await busy
        assert await worked(admission, "acme") == "acme"

    asyncio.run(run())


def taken(queue: FairQueue[str]) -> list[str]:
    found = []
    while (one := queue.pop()) is not None:
        found.append(one[1])
    return found


def test_tenants_and_their_callers_have_turns_by_turns() -> None:
    queue: FairQueue[str] = FairQueue(100)
    for number in range(3):
        queue.add("flood", "eve", f"eve{number}")
    queue.add("flood", "ada", "ada0")
    queue.add("calm", "bob", "bob0")
    assert taken(queue) == ["eve0", "bob0", "ada0", "eve1", "eve2"]
    assert len(queue) == 0


def test_a_tenant_at_its_limit_delays_no_other() -> None:
    queue: FairQueue[str] = FairQueue(1)
    queue.start("flood")
    queue.add("flood", "eve", "eve0")
    queue.add("calm", "bob", "bob0")
    assert taken(queue) == ["bob0"]
    queue.end("flood")
    assert taken(queue) == ["eve0"]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=40))
def test_no_request_waits_longer_than_estimated(arrivals: list[tuple[str, str]]) -> None:
    queue: FairQueue[int] = FairQueue(100)
    said = {}
    for number, (tenant, caller) in enumerate(arrivals):
        said[number] = queue.count_ahead(tenant, caller)
        queue.add(tenant, caller, number)
    last = len(arrivals) - 1
    order = []
    while (one := queue.pop()) is not None:
        order.append(one[1])
    assert sorted(order) == list(range(len(arrivals)))
    if order:
        assert order.index(last) <= said[last]


def test_cancelled_waiters_are_removed() -> None:
    queue: FairQueue[str] = FairQueue(100)
    queue.add("a", "x", "one")
    queue.discard("a", "x", "other")
    queue.discard("b", "x", "one")
    assert queue.find_longest() is not None
    queue.discard("a", "x", "one")
    assert (len(queue), queue.find_longest(), queue.pop()) == (0, None, None)


@given(st.integers(1, 8), st.integers(1, 100))
def test_shares_are_the_whole_and_leave_a_turn_to_other_tenants(workers: int, more: int) -> None:
    turns = 2 * workers + more
    shares = [Turns.for_worker(turns, worker, workers) for worker in range(workers)]
    assert sum(share.total for share in shares) == turns
    assert sum(share.per_tenant for share in shares) <= turns - turns // 4
    assert all(share.per_tenant > 0 for share in shares)
    if workers > 1:
        assert all(share.per_tenant < share.total for share in shares)


def test_one_worker_has_all() -> None:
    assert Turns.for_worker(32) == Turns(32, 24)
    assert Turns.for_worker(1) == Turns(1, 1)
    assert Turns.for_worker(32, 1, 2) == Turns(16, 12)
