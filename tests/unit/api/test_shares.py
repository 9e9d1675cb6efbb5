"""How the limits of a service are divided among its workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.api.admission import Turns


@given(st.integers(1, 8), st.integers(1, 100))
def test_shares_are_the_whole_and_leave_a_turn_to_other_tenants(workers: int, more: int) -> None:
    turns = 2 * workers + more
    dealt = [Turns.dealt(turns, worker, workers) for worker in range(workers)]
    assert sum(share.at_once for share in dealt) == turns
    assert sum(share.of_one_tenant for share in dealt) <= turns - turns // 4
    assert all(share.of_one_tenant > 0 for share in dealt)
    if workers > 1:
        assert all(share.of_one_tenant < share.at_once for share in dealt)


def test_one_worker_has_all() -> None:
    assert Turns.dealt(32) == Turns(32, 24)
    assert Turns.dealt(1) == Turns(1, 1)
    assert Turns.dealt(32, 1, 2) == Turns(16, 12)
