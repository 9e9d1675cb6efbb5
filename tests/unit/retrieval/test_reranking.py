"""The order that a reranker makes of what was found, and when there is one."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import NoReranker
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.model import SearchRequest
from rag_assets.retrieval.reranking import Reranking
from rag_assets.retrieval.resolved_search import ResolvedSearch
from rag_assets.storage.index.model import Candidate
from rag_assets.tenants.model import Tenant

FOUND = [Passage(Candidate(id_, id_, "key", 0.5, f"files/{id_}", id_), (), {}) for id_ in "abcdef"]


def ordered(scores: dict[str, float], preferred: str = "") -> str:
    order = Reranking(scores).ordered(FOUND, lambda candidate: candidate.id in preferred)
    return "".join(passage.id for passage in order)


def test_the_first_come_by_score_and_equal_ones_and_the_rest_as_they_stood() -> None:
    assert ordered({"a": 0.1, "b": 7.0, "c": 0.1, "d": -3.0}) == "bacdef"
    assert ordered({}) == "abcdef"


def test_what_shall_rank_higher_still_does() -> None:
    scores = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert ordered(scores, "cd") == "cdabef"
    assert ordered(scores, "f") == "abcdef"


def resolved(wanted: bool | None, **retrieval: object) -> ResolvedSearch:
    tenant = Tenant.from_config({"id": "acme", "retrieval": retrieval})
    return ResolvedSearch.of(tenant, SearchRequest(query="q", top_k=7, rerank=wanted), "q", None)


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
