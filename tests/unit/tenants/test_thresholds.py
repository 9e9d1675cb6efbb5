from __future__ import annotations

import pytest

from rag_assets.models.embedding.registry import EmbedderConfig, embedder_id_of
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.thresholds import threshold_of

LOCAL = embedder_id_of(EmbedderConfig())
SMALL = "openai/text-embedding-3-small@1536"


@pytest.mark.parametrize(
    ("profile", "embedder_id", "least"),
    [
        ("team-guidelines", SMALL, 0.75),
        ("team-guidelines", f"{SMALL}~second", 0.75),
        ("team-guidelines", "openai/text-embedding-3-large@1536", None),
        ("documents", SMALL, None),
        ("documents", LOCAL, None),
        ("workspace", LOCAL, None),
    ],
)
def test_a_threshold_belongs_to_profile_and_embedder(
    profile: str, embedder_id: str, least: float | None
) -> None:
    assert threshold_of(profile, embedder_id) == least


def tenant(**retrieval: float | None) -> Tenant:
    made = Tenant.from_config({"id": "acme", "retrieval": retrieval})
    # The profile of this threshold is not offered yet.
    return made.model_copy(update={"profile": "team-guidelines"})


def test_a_tenant_that_says_nothing_takes_what_fits_its_embedder() -> None:
    assert tenant(top_k=3).min_score(SMALL) == 0.75
    assert tenant().min_score(LOCAL) is None


def test_what_a_tenant_says_counts_for_every_embedder() -> None:
    assert tenant(min_score=0.4).min_score(SMALL) == 0.4
    assert tenant(min_score=None).min_score(SMALL) is None
