"""A server whose responses about batches are harmful."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Response

from rag_assets.common.errors import BatchLost, MalformedResponse, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.remote import BatchResult, BatchStatus, run_and_close
from rag_assets.models.factory import build_remote_model
from rag_assets.models.providers import openai as openai_provider
from rag_assets.models.providers.openai import OpenAIBatches
from rag_assets.models.transport import http_client
from tests.unit.models.providers.conftest import KEY

_T = TypeVar("_T")
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


def results(ask_api: Ask[list[BatchResult]]) -> list[BatchResult]:
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
def test_a_state_that_is_none_is_no_statement(
    httpserver: HTTPServer, ask_api: Ask[Any], status: object
) -> None:
    httpserver.expect_request(BATCH).respond_with_json({"id": "batch_1", "status": status})
    with pytest.raises(ProviderUnavailable, match="malformed response") as caught:
        ask_api(lambda api: api.status("batch_1"))
    assert KEY not in repr(caught.value)


def test_a_code_is_one_that_is_known(httpserver: HTTPServer, ask_api: Ask[Any]) -> None:
    failed = {"status": "failed", "errors": {"data": [{"code": "skSecretsAreAlphanumericToo"}]}}
    httpserver.expect_request(BATCH).respond_with_json(failed)
    assert ask_api(lambda api: api.status("batch_1")) == BatchStatus("failed", "failed")


def test_results_that_are_gone_are_lost_and_not_refused(
    httpserver: HTTPServer, ask_api: Ask[Any]
) -> None:
    httpserver.expect_oneshot_request(BATCH).respond_with_json({}, status=404)
    with pytest.raises(BatchLost, match="different account"):
        results(ask_api)
    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_request(CONTENT).respond_with_json({}, status=404)
    with pytest.raises(BatchLost, match="were deleted"):
        results(ask_api)


@pytest.mark.parametrize(
    "bad",
    [
        line(usage={"total_tokens": 10**25}),
        line(usage={"total_tokens": -5}),
        line(usage={"total_tokens": float("inf")}),
        line(data=[{"embedding": [10**400]}]),
        "[" * 100_000,
    ],
    ids=["many-tokens", "less-than-none", "without-end", "long-number", "deep"],
)
def test_a_line_of_any_kind_has_a_name(httpserver: HTTPServer, ask_api: Ask[Any], bad: str) -> None:
    httpserver.expect_request(BATCH).respond_with_json(ENDED)
    httpserver.expect_request(CONTENT).respond_with_data(f"{line()}\n{bad}")
    with pytest.raises(MalformedResponse, match="malformed"):
        results(ask_api)


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
    assert [result.key for result in results(ask_api)] == ["key"] * 100
    httpserver.expect_request(CONTENT).respond_with_data("x" * 200_000)
    with pytest.raises(MalformedResponse, match="a line of more than 2,000 bytes"):
        results(ask_api)


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
        results(ask_api)
