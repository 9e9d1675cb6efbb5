"""Ollama and vLLM through OpenAI's API, with responses as their documentation describes them."""

from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from pytest_httpserver import HTTPServer

from rag_assets.models.config import EmbedderConfig
from rag_assets.models.factory import build_remote_model, find_price
from tests.unit.models.providers.conftest import Ask, AskChat, no_key

INSTRUCTION = (
    "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
)
EMBEDDINGS = "/v1/embeddings"


def answer(dimensions: int, model: str) -> dict[str, Any]:
    rows = [{"object": "embedding", "index": n, "embedding": [0.5] * dimensions} for n in range(2)]
    usage = {"prompt_tokens": 4, "total_tokens": 4}
    return {"object": "list", "data": rows, "model": model, "usage": usage}


@pytest.mark.parametrize(
    ("provider", "model", "dimensions", "document", "query"),
    [
        ("ollama", "nomic-embed-text", 768, "search_document: one", "search_query: one"),
        ("ollama", "bge-m3", 1024, "one", "one"),
        ("vllm", "intfloat/multilingual-e5-large", 1024, "passage: one", "query: one"),
        ("vllm", "Qwen/Qwen3-Embedding-0.6B", 1024, "one", f"{INSTRUCTION}one"),
    ],
)
def test_a_listed_model_needs_no_settings(
    httpserver: HTTPServer,
    ask: Ask,
    provider: str,
    model: str,
    dimensions: int,
    document: str,
    query: str,
) -> None:
    said = answer(dimensions, model)
    httpserver.expect_request(EMBEDDINGS, method="POST").respond_with_json(said)
    for purpose, text in (("document", document), ("query", query)):
        reply = ask(provider, ["one", "two"], purpose, no_key, model=model)
        assert np.asarray(reply.vectors).shape == (2, dimensions)
        request = httpserver.log[-1][0]
        body = request.get_json()
        assert body["input"][0] == text
        assert "dimensions" not in body
        assert "Authorization" not in request.headers


def test_a_model_that_is_not_listed_needs_its_dimensions() -> None:
    given = {"provider": "ollama", "base_url": "https://models.example/v1", "model": "own"}
    with pytest.raises(ValidationError, match="set its dimensions"):
        EmbedderConfig.model_validate(given)
    config = EmbedderConfig.model_validate({**given, "dimensions": 5})
    assert build_remote_model(config).dimensions == 5
    assert find_price(config) is None


@pytest.mark.parametrize("provider", ["ollama", "vllm"])
def test_a_chat_needs_no_key(httpserver: HTTPServer, ask_chat: AskChat, provider: str) -> None:
    message = {"role": "assistant", "content": "<think>Hm.</think>Yes."}
    httpserver.expect_request("/v1/chat/completions", method="POST").respond_with_json(
        {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    )
    assert ask_chat(provider, key=None).text == "Yes."
    request = httpserver.log[0][0]
    assert "Authorization" not in request.headers
    assert request.get_json()["max_tokens"] == 100
