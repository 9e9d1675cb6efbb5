"""OpenAI's batch API through its SDK, with an independent server and with a harmful one."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import numpy as np
import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_assets.common.errors import (
    BatchLost,
    MalformedResponse,
    ProviderRefused,
    ProviderUnavailable,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.remote import (
    BatchResult,
    BatchStatus,
    run_and_close,
    split_into_batches,
)
from rag_assets.models.factory import build_batch_api, build_remote_model
from rag_assets.models.providers import openai as openai_provider
from rag_assets.models.providers.openai import OpenAIBatches
from rag_assets.models.transport import http_client
from tests.batch_server import BatchServer
from tests.unit.models.providers.conftest import KEY

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock


# The server does not close what was uploaded to it.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*SpooledTemporaryFile:pytest.PytestUnraisableExceptionWarning"
)


_T = TypeVar("_T")
ITEMS = [EmbedItem(f"key-{n}", f"passage number {n}") for n in range(5)]


@pytest.fixture
def server(llmock: LLMock, monkeypatch: pytest.MonkeyPatch) -> BatchServer:
    return BatchServer(llmock, monkeypatch)


def ask(server: BatchServer, what: Callable[[OpenAIBatches], Awaitable[_T]]) -> _T:
    async def run() -> _T:
        config = EmbedderConfig(provider="openai", base_url=server.base_url, batch_above=1)
        allowed = PrivateEndpoints.parse(urlsplit(server.base_url).netloc)
        api = build_batch_api(config, credentials=lambda: SecretStr("sk-test"), network=allowed)
        assert isinstance(api, OpenAIBatches)

        async def work() -> _T:
            return await what(api)

        return await run_and_close(api, work())

    return asyncio.run(run())


def submit(server: BatchServer, tag: str = "tag") -> str:
    return ask(server, lambda api: api.submit(ITEMS, tag))


def results(server: BatchServer, batch_id: str) -> dict[str, BatchResult]:
    async def collect(api: OpenAIBatches) -> dict[str, BatchResult]:
        return {result.key: result async for result in api.results(batch_id)}

    return ask(server, collect)


@pytest.mark.slow
def test_texts_go_out_as_one_batch_and_come_back_by_their_keys(server: BatchServer) -> None:
    batch_id = submit(server)
    assert server.texts == [[item.text for item in ITEMS]]
    assert ask(server, lambda api: api.status(batch_id)) == BatchStatus("under way")
    server.finish()
    assert ask(server, lambda api: api.status(batch_id)) == BatchStatus("ended")
    found = results(server, batch_id)
    assert found.keys() == {item.key for item in ITEMS}
    assert {np.shape(result.vector) for result in found.values()} == {(1536,)}
    assert all(result.tokens > 0 for result in found.values())


@pytest.mark.slow
def test_vectors_are_taken_as_base64_too(server: BatchServer) -> None:
    batch_id = submit(server)
    server.finish()
    server.change_results(lambda lines: [_with_embedding(lines[0], "AACAPwAAAAA=")])
    assert np.array_equal(results(server, batch_id)["key-0"].vector, np.array([1, 0], np.float32))


@pytest.mark.slow
def test_a_batch_is_found_by_its_tag(server: BatchServer) -> None:
    now = datetime.now(UTC) - timedelta(minutes=1)
    first, second = submit(server, "one"), submit(server, "two")
    assert ask(server, lambda api: api.find("one", now)) == first
    assert ask(server, lambda api: api.find("two", now)) == second
    assert ask(server, lambda api: api.find("three", now)) is None


def test_a_refused_text_has_no_vector_and_costs_no_other_its_own(server: BatchServer) -> None:
    batch_id = submit(server)
    server.finish()
    refused = {"custom_id": "key-3", "response": {"status_code": 400, "body": {}}, "error": None}
    server.change_results(lambda lines: [*lines[:3], refused, lines[4]])
    found = results(server, batch_id)
    assert found["key-3"] == BatchResult("key-3", None)
    assert sum(result.vector is not None for result in found.values()) == 4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("status", "fields", "standing"),
    [
        ("in_progress", {}, BatchStatus("under way")),
        ("finalizing", {}, BatchStatus("under way")),
        ("expired", {"output_file_id": "file-1"}, BatchStatus("ended")),
        ("expired", {}, BatchStatus("failed", "expired")),
        ("cancelled", {}, BatchStatus("failed", "cancelled")),
        ("failed",
         {"errors": {"data": [{"code": "token_limit_exceeded", "message": "passage 3 …"}]}},
         BatchStatus("failed", "token_limit_exceeded")),
        ("failed", {"errors": {"data": [{"code": "see: passage 3"}]}},
         BatchStatus("failed", "failed")),
    ],
)  # fmt: skip
def test_how_a_batch_stands(
    server: BatchServer, status: str, fields: dict[str, Any], standing: BatchStatus
) -> None:
    batch_id = submit(server)
    server.end(status, **fields)
    assert ask(server, lambda api: api.status(batch_id)) == standing


def test_a_batch_that_the_provider_does_not_know_has_failed(server: BatchServer) -> None:
    assert ask(server, lambda api: api.status("batch_none")).state == "failed"


@pytest.mark.parametrize(("status", "kind"), [(401, ProviderRefused), (503, ProviderUnavailable)])
def test_failures_have_usual_names(server: BatchServer, status: int, kind: type[Exception]) -> None:
    server.llmock.fail(status, times=None)
    with pytest.raises(kind):
        submit(server)


def test_batches_are_as_large_as_a_provider_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.models.embedding.remote.MAX_BATCH_TEXTS", 3)
    assert [len(batch) for batch in split_into_batches(ITEMS)] == [3, 2]
    monkeypatch.setattr("rag_assets.models.embedding.remote.MAX_BATCH_BYTES", 40)
    assert [len(batch) for batch in split_into_batches(ITEMS)] == [2, 2, 1]
    assert list(split_into_batches([])) == []


def _with_embedding(line: dict[str, Any], embedding: str) -> dict[str, Any]:
    line["response"]["body"]["data"][0]["embedding"] = embedding
    return line


Ask = Callable[[Callable[[OpenAIBatches], Awaitable[_T]]], _T]
BATCH = "/v1/batches/batch_1"
CONTENT = "/v1/files/file-1/content"
ENDED = {"id": "batch_1", "status": "completed", "output_file_id": "file-1"}


@pytest.fixture
def ask_api(httpserver: HTTPServer) -> Ask[Any]:
    def run(what: Callable[[OpenAIBatches], Awaitable[Any]]) -> Any:
        async def work() -> Any:
            config = EmbedderConfig(provider="openai", base_url=httpserver.url_for("/v1"))
            allowed = PrivateEndpoints.parse(urlsplit(httpserver.url_for("/")).netloc)
            api = OpenAIBatches(build_remote_model(config), lambda: SecretStr(KEY), allowed)

            async def asked() -> Any:
                return await what(api)

            return await run_and_close(api, asked())

        return asyncio.run(work())

    return run


def read_results(ask_api: Ask[list[BatchResult]]) -> list[BatchResult]:
    async def read(api: OpenAIBatches) -> list[BatchResult]:
        return [result async for result in api.results("batch_1")]

    return ask_api(read)


def line(**changes: Any) -> str:
    body = {"data": [{"embedding": [1.0, 0.0]}], "usage": {"total_tokens": 3}, **changes}
    return json.dumps({"custom_id": "key", "response": {"status_code": 200, "body": body}})


def test_no_key_passes_for_the_id_of_a_batch(
    httpserver: HTTPServer, ask_api: Ask[Any], caplog: pytest.LogCaptureFixture
) -> None:
    batch = {"id": KEY, "status": "validating", "metadata": {"rag_assets": "tag"}}
    httpserver.expect_request("/v1/files").respond_with_json({"id": "file-1"})
    httpserver.expect_request("/v1/batches", method="POST").respond_with_json(batch)
    httpserver.expect_request("/v1/batches", method="GET").respond_with_json({"data": [batch]})
    now = datetime.now(UTC) - timedelta(minutes=1)
    for what in (
        lambda api: api.submit([EmbedItem("key", "text")], "tag"),
        lambda api: api.find("tag", now),
    ):
        with pytest.raises(ProviderUnavailable) as caught:
            ask_api(what)
        assert KEY not in repr(caught.value) + caplog.text


@pytest.mark.parametrize("status", [KEY, ["x"], {"x": 1}, "done\x00", None, 7])
def test_an_unknown_state_fails(httpserver: HTTPServer, ask_api: Ask[Any], status: object) -> None:
    httpserver.expect_request(BATCH).respond_with_json({"id": "batch_1", "status": status})
    with pytest.raises(ProviderUnavailable, match="malformed response") as caught:
        ask_api(lambda api: api.status("batch_1"))
    assert KEY not in repr(caught.value)


def test_a_code_is_one_that_is_known(httpserver: HTTPServer, ask_api: Ask[Any]) -> None:
    failed = {"status": "failed", "errors": {"data": [{"code": "skSecretsAreAlphanumericToo"}]}}
    httpserver.expect_request(BATCH).respond_with_json(failed)
    assert ask_api(lambda api: api.status("batch_1")) == BatchStatus("failed", "failed")


def test_results_that_are_gone_are_lost(httpserver: HTTPServer, ask_api: Ask[Any]) -> None:
    httpserver.expect_oneshot_request(BATCH).respond_with_json({}, status=404)
    with pytest.raises(BatchLost, match="different account"):
        read_results(ask_api)
    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_request(CONTENT).respond_with_json({}, status=404)
    with pytest.raises(BatchLost, match="were deleted"):
        read_results(ask_api)


@pytest.mark.parametrize(
    "bad",
    [
        line(usage={"total_tokens": 10**25}),
        line(usage={"total_tokens": -5}),
        line(usage={"total_tokens": float("inf")}),
        line(data=[{"embedding": [10**400]}]),
        "[" * 100_000,
        "{passage number 0",
    ],
    ids=["many-tokens", "less-than-none", "without-end", "long-number", "deep", "no-json"],
)
def test_a_line_of_any_kind_has_a_name(httpserver: HTTPServer, ask_api: Ask[Any], bad: str) -> None:
    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_request(CONTENT).respond_with_data(f"{line()}\n{bad}")
    with pytest.raises(MalformedResponse, match="malformed") as caught:
        read_results(ask_api)
    assert "passage" not in caught.value.message


def test_only_results_may_be_large_and_none_of_their_lines(
    httpserver: HTTPServer, ask_api: Ask[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_RESPONSE_BYTES", 1_000)
    monkeypatch.setattr(openai_provider, "_LINE_BYTES", 2_000)
    httpserver.expect_oneshot_request(BATCH).respond_with_json({**ENDED, "x": "x" * 1_000})
    with pytest.raises(ProviderUnavailable, match="longer than 1,000 bytes"):
        ask_api(lambda api: api.status("batch_1"))
    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_oneshot_request(CONTENT).respond_with_data("\n".join([line()] * 100))
    assert [result.key for result in read_results(ask_api)] == ["key"] * 100
    httpserver.expect_request(CONTENT).respond_with_data("x" * 200_000)
    with pytest.raises(MalformedResponse, match="a line of more than 2,000 bytes"):
        read_results(ask_api)


def test_results_come_in_time_or_later(
    httpserver: HTTPServer, ask_api: Ask[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai_provider, "_READ_SECONDS", 0.2)

    def drip() -> Iterator[bytes]:
        for _ in range(20):
            yield b" "
            time.sleep(0.05)

    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_request(CONTENT).respond_with_handler(lambda _: Response(drip()))
    with pytest.raises(ProviderUnavailable, match="in time"):
        read_results(ask_api)
