"""Google's own SDK with servers on loopback."""

import numpy as np
import pytest

from rag_assets.common.errors import MalformedResponse, NoProviderKey
from tests.unit.models.providers.conftest import KEY, no_key


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
    options = {"taskType": task, "outputDimensionality": 768}
    one, two = ({"content": {"parts": [{"text": text}]}, **options} for text in ("one", "two"))
    name = "models/gemini-embedding-001"
    assert request.get_json() == {"requests": [{"model": name, **one}, {"model": name, **two}]}


@pytest.mark.parametrize(
    ("purpose", "prefix"),
    [("document", "title: none | text: "), ("query", "task: search result | query: ")],
)
def test_the_second_model_gets_the_task_as_a_prefix(httpserver, ask, purpose, prefix):
    said = answer(2, 3072, usageMetadata={"promptTokenCount": 11})
    httpserver.expect_request(path("gemini-embedding-2")).respond_with_json(said)
    reply = ask("gemini", model="gemini-embedding-2", dimensions=3072, purpose=purpose)
    assert np.asarray(reply.vectors).shape == (2, 3072)
    assert reply.tokens == 11
    requests = httpserver.log[0][0].get_json()["requests"]
    texts = [request["content"]["parts"][0]["text"] for request in requests]
    assert texts == [f"{prefix}one", f"{prefix}two"]
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
    with pytest.raises(NoProviderKey):
        ask("gemini", credentials=no_key)
    assert httpserver.log == []
