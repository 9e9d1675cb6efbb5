"""Agents as tenants: ids, and paths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.tenants import derive_tenant_id
from rag_assets.tenants.file import TenantsFile
from rag_assets.tenants.model import Tenant

_IDS = st.text(min_size=1, max_size=200) | st.text("abcAB-_. :/@", min_size=1, max_size=80)


def test_ids_of_tenants_stay_and_others_are_told_apart() -> None:
    assert derive_tenant_id("aws-cli.v2_x") == "aws-cli.v2_x"
    assert derive_tenant_id("a" * 63) == "a" * 63
    names = ("My Agent", "my agent", "my-agent!", "Ä", "ä", "../x")
    slugs = [derive_tenant_id(name) for name in names]
    assert len(set(slugs)) == len(slugs)
    assert slugs[0].startswith("my-agent-")
    assert slugs[-2].startswith("agent-")


@given(_IDS, _IDS)
def test_every_agent_has_a_tenant_of_its_own(one: str, other: str) -> None:
    ids = {derive_tenant_id(one), derive_tenant_id(other)}
    assert (len(ids) == 1) is (one == other)
    for id_ in ids:
        assert Tenant.from_config({"id": id_, "profile": "agent-docs"}).id == id_


@pytest.mark.parametrize("written", ["$NOTES/a", "/srv/${NOTES}", "$$$NOTES", "a/$UNDEFINED"])
def test_a_path_of_agents_with_a_variable_is_refused(tmp_path: Path, written: str) -> None:
    file = TenantsFile(tmp_path / "tenants.yaml")
    file.path.write_text(f"tenants: []\nagents: ['{written}']\n")
    with pytest.raises(ConfigurationError, match="path in agents contains a variable"):
        file.load_lists()
