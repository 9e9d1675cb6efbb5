"""The defaults of projects with guidelines."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from rag_assets.billing.embedders import choose_embedder
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import get_embedder_id
from rag_assets.systems.team_guidelines.routes import ProjectBody
from rag_assets.tenants.model import Tenant

CONFIG = {"id": "acme.web", "profile": "team-guidelines", "organization": "acme", "project": "web"}


@pytest.mark.parametrize(
    ("embedder_id", "least"),
    [
        ("openai/text-embedding-3-small@1536", 0.75),
        ("openai/text-embedding-3-small@1536+0123456789abcdef", 0.75),
        ("gemini/gemini-embedding-001@1536", 0.75),
        ("gemini/gemini-embedding-2@1536", 0.75),
        ("gemini/text-embedding-004@1536+0123456789abcdef", 0.75),
        (get_embedder_id(EmbedderConfig(provider="local")), 0.20),
        ("openai-compatible/any@8", None),
    ],
)
def test_guidelines_have_a_threshold_for_each_model(embedder_id: str, least: float | None) -> None:
    assert Tenant.from_config(CONFIG).min_score(embedder_id) == least
    own = Tenant.from_config({**CONFIG, "retrieval": {"min_score": 0.3}})
    assert own.min_score(embedder_id) == 0.3


def test_guidelines_have_the_documented_settings() -> None:
    tenant = Tenant.from_config(CONFIG)
    cut = tenant.chunk_parameters(source="any", source_type="any", media_type="text/markdown")
    assert (cut.kind.name, cut.limit, cut.overlap) == ("recursive", 512, 64)
    assert (tenant.retrieval.mode, tenant.retrieval.top_k) == ("knn", 5)
    assert tenant.get_retention_days("upload") is None
    [source] = tenant.sources
    assert (source.name, source.type) == ("guidelines", "uploads")
    assert source.accepts("text/markdown")
    assert not source.accepts("text/plain")
    for model in ("gpt-4o", "gemini-2.5-flash", "claude-3-5-haiku-latest", None):
        assert choose_embedder(tenant.embedder, chat_model=model).embedder.dimensions == 1536


def test_an_application_cannot_choose_the_local_model() -> None:
    with pytest.raises(ValidationError):
        ProjectBody.model_validate({"provider": "local"})
