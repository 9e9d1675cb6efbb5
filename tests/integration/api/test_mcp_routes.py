"""The interface for remote agents, through the official client."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from tests.integration.api.conftest import Api
from tests.integration.api.test_service import assert_problem, granted

MESSAGE = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@asynccontextmanager
async def agent(address: str, token: str, path: str = "", **options: Any) -> AsyncIterator[Client]:
    """Connect an agent with this token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(f"{address}/mcp{path}", http_client=http), **options) as it,
    ):
        yield it


async def search(client: Client, query: str = "valve", **arguments: Any) -> str:
    result = await client.call_tool("rag_search", {"query": query, "top_k": 50, **arguments})
    return str(result.content[0].text)  # type: ignore[union-attr]


def post(api: Api, path: str = "/mcp", **headers: str) -> Any:
    return api.client.post(path, json=MESSAGE, headers={**ACCEPT, **headers})


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_searches_lists_and_reads(api: Api, address: str, mode: str) -> None:
    async def run() -> None:
        async with agent(address, api.token(), mode=mode) as client:
            [tool] = (await client.list_tools()).tools
            assert set(tool.input_schema["properties"]) == {"query", "top_k", "within"}
            found = await search(client)
            assert found.startswith("--- Result 1 (score: ")
            assert "source: public/acme.md) ---\n# Valves" in found
            listed = await client.read_resource("rag://documents")
            [document] = json.loads(listed.contents[0].text)  # type: ignore[union-attr]
            read = await client.read_resource(f"rag://documents/{document['document_id']}")
            assert "The public valve of acme." in read.contents[0].text  # type: ignore[union-attr]

    asyncio.run(run())


def test_simultaneous_callers_are_not_confused(api: Api, address: str) -> None:
    ada, eve, other = api.token("ada"), api.token("eve"), api.token("ada", "other")
    public, board = {"public/acme.md"}, {"public/acme.md", "board/acme.md"}
    expected = {ada: board, eve: public, other: {"public/other.md"}}

    async def ask(token: str, mode: str) -> None:
        async with agent(address, token, mode=mode) as client:
            for _ in range(5):
                found, listed = await asyncio.gather(
                    search(client), client.read_resource("rag://documents")
                )
                documents = json.loads(listed.contents[0].text)  # type: ignore[union-attr]
                assert {document["uri"] for document in documents} == expected[token]
                sources = {
                    line.split("source: ")[1] for line in found.splitlines() if "--- R" in line
                }
                assert sources == {f"{uri}) ---" for uri in expected[token]}

    async def run() -> None:
        await asyncio.gather(
            *(ask(token, mode) for token in expected for mode in ("auto", "legacy"))
        )

    with granted(api, "ada"):
        asyncio.run(run())


def test_a_token_for_several_names_one_in_the_path(api: Api, address: str) -> None:
    both = api.token("eve", "acme", "other")

    async def run() -> None:
        async with agent(address, both, "/other") as client:
            assert "valve of other" in await search(client)

    asyncio.run(run())
    authorization = {"Authorization": f"Bearer {both}"}
    assert post(api, "/mcp/acme", **authorization).json()["result"]["tools"]
    assert_problem(post(api, **authorization), 403, "forbidden")
    for tenant in ("missing", "acme,other", "ACME"):
        assert_problem(post(api, f"/mcp/{tenant}", **authorization), 403, "forbidden")


def test_a_hidden_document_looks_like_a_missing_one(api: Api, address: str) -> None:
    with granted(api, "ada"):
        listed = api.get(api.token("ada"), "/rag/documents").json()["documents"]
    [hidden] = [d["document_id"] for d in listed if d["uri"] == "board/acme.md"]

    async def run() -> set[str]:
        said = set()
        async with agent(address, api.token("eve")) as client:
            for document_id in (hidden, "0" * 64):
                with pytest.raises(MCPError) as refused:
                    await client.read_resource(f"rag://documents/{document_id}")
                said.add(str(refused.value).replace(document_id, "…"))
        return said

    assert len(asyncio.run(run())) == 1


@pytest.mark.parametrize("path", ["/mcp", "/mcp/acme"])
def test_without_a_token_that_counts_nothing_is_answered(api: Api, path: str) -> None:
    for headers in ({}, {"Authorization": "Bearer rag_guessed"}):
        response = post(api, path, **headers)
        assert_problem(response, 401, "unauthenticated")
        assert response.headers["www-authenticate"].startswith("Bearer")


def test_there_are_no_sessions(api: Api) -> None:
    headers = {"Authorization": f"Bearer {api.token()}", **ACCEPT}
    for method in ("GET", "DELETE"):
        response = api.client.request(method, "/mcp", headers=headers)
        assert_problem(response, 405, "method-not-allowed")
        assert response.headers["allow"] == "POST"
    assert "mcp-session-id" not in post(api, **headers).headers


def test_web_pages_are_refused_unless_they_are_known(api: Api) -> None:
    authorization = {"Authorization": f"Bearer {api.token()}"}
    assert post(api, Origin="https://app.example", **authorization).status_code == 200
    for origin in ("https://evil.example", "null", "http://testserver", "https://app.example.evil"):
        response = post(api, Origin=origin, **authorization)
        assert_problem(response, 403, "foreign-origin")


def test_failures_of_servers_are_described_by_their_kind_alone(
    api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from rag_assets.common.errors import IndexInconsistent

    def failing(error: Exception) -> Any:
        def search(*_: object, **__: object) -> Any:
            raise error

        return search

    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "rag_search", "arguments": {"query": "valve"}},
    }
    headers = {"Authorization": f"Bearer {api.token()}", **ACCEPT, "X-Request-ID": "order-66"}
    call["params"]["arguments"] = {"query": " "}
    refused = api.client.post("/mcp", json=call, headers=headers).json()["result"]
    asked = "Error executing tool rag_search: the question is empty; ask a question"
    assert refused["content"][0]["text"] == asked
    call["params"]["arguments"] = {"query": "valve"}
    for error, title in (
        (IndexInconsistent("index x of host y"), "The tenant's index is being repaired"),
        (ValueError("the text of a document"), "The service failed"),
    ):
        monkeypatch.setattr(api.backend.retriever, "search", failing(error))
        with caplog.at_level(logging.INFO):
            result = api.client.post("/mcp", json=call, headers=headers).json()["result"]
        assert result["isError"]
        told = result["content"][0]["text"]
        assert told == f"Error executing tool rag_search: {title} (request order-66)"
    assert "the text of a document" not in caplog.text
    assert any(getattr(record, "reason", "") == "index x of host y" for record in caplog.records)


def test_invalid_arguments_are_described_without_their_values(api: Api) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "rag_search", "arguments": {"query": "valve", "top_k": "AKIA-SENT"}},
    }
    headers = {"Authorization": f"Bearer {api.token()}", **ACCEPT}
    result = api.client.post("/mcp", json=call, headers=headers).json()["result"]
    assert result["isError"]
    assert "top_k" in result["content"][0]["text"]
    assert "AKIA-SENT" not in result["content"][0]["text"]


@pytest.mark.parametrize(
    ("method", "params"),
    [("tools/call", {}), ("tools/call", {"name": 1}), ("resources/list", {"cursor": 5})],
)
def test_request_with_invalid_params_gets_invalid_params_error(
    api: Api, method: str, params: dict[str, Any]
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Authorization": f"Bearer {api.token()}", **ACCEPT}
    answer = api.client.post("/mcp", json=message, headers=headers).json()
    assert answer["error"] == {"code": -32602, "message": "Invalid params"}


def test_requests_are_counted_bounded_and_logged_as_others_are(
    api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    authorization = {"Authorization": f"Bearer {api.token('ada')}"}
    with caplog.at_level(logging.INFO, logger="rag_assets.api"):
        post(api, "/mcp/acme", **authorization)
    [record] = [found for found in caplog.records if found.name == "rag_assets.api"]
    said = vars(record)
    assert (said["caller"], said["tenant"], said["route"]) == ("jwt:ada", "acme", "/mcp/{tenant}")
    large = {**authorization, **ACCEPT, "Content-Type": "application/json"}
    response = api.client.post("/mcp", content=b"x" * 1_100_000, headers=large)
    assert_problem(response, 413, "too-large")
    assert 'route="/mcp/{tenant}",status="200"' in api.client.get("/metrics").text
