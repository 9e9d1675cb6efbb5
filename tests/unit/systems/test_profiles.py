"""Profiles of the installed systems can be used for tenants."""

from __future__ import annotations

import pytest

from rag_assets.models.factory import get_embedder_id
from rag_assets.plugins.registry import installed_systems
from rag_assets.tenants.model import Tenant
from tests.chunking import require_records_by_default


@pytest.mark.parametrize("profile", installed_systems().profiles)
def test_every_profile_makes_a_tenant(profile: str) -> None:
    config = {"id": "a", "profile": profile, "organization": "acme", "project": "web"}
    assert Tenant.from_config(config).profile == profile


@pytest.mark.parametrize(
    ("profile", "embedder"),
    [
        ("workspace", "openai/text-embedding-3-large@3072"),
        ("experience", "openai/text-embedding-3-small@1536"),
    ],
)
def test_a_profile_has_the_model_of_its_description(profile: str, embedder: str) -> None:
    config = {"id": "a", "profile": profile, "organization": "acme", "project": "web"}
    assert get_embedder_id(Tenant.from_config(config).embedder) == embedder


def test_rows_of_a_workspace_are_records_too() -> None:
    require_records_by_default("workspace")
