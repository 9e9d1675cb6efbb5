"""Models that rerank passages of code."""

from __future__ import annotations

from rag_assets.tenants.model import Tenant
from tests.unit.search.test_reranking import is_reranked


def test_the_shipped_model_does_not_rerank_code() -> None:
    code = {"chunker": {"chunker": "code"}}
    english = "How long is the notice period?"
    assert Tenant.from_config({"id": "acme", **code}).reads_facts
    assert not is_reranked(english, {"model": "ms-marco-minilm-l12"}, **code)
    assert is_reranked(english, {"folder": "/models/any"}, **code)
