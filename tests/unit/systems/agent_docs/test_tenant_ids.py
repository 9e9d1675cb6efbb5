"""Tenant ids of agents."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.systems.agent_docs.tenants import derive_tenant_id
from rag_assets.tenants.model import Tenant

_IDS = st.text(min_size=1, max_size=200) | st.text("abcAB-_. :/@", min_size=1, max_size=80)


def test_ids_of_tenants_stay_and_others_are_told_apart() -> None:
    assert derive_tenant_id("aws-cli.v2_x") == "aws-cli.v2_x"
    assert derive_tenant_id("a" * 63) == "a" * 63
    slugs = [
        derive_tenant_id(id_) for id_ in ("My Agent", "my agent", "my-agent!", "Ä", "ä", "../x")
    ]
    assert len(set(slugs)) == len(slugs)
    assert slugs[0].startswith("my-agent-")
    assert slugs[-2].startswith("agent-")


@given(_IDS, _IDS)
def test_every_agent_has_a_tenant_of_its_own(one: str, other: str) -> None:
    ids = {derive_tenant_id(one), derive_tenant_id(other)}
    assert (len(ids) == 1) is (one == other)
    for id_ in ids:
        assert Tenant.from_config({"id": id_, "profile": "agent-docs"}).id == id_
