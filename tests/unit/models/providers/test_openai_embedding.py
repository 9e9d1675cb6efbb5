"""OpenAI's own SDK with servers on loopback."""

import asyncio
import base64
import json
import struct

import numpy as np
import pytest
from pydantic import SecretStr
from werkzeug import Request, Response

from rag_assets.common.errors import (
    MalformedResponse,
    NoProviderKey,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.models.config import EmbedderConfig
from tests.unit.models.providers.conftest import KEY, endpoint_of, no_key

PATH = "/v1/embeddings"
COMPATIBLE = {"provider": "openai-compatible", "model": "e5", "dimensions": 2}


def answer(vectors, *, order=None, **more) -> dict:
    data = [{"object": "embedding", "index": n, "embedding": v} for n, v in enumerate(vectors)]
    shuffled = [data[n] for n in order] if order else data
    return {"object": "list", "model": "m", "data": shuffled, **more}


@pytest.mark.slow
def test_vectors_come_in_the_order_of_the_texts(httpserver, ask):
    said = answer([[1, 0], [0, 1]], order=[1, 0], usage={"prompt_tokens": 7, "total_tokens": 7})
    httpserver.expect_request(PATH, method="POST").respond_with_json(said)
    reply = ask(**COMPATIBLE)
    assert reply.vectors == [[1, 0], [0, 1]]
    assert reply.tokens == 7
    request = httpserver.log[0][0]
    sent = {"model": "e5", "input": ["one", "two"], "encoding_format": "float"}
    assert request.get_json() == sent
    assert request.headers["Authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("said", [0, -7, 10**25, 1.5, True, "7", None])
def test_tokens_that_no_request_has_are_as_good_as_none(httpserver, ask, said):
    body = answer([[1, 0], [0, 1]], usage={"total_tokens": said})
    httpserver.expect_request(PATH).respond_with_json(body)
    assert ask(**COMPATIBLE).tokens is None


def test_requests_to_openai_have_base64_encoding_and_the_chosen_dimensions(httpserver, ask):
    packed = [base64.b64encode(struct.pack("<2f", *v)).decode() for v in ((1, 0), (0, 1))]
    httpserver.expect_request(PATH).respond_with_json(answer(packed, order=[1, 0]))
    reply = ask("openai", dimensions=2)
    np.testing.assert_array_equal(reply.vectors, [[1, 0], [0, 1]])
    assert reply.tokens is None
    sent = httpserver.log[0][0].get_json()
    assert sent["dimensions"] == 2
    assert sent["encoding_format"] == "base64"


def test_a_model_that_takes_no_dimensions_is_sent_none(httpserver, ask):
    httpserver.expect_request(PATH).respond_with_json(answer([[1.0] * 1536]))
    ask("openai", texts=["one"], model="text-embedding-ada-002")
    assert "dimensions" not in httpserver.log[0][0].get_json()


def test_prefixes_say_what_a_text_is_for(httpserver, ask):
    httpserver.expect_request(PATH).respond_with_json(answer([[1, 0]]))
    prefixes = {"document_prefix": "passage: ", "query_prefix": "query: "}
    for purpose in ("document", "query"):
        ask(**COMPATIBLE, **prefixes, texts=["one"], purpose=purpose)
    sent = [request.get_json()["input"] for request, _ in httpserver.log]
    assert sent == [["passage: one"], ["query: one"]]


def test_a_lone_surrogate_is_sent_as_what_can_be_sent(httpserver, ask):
    httpserver.expect_request(PATH).respond_with_json(answer([[1, 0]]))
    assert ask(**COMPATIBLE, texts=["a\ud800b"]).vectors == [[1, 0]]
    assert httpserver.log[0][0].get_json()["input"] == ["a?b"]


def test_a_compatible_server_may_need_no_key(httpserver, ask, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-operator")
    httpserver.expect_request(PATH).respond_with_json(answer([[1, 0]]))
    assert ask(**COMPATIBLE, texts=["one"], credentials=no_key).vectors == [[1, 0]]
    assert "Authorization" not in httpserver.log[0][0].headers


@pytest.mark.parametrize(
    "options", [{"provider": "openai"}, {**COMPATIBLE, "api_key": "$A_VARIABLE_THAT_IS_NOT_SET"}]
)
def test_without_a_key_nothing_is_sent_where_one_is_needed(httpserver, ask, options):
    with pytest.raises(NoProviderKey) as caught:
        ask(**options, credentials=no_key)
    assert caught.value.requests == 0
    assert httpserver.log == []


def failed(code: str | None = None, kind: str | None = None) -> dict:
    return {"error": {"message": f"{KEY} one two", "type": kind, "param": None, "code": code}}


@pytest.mark.parametrize("vectors", [[[1, 0]], [[1, 0], [0, 1], [1, 1]]])
def test_unreadable_vectors_are_charged_nevertheless(httpserver, ask, vectors):
    said = answer(vectors, usage={"total_tokens": 500})
    httpserver.expect_request(PATH).respond_with_json(said)
    with pytest.raises(MalformedResponse) as caught:
        ask(**COMPATIBLE)
    assert caught.value.tokens == 500
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "vector", [{"embedding": None}, {"embedding": "!!!"}, {"embedding": "AAA"}, {}]
)
def test_a_malformed_or_missing_vector_is_empty_beside_a_good_one(httpserver, ask, vector):
    said = answer([[1, 0]])
    said["data"].append({"object": "embedding", "index": 1, **vector})
    httpserver.expect_request(PATH).respond_with_json(said)
    good, bad = ask(**COMPATIBLE).vectors
    assert list(good) == [1, 0]
    assert len(bad) == 0


def raw_server(behaviour):
    """Run a server that violates HTTP."""

    async def run(**options) -> None:
        server = await asyncio.start_server(behaviour, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        config = EmbedderConfig(**COMPATIBLE, base_url=f"http://127.0.0.1:{port}/v1")
        endpoint = endpoint_of(config, lambda: SecretStr(KEY))
        try:
            await endpoint.request(["one"], "document")
        finally:
            await endpoint.close()
            server.close()

    return run


def test_connections_that_are_cut_are_tried_again_later():
    async def cut_at_once(reader, writer):
        writer.close()

    def answer_only(data: bytes):
        async def behaviour(reader, writer):
            await reader.read(1024)
            writer.write(data)
            await writer.drain()
            writer.close()

        return behaviour

    cut_in_the_middle = answer_only(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{")
    for behaviour in (cut_at_once, cut_in_the_middle, answer_only(b"SSH-2.0-OpenSSH\r\n")):
        with pytest.raises(ProviderUnavailable, match="cannot be reached, or closed"):
            asyncio.run(raw_server(behaviour)())


def test_an_answer_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr("rag_assets.models.transport.connection.REQUEST_SECONDS", 0.3)

    async def drip(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.05)
        except ConnectionError:
            pass
        finally:
            writer.close()

    with pytest.raises(ProviderUnavailable, match="in time"):
        asyncio.run(raw_server(drip)())


def test_a_refused_connection_is_transient(ask):
    with pytest.raises(ProviderUnavailable, match="cannot be reached"):
        ask(**COMPATIBLE, base_url="http://127.0.0.1:9/v1")


def test_a_refused_key_is_read_again(httpserver):
    """A long-lived process must notice a new key."""

    def handler(request: Request) -> Response:
        if request.headers["Authorization"] != "Bearer new":
            return Response(json.dumps(failed("invalid_api_key")), status=401)
        return Response(json.dumps(answer([[1, 0]])), content_type="application/json")

    httpserver.expect_request(PATH).respond_with_handler(handler)
    keys = ["old", "new", "never asked for"]
    config = EmbedderConfig(**COMPATIBLE, base_url=f"http://127.0.0.1:{httpserver.port}/v1")
    endpoint = endpoint_of(config, lambda: SecretStr(keys.pop(0)))

    async def run() -> None:
        with pytest.raises(ProviderRefused):
            await endpoint.request(["one"], "document")
        for _ in range(2):
            assert (await endpoint.request(["one"], "document")).vectors == [[1, 0]]
        await endpoint.close()

    asyncio.run(run())
    assert keys == ["never asked for"]


def test_many_requests_share_a_client_and_closing_waits_for_them(httpserver):
    def handler(request: Request) -> Response:
        return Response(json.dumps(answer([[1, 0]])), content_type="application/json")

    httpserver.expect_request(PATH).respond_with_handler(handler)
    asked: list[int] = []

    def credentials() -> SecretStr:
        asked.append(1)
        return SecretStr(KEY)

    config = EmbedderConfig(**COMPATIBLE, base_url=f"http://127.0.0.1:{httpserver.port}/v1")
    endpoint = endpoint_of(config, credentials)

    async def run() -> None:
        under_way = [asyncio.create_task(endpoint.request(["one"], "document")) for _ in range(5)]
        while not asked:
            await asyncio.sleep(0)
        await endpoint.close()
        await asyncio.gather(*under_way)
        await endpoint.close()

    asyncio.run(run())
    assert len(httpserver.log) == 5
    assert len(asked) <= 2
