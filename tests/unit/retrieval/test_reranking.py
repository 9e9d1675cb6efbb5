"""The order that a second stage makes of what was found, and when there is one."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import NoReranker
from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.model import SearchRequest
from rag_assets.retrieval.reranking import Reread
from rag_assets.retrieval.resolved_search import Asked
from rag_assets.storage.index.model import Candidate
from rag_assets.tenants.model import Tenant

FOUND = [Passage(Candidate(id_, id_, "key", 0.5, f"files/{id_}", id_), (), {}) for id_ in "abcdef"]


def ordered(scores: dict[str, float], preferred: str = "") -> str:
    order = Reread(scores).ordered(FOUND, lambda candidate: candidate.id in preferred)
    return "".join(passage.id for passage in order)


def test_the_first_come_by_score_and_equal_ones_and_the_rest_as_they_stood() -> None:
    assert ordered({"a": 0.1, "b": 7.0, "c": 0.1, "d": -3.0}) == "bacdef"
    assert ordered({}) == "abcdef"


def test_what_shall_rank_higher_still_does() -> None:
    scores = {"a": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    assert ordered(scores, "cd") == "cdabef"
    assert ordered(scores, "f") == "abcdef"


def asked(wanted: bool | None, **retrieval: object) -> Asked:
    tenant = Tenant.from_config({"id": "acme", "retrieval": retrieval})
    return Asked.of(tenant, SearchRequest(query="q", top_k=7, rerank=wanted), "q", None)


def test_a_second_stage_is_what_the_request_or_else_the_tenant_says() -> None:
    config = {"folder": "/models/any", "first": 20}
    assert asked(None).rerank is None
    assert asked(False).depth == 7
    assert asked(None, rerank=config).depth == 20
    assert asked(None, rerank={**config, "first": 5}).depth == 7
    assert asked(False, rerank=config).rerank is None
    optional = {**config, "by_default": False}
    assert asked(None, rerank=optional).rerank is None
    assert asked(True, rerank=optional).depth == 20
    with pytest.raises(NoReranker, match="'acme' has no reranker"):
        asked(True)
