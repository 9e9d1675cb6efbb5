import json
from typing import Any

import numpy as np
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import InputRejected, RerankFailed
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_remote_model, find_price
from tests.unit.models.providers.conftest import KEY, Ask, AskChat, AskReranker

EMBED = "/v2/embed"
RERANK = "/v2/rerank"
CHAT = "/v2/chat"


def answer(texts: list[str], dimensions: int = 1536) -> dict[str, Any]:
    rows = [[0.5] * dimensions for _ in texts]
    return {
        "id": "da6e531f",
        "embeddings": {"float": rows},
        "texts": texts,
        "meta": {"api_version": {"version": "2"}, "billed_units": {"input_tokens": 8}},
        "response_type": "embeddings_by_type",
    }


def embedded(request: Request) -> Response:
    """Respond as Cohere does; requests above its limits get its own error messages."""
    asked = request.get_json()
    if len(asked["texts"]) > 96:
        message = "invalid request: total number of texts must be at most 96"
        return Response(json.dumps({"message": message}), 400, content_type="application/json")
    body = answer(asked["texts"], asked.get("output_dimension", 1536))
    return Response(json.dumps(body), content_type="application/json")


@pytest.mark.parametrize(
    ("purpose", "input_type"), [("document", "search_document"), ("query", "search_query")]
)
def test_a_request_states_the_use_of_its_texts(
    httpserver: HTTPServer, ask: Ask, purpose: str, input_type: str
) -> None:
    httpserver.expect_request(EMBED, method="POST").respond_with_handler(embedded)
    reply = ask("cohere", purpose=purpose, dimensions=256)
    assert np.asarray(reply.vectors).tolist() == [[0.5] * 256] * 2
    assert reply.tokens == 8
    request = httpserver.log[0][0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.get_json() == {
        "model": "embed-v4.0", "texts": ["one", "two"], "input_type": input_type,
        "output_dimension": 256, "embedding_types": ["float"], "truncate": "NONE",
    }  # fmt: skip


def test_a_model_of_version_3_is_sent_no_dimensions(httpserver: HTTPServer, ask: Ask) -> None:
    httpserver.expect_request(EMBED).respond_with_json(answer(["one", "two"], 1024))
    ask("cohere", model="embed-multilingual-v3.0")
    assert "output_dimension" not in httpserver.log[0][0].get_json()


def test_a_call_has_no_more_texts_than_cohere_takes(httpserver: HTTPServer, ask: Ask) -> None:
    limits = build_remote_model(EmbedderConfig(provider="cohere")).limits
    httpserver.expect_request(EMBED).respond_with_handler(embedded)
    assert len(np.asarray(ask("cohere", ["text"] * limits.texts).vectors)) == 96
    with pytest.raises(InputRejected):
        ask("cohere", ["text"] * (limits.texts + 1))


def test_a_reranker_scores_in_order(httpserver: HTTPServer, ask_reranker: AskReranker) -> None:
    results = [{"index": 1, "relevance_score": 0.98}, {"index": 0, "relevance_score": 0.1}]
    httpserver.expect_request(RERANK, method="POST").respond_with_json(
        {"id": "07734bd2", "results": results, "meta": {"billed_units": {"search_units": 1}}}
    )
    assert ask_reranker("cohere", ["first", "second"]) == [0.1, 0.98]
    request = httpserver.log[0][0]
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    sent = {"model": "rerank-v3.5", "query": "What is it?", "documents": ["first", "second"]}
    assert request.get_json() == sent


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (429, {"message": KEY}, "unavailable"),
        (401, {"message": KEY}, "refused"),
        (200, {"id": "x", "results": [{"index": 5, "relevance_score": 0.1}]}, "malformed"),
    ],
)
def test_a_reranker_that_fails_says_how(
    httpserver: HTTPServer, ask_reranker: AskReranker, status: int, body: dict[str, Any], fault: str
) -> None:
    httpserver.expect_request(RERANK).respond_with_json(body, status)
    with pytest.raises(RerankFailed) as caught:
        ask_reranker("cohere", ["first"])
    assert caught.value.fault == fault
    assert KEY not in str(caught.value)


def test_a_chat_model_hides_its_thinking(httpserver: HTTPServer, ask_chat: AskChat) -> None:
    content = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Yes."}]
    units = {"input_tokens": 5, "output_tokens": 418}
    httpserver.expect_request(CHAT, method="POST").respond_with_json(
        {
            "id": "c14c80c3",
            "finish_reason": "MAX_TOKENS",
            "message": {"role": "assistant", "content": content},
            "usage": {"billed_units": units, "tokens": units},
        }
    )
    reply = ask_chat("cohere", model="command-a-03-2025")
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Yes.", 5, 418)
    assert reply.cut
    body = httpserver.log[0][0].get_json()
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert body["max_tokens"] == 100


def test_prices_follow_from_the_model() -> None:
    assert (price := find_price(EmbedderConfig(provider="cohere"))) is not None
    assert price.per_million == 0.12
