"""How the limits of a service are divided among its workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.admission import Turns


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
