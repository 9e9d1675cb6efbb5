import base64
import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import InputRejected, MalformedResponse, ProviderRefused, RerankFailed
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_remote_model, find_price
from tests.unit.models.providers.conftest import KEY, Ask, AskReranker

EMBEDDINGS = "/v1/embeddings"
RERANK = "/v1/rerank"


def embedded(request: Request) -> Response:
    """Respond as Voyage does: with packed vectors, and its own error messages."""
    asked = request.get_json()
    if len(asked["input"]) > 1_000:
        return refused("The batch size limit is 1000. Your batch size is too large.")
    row = np.full(asked["output_dimension"] or 1024, 0.5, "<f4")
    data = [
        {"object": "embedding", "index": n, "embedding": base64.b64encode(row).decode()}
        for n in range(len(asked["input"]))
    ]
    body = {"object": "list", "data": data, "model": asked["model"], "usage": {"total_tokens": 9}}
    return Response(json.dumps(body), content_type="application/json")


def refused(detail: str, status: int = 400) -> Response:
    return Response(json.dumps({"detail": detail}), status, content_type="application/json")


@pytest.mark.parametrize("purpose", ["document", "query"])
def test_a_request_states_the_purpose(httpserver: HTTPServer, ask: Ask, purpose: str) -> None:
    httpserver.expect_request(EMBEDDINGS, method="POST").respond_with_handler(embedded)
    reply = ask("voyage", purpose=purpose, dimensions=512)
    assert np.asarray(reply.vectors).tolist() == [[0.5] * 512] * 2
    assert reply.tokens == 9
    request = httpserver.log[0][0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    body = request.get_json()
    assert body["input"] == ["one", "two"]
    assert (body["model"], body["input_type"]) == ("voyage-4", purpose)
    assert body["output_dimension"] == 512
    assert body["truncation"] is False


@pytest.mark.parametrize("is_packed", [True, False])
def test_vectors_are_matched_by_index(httpserver: HTTPServer, ask: Ask, is_packed: bool) -> None:
    def item(index: int) -> dict[str, Any]:
        row = np.full(1024, index + 1, "<f4")
        packed = base64.b64encode(row.tobytes()).decode() if is_packed else row.tolist()
        return {"object": "embedding", "index": index, "embedding": packed}

    httpserver.expect_request(EMBEDDINGS).respond_with_json(
        {"object": "list", "data": [item(1), item(0)], "usage": {"total_tokens": 2}}
    )
    assert [row[0] for row in np.asarray(ask("voyage").vectors).tolist()] == [1.0, 2.0]


@pytest.mark.parametrize("indices", [(0, 0), (0, 2), (1, 2)])
def test_stray_rows_are_refused(httpserver: HTTPServer, ask: Ask, indices: tuple[int, int]) -> None:
    data = [{"object": "embedding", "index": n, "embedding": [0.5] * 1024} for n in indices]
    httpserver.expect_request(EMBEDDINGS).respond_with_json(
        {"object": "list", "data": data, "usage": {"total_tokens": 2}}
    )
    with pytest.raises(MalformedResponse):
        ask("voyage")


def test_a_model_of_one_domain_is_sent_no_dimensions(httpserver: HTTPServer, ask: Ask) -> None:
    httpserver.expect_request(EMBEDDINGS).respond_with_handler(embedded)
    ask("voyage", model="voyage-law-2")
    assert not httpserver.log[0][0].get_json().get("output_dimension")
    with pytest.raises(ValidationError, match="1024 dimensions, not 512"):
        ask("voyage", model="voyage-law-2", dimensions=512)


def test_too_many_texts_are_refused_in_voyages_words(httpserver: HTTPServer, ask: Ask) -> None:
    httpserver.expect_request(EMBEDDINGS).respond_with_handler(embedded)
    with pytest.raises(InputRejected):
        ask("voyage", ["text"] * 1_001)


def test_a_reranker_scores_in_order(httpserver: HTTPServer, ask_reranker: AskReranker) -> None:
    data = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    answer: dict[str, Any] = {"object": "list", "data": data, "model": "rerank-2.5"}
    httpserver.expect_request(RERANK, method="POST").respond_with_json(
        {**answer, "usage": {"total_tokens": 26}}
    )
    assert ask_reranker("voyage", ["first", "second"]) == [0.2, 0.9]
    request = httpserver.log[0][0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    body = request.get_json()
    assert (body["model"], body["query"]) == ("rerank-2.5", "What is it?")
    assert body["documents"] == ["first", "second"]


def test_limited_reranker_is_unavailable(httpserver: HTTPServer, ask_reranker: AskReranker) -> None:
    httpserver.expect_request(RERANK).respond_with_response(refused(f"{KEY} slow down", 429))
    with pytest.raises(RerankFailed) as caught:
        ask_reranker("voyage", ["first"], model="rerank-2.5-lite")
    assert caught.value.fault == "unavailable"
    assert KEY not in str(caught.value)


def test_a_model_that_the_sdk_runs_itself_is_refused(httpserver: HTTPServer, ask: Ask) -> None:
    with pytest.raises(ProviderRefused, match="voyage-4-nano"):
        ask("voyage", model="voyage-4-nano", dimensions=512)
    assert httpserver.log == []


def test_limits_and_prices_follow_from_the_model() -> None:
    config = EmbedderConfig(provider="voyage", model="voyage-3-large")
    assert (price := find_price(config)) is not None
    assert price.per_million == 0.18
    limits = build_remote_model(config).limits
    assert (limits.texts, limits.tokens, limits.input_tokens) == (100, 120_000, 32_000)
    assert build_remote_model(config).dimensions == 1024
