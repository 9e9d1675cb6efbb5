import pytest

from rag_assets.cli.sync_lanes import split_tenants


@pytest.mark.parametrize("lanes", [1, 2, 16])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 100, 1_000])
def test_each_tenant_is_in_one_share_and_the_last_shares_are_small(count: int, lanes: int) -> None:
    tenants = [f"team-{number}" for number in range(count)]
    parts = list(split_tenants(tenants, lanes))
    assert [tenant for part in parts for tenant in part] == tenants
    sizes = [len(part) for part in parts]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-lanes:] == [1] * len(sizes[-lanes:])
    assert len(parts) <= count / 10 + 12 * lanes
