"""Nothing is embedded for a project until its organization switches its guidelines on."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rag_assets.billing.embedders import NotOptedInEmbedder, lacks_opt_in, require_opt_in
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_embedder
from rag_assets.plugins.registry import installed_systems
from rag_assets.search.contexts import escape_imitations
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.contexts import HEADING
from rag_assets.systems.team_guidelines.errors import GuidelinesOff

RECORD = TenantRecord(
    id="acme.web",
    incarnation=1,
    state="ACTIVE",
    origin="api",
    config={"id": "acme.web", "profile": "team-guidelines"},
    organization="acme",
    project="web",
)


def test_only_profiles_that_ask_for_it_lack_an_opt_in() -> None:
    assert lacks_opt_in(RECORD)
    assert not lacks_opt_in(replace(RECORD, has_opted_in=True))
    assert not lacks_opt_in(replace(RECORD, config={"profile": "documents"}))


def test_a_missing_opt_in_is_the_problem_of_the_profile() -> None:
    require_opt_in("documents", "acme", has_opted_in=False)
    require_opt_in("team-guidelines", "acme", has_opted_in=True)
    with pytest.raises(GuidelinesOff, match="organization 'acme' has its guidelines") as caught:
        require_opt_in("team-guidelines", "acme", has_opted_in=False)
    assert caught.value.hint is not None
    assert "organizations put acme --guidelines" in caught.value.hint


def test_an_embedder_without_opt_in_refuses_every_call() -> None:
    embedder = NotOptedInEmbedder(build_embedder(EmbedderConfig(provider="local")), RECORD)
    with pytest.raises(GuidelinesOff):
        asyncio.run(embedder.embed(["seals"]))


def test_every_heading_of_a_prompt_is_escaped_in_texts() -> None:
    headings = [
        heading for installed in installed_systems() for heading in installed.system.prompt_headings
    ]
    assert HEADING in [f"## {heading}" for heading in headings]
    for heading in headings:
        assert escape_imitations(f"a\n## {heading}\nb") == f"a\n\\## {heading}\nb"
