"""When and how a reranker changes the order of candidates."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import NoReranker
from rag_assets.search.model import SearchRequest
from rag_assets.search.progress import Passage, Reranking, ResolvedSearch
from rag_assets.search.scoring import order_by_reranker
from rag_assets.storage.index.model import Candidate
from rag_assets.tenants.model import Tenant

FOUND = [Passage(Candidate(id_, id_, "key", 0.5, f"files/{id_}", id_), (), {}) for id_ in "abcdef"]


def ordered(scores: dict[str, float], preferred: str = "") -> str:
    order = order_by_reranker(Reranking(scores), FOUND, lambda candidate: candidate.id in preferred)
    return "".join(passage.id for passage in order)


def test_the_first_come_by_score_and_equal_ones_and_the_rest_as_they_stood() -> None:
    assert ordered({"a": 0.1, "b": 7.0, "c": 0.1, "d": -3.0}) == "bacdef"
    assert ordered({}) == "abcdef"


def test_what_shall_rank_higher_still_does() -> None:
    scores = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert ordered(scores, "cd") == "cdabef"
    assert ordered(scores, "f") == "abcdef"


def test_a_blend_weighs_both_scores_over_the_passages_that_were_scored() -> None:
    scores, fused = {"a": -4.0, "b": -2.0, "c": 6.0}, {"a": 1.0, "b": 0.9, "c": 0.2, "d": 0.1}

    def blended(blend: float, scores: dict[str, float] = scores) -> str:
        order = order_by_reranker(Reranking(scores, blend=blend), FOUND, lambda _: False, fused)
        return "".join(passage.id for passage in order)

    assert [blended(blend) for blend in (0.1, 0.4, 0.6, 1.0)] == [
        *("abcdef", "bacdef", "cbadef", "cbadef")
    ]
    # Equal scores of the model leave the order of the search; so does a single passage.
    assert blended(0.5, dict.fromkeys("abc", 3.0)) == "abcdef"
    assert blended(0.5, {"a": 3.0}) == "abcdef"
    assert blended(0.5, {"e": 1.0, "f": 2.0}) == "feabcd"


def resolved(wanted: bool | None, **retrieval: object) -> ResolvedSearch:
    tenant = Tenant.from_config({"id": "acme", "retrieval": retrieval})
    return ResolvedSearch.resolve(
        tenant, SearchRequest(query="q", top_k=7, rerank=wanted), "q", None
    )


def test_the_request_or_else_the_tenant_decides_whether_to_rerank() -> None:
    config = {"folder": "/models/any", "first": 20}
    assert resolved(None).rerank is None
    assert resolved(False).depth == 7
    assert resolved(None, rerank=config).depth == 20
    assert resolved(None, rerank={**config, "first": 5}).depth == 7
    assert resolved(False, rerank=config).rerank is None
    optional = {**config, "by_default": False}
    assert resolved(None, rerank=optional).rerank is None
    assert resolved(True, rerank=optional).depth == 20
    with pytest.raises(NoReranker, match="'acme' has no reranker"):
        resolved(True)


def is_reranked(query: str, config: dict[str, object], **tenant: object) -> bool:
    """Return whether a search of a tenant is reranked."""
    found = Tenant.from_config({"id": "acme", "retrieval": {"rerank": config}, **tenant})
    request = SearchRequest(query=query, rerank=True)
    return ResolvedSearch.resolve(found, request, query, None).rerank is not None


def test_the_shipped_model_reranks_questions_in_english_only() -> None:
    shipped, english = {"model": "ms-marco-minilm-l12"}, "How long is the notice period?"
    assert is_reranked(english, shipped)
    for other in (
        "Wie lang ist die Kündigungsfrist?",
        "ما هي مدة الإشعار؟",
        "通知期間は何日ですか",
    ):
        assert not is_reranked(other, shipped)
        assert is_reranked(other, {**shipped, "languages": "any"})
        assert is_reranked(other, {"folder": "/models/any"})
