"""Google's own SDK with servers on loopback."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pydantic import SecretStr

from rag_assets.common.errors import (
    InputRejected,
    MalformedResponse,
    NoProviderKey,
    ProviderRefused,
    ProviderUnavailable,
)
from tests.unit.models.providers.conftest import KEY


def path(model: str = "gemini-embedding-001") -> str:
    return f"/v1beta/models/{model}:batchEmbedContents"


def answer(count: int, dimensions: int = 1536, **more) -> dict:
    return {"embeddings": [{"values": [float(n + 1)] * dimensions} for n in range(count)], **more}


@pytest.mark.parametrize(
    ("purpose", "task"), [("document", "RETRIEVAL_DOCUMENT"), ("query", "RETRIEVAL_QUERY")]
)
def test_the_first_model_gets_the_task_as_a_parameter(httpserver, ask, purpose, task):
    httpserver.expect_request(path(), method="POST").respond_with_json(answer(2, 768))
    reply = ask("gemini", dimensions=768, purpose=purpose)
    assert np.asarray(reply.vectors).tolist() == [[1.0] * 768, [2.0] * 768]
    assert reply.tokens is None
    request = httpserver.log[0][0]
    assert request.headers["X-Goog-Api-Key"] == KEY
    assert KEY not in request.url
    assert request.get_json() == {
        "requests": [
            {
                "model": "models/gemini-embedding-001",
                "content": {"parts": [{"text": text}]},
                "taskType": task,
                "outputDimensionality": 768,
            }
            for text in ("one", "two")
        ]
    }


@pytest.mark.parametrize(
    ("purpose", "prefix"),
    [("document", "title: none | text: "), ("query", "task: search result | query: ")],
)
def test_the_second_model_gets_the_task_as_a_prefix_and_returns_a_vector_each(
    httpserver, ask, purpose, prefix
):
    said = answer(2, 3072, usageMetadata={"promptTokenCount": 11})
    httpserver.expect_request(path("gemini-embedding-2")).respond_with_json(said)
    reply = ask("gemini", model="gemini-embedding-2", dimensions=3072, purpose=purpose)
    assert np.asarray(reply.vectors).shape == (2, 3072)
    assert reply.tokens == 11
    requests = httpserver.log[0][0].get_json()["requests"]
    assert [request["content"]["parts"][0]["text"] for request in requests] == [
        f"{prefix}one",
        f"{prefix}two",
    ]
    assert all("taskType" not in request for request in requests)


def test_tokens_that_no_request_has_are_as_good_as_none(httpserver, ask):
    said = answer(2, 3072, usageMetadata={"promptTokenCount": 10**12})
    httpserver.expect_request(path("gemini-embedding-2")).respond_with_json(said)
    assert ask("gemini", model="gemini-embedding-2", dimensions=3072).tokens is None


def test_the_former_model_is_filled_up_with_zeros(httpserver, ask):
    httpserver.expect_request(path("text-embedding-004")).respond_with_json(answer(2, 768))
    reply = ask("gemini", model="text-embedding-004", dimensions=1536)
    vectors = np.asarray(reply.vectors)
    assert vectors.shape == (2, 1536)
    assert vectors[:, :768].all()
    assert not vectors[:, 768:].any()
    assert "outputDimensionality" not in httpserver.log[0][0].get_json()["requests"][0]


def test_vectors_that_are_too_short_are_refused(httpserver, ask):
    httpserver.expect_request(path("text-embedding-004")).respond_with_json(answer(2, 700))
    with pytest.raises(MalformedResponse, match="768"):
        ask("gemini", model="text-embedding-004", dimensions=1536)


def test_without_a_key_nothing_is_sent(httpserver, ask, monkeypatch):
    monkeypatch.setenv("GOOGLE_API_KEY", "of-the-operator")
    monkeypatch.setenv("GEMINI_API_KEY", "of-the-operator")

    def no_key() -> SecretStr:
        raise NoProviderKey("there is none")

    with pytest.raises(NoProviderKey):
        ask("gemini", credentials=no_key)
    assert httpserver.log == []


def test_nothing_of_the_operators_environment_counts(httpserver, ask, monkeypatch):
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_CLOUD_PROJECT"):
        monkeypatch.setenv(name, "of-the-operator")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    httpserver.expect_request(path()).respond_with_json(answer(2))
    ask("gemini")
    assert "of-the-operator" not in str(httpserver.log[0][0].headers)
    assert httpserver.log[0][0].headers["X-Goog-Api-Key"] == KEY


def failed(status: str, *details: dict) -> dict:
    return {"error": {"code": 0, "message": f"{KEY} one", "status": status, "details": details}}


def quota(name: str) -> dict:
    kind = "type.googleapis.com/google.rpc.QuotaFailure"
    return {"@type": kind, "violations": [{"quotaId": name, "quotaValue": "1000"}]}


RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "37s"}
INVALID_KEY = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "message", "retry_after"),
    [
        (400, failed("INVALID_ARGUMENT"), {}, InputRejected, "rejects a text", None),
        (400, failed("INVALID_ARGUMENT", INVALID_KEY), {}, ProviderRefused, "the key", None),
        (403, failed("PERMISSION_DENIED"), {}, ProviderRefused, "the key", None),
        (404, failed("NOT_FOUND"), {}, ProviderRefused, "no such model", None),
        (
            429,
            failed("RESOURCE_EXHAUSTED", RETRY),
            {},
            ProviderUnavailable,
            "limits requests",
            37.0,
        ),
        (
            429,
            failed("RESOURCE_EXHAUSTED", quota("EmbedRequestsPerMinutePerProject"), RETRY),
            {"Retry-After": "1"},
            ProviderUnavailable,
            "limits requests",
            37.0,
        ),
        (
            429,
            failed("RESOURCE_EXHAUSTED", quota("EmbedRequestsPerDayPerProject"), RETRY),
            {},
            ProviderRefused,
            "exhausted",
            None,
        ),
        (429, "slow", {"Retry-After": "2"}, ProviderUnavailable, "limits requests", 2.0),
        (500, failed("INTERNAL"), {}, ProviderUnavailable, "HTTP 500", None),
        (503, [failed("UNAVAILABLE", RETRY)], {}, ProviderUnavailable, "HTTP 503", 37.0),
        (302, "moved", {"Location": "http://127.0.0.1:1/"}, ProviderRefused, "redirects", None),
        (418, {"error": "a teapot"}, {}, ProviderRefused, "refuses the request", None),
        (500, {"error": {"details": "none"}}, {}, ProviderUnavailable, "HTTP 500", None),
    ],
)
def test_refusals_get_their_names_and_are_not_tried_again(
    httpserver, ask, status, body, headers, kind, message, retry_after
):
    said = body if isinstance(body, str) else json.dumps(body)
    httpserver.expect_request(path()).respond_with_data(
        said, status=status, headers=headers, content_type="application/json"
    )
    with pytest.raises(kind, match=message) as caught:
        ask("gemini")
    assert type(caught.value) is kind
    assert len(httpserver.log) == 1
    assert getattr(caught.value, "retry_after", None) == retry_after
    assert caught.value.__context__ is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        "",
        "{",
        "null",
        "[]",
        "{}",
        '{"embeddings": null}',
        '{"embeddings": 3}',
        json.dumps(answer(1)),
        json.dumps(answer(3)),
        '{"embeddings": [{"values": "a"}, {"values": [1]}]}',
    ],
)
def test_a_malformed_response_is_refused(httpserver, ask, body):
    httpserver.expect_request(path()).respond_with_data(body, content_type="application/json")
    with pytest.raises(MalformedResponse):
        ask("gemini")
