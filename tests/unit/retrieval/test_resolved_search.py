from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rag_assets.retrieval.model import SearchRequest
from rag_assets.retrieval.resolved_search import ResolvedSearch
from rag_assets.storage.catalog.generations import Generation
from rag_assets.tenants.model import Tenant

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SMALL = "openai/text-embedding-3-small@1536"
# The profile that has a threshold with this embedder is not offered yet.
TENANT = Tenant.from_config({"id": "acme"}).model_copy(update={"profile": "team-guidelines"})


def serving(embedder_id: str) -> Generation:
    return Generation(1, "k", "rag-index-3", "u", embedder_id, {}, 3, "SERVING", NOW, None)


@pytest.mark.parametrize(
    ("asked", "embedder_id", "least"),
    [(None, SMALL, 0.75), (0.2, SMALL, 0.2), (-1.0, SMALL, -1.0), (None, "local/mini@384", None)],
)
def test_a_threshold_is_what_was_asked_or_suits_what_answers(
    asked: float | None, embedder_id: str, least: float | None
) -> None:
    request = SearchRequest(query="tide", min_score=asked, mode="text")
    found = ResolvedSearch.of(TENANT, request, request.query, serving(embedder_id))
    assert found.min_cosine == least
    assert found.needs_vector is (least is not None)


def test_where_nothing_answers_yet_there_is_no_threshold() -> None:
    assert ResolvedSearch.of(TENANT, SearchRequest(query="tide"), "tide", None).min_cosine is None
