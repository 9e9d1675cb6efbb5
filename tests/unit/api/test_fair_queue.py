"""The order of turns in the fair queue."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.admission import FairQueue


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
