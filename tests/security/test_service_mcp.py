"""Invalid messages of agents, and requests for missing tools: no part of them is repeated."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from rag_assets.mcp.messages import MAX_MESSAGE_BYTES
from tests.installation import Installation
from tests.security.service_process import Served, serving

SENT = "sent-by-mistake"
PARSE_ERROR, INVALID_REQUEST = -32700, -32600
VERSION = "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INTERNALS = ("Traceback", "pydantic", "validation error", "input_value", "JSONRPC", ".py")
GOOD = {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}

MALFORMED = [
    (b"{" + SENT.encode(), PARSE_ERROR),
    (b'{"method": "\xff"}', PARSE_ERROR),
    (b"[" * 100_000, PARSE_ERROR),
    (b'{"jsonrpc": "2.0", "id": ' + b"9" * 5_000 + b"}", PARSE_ERROR),
    (b"null", INVALID_REQUEST),
    (b"[]", INVALID_REQUEST),
    (json.dumps([GOOD, {"jsonrpc": "2.0", "id": SENT, "method": SENT}]).encode(), INVALID_REQUEST),
    (json.dumps([{"x": SENT}]).encode(), INVALID_REQUEST),
    (json.dumps({"x": SENT}).encode(), INVALID_REQUEST),
    (json.dumps({**GOOD, "jsonrpc": SENT}).encode(), INVALID_REQUEST),
    (json.dumps({**GOOD, "method": [SENT]}).encode(), INVALID_REQUEST),
    (json.dumps({**GOOD, "params": SENT}).encode(), INVALID_REQUEST),
    (json.dumps({**GOOD, "id": {SENT: SENT}}).encode(), INVALID_REQUEST),
    (b'{"jsonrpc": "2.0", "id": 1e999, "method": "tools/list"}', INVALID_REQUEST),
]
UNKNOWN: list[tuple[str, dict[str, Any]]] = [
    (SENT, {}),
    ("tools/call", {"name": SENT}),
    ("tools/call", {"name": [SENT]}),
    ("tools/call", {"name": "rag_search", "arguments": {"query": "x", "top_k": SENT}}),
    ("tools/call", {"name": "rag_search", "arguments": {SENT: SENT}}),
    ("resources/read", {"uri": SENT}),
    ("resources/read", {"uri": f"rag://documents/{SENT}"}),
    ("prompts/get", {"name": SENT}),
    ("completion/complete", {"ref": {"type": SENT}}),
    ("logging/setLevel", {"level": SENT}),
    ("initialize", {"protocolVersion": SENT}),
]


@pytest.fixture(scope="module")
def service(
    shared_installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("log") / "service.log"
    with serving(shared_installation, log) as service:
        yield service


@pytest.fixture(scope="module")
def pipe(service: Served, shared_installation: Installation) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "rag_assets.cli", "mcp", "acme"],
        env=dict(shared_installation.environment),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    initialize = {
        **GOOD,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    assert "result" in exchanged(process, json.dumps(initialize).encode())
    yield process
    process.kill()
    process.communicate()


def exchanged(process: subprocess.Popen[bytes], message: bytes) -> Any:
    """Send one line; return the response."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def posted(service: Served, message: bytes, *headers: str) -> tuple[int, Any]:
    accept = "Accept: application/json, text/event-stream"
    answer = service.asked(message, accept, *headers, path="/mcp")
    return answer.status, answer.json


def says_nothing_of_it(answer: Any) -> bool:
    text = json.dumps(answer)
    return SENT not in text and not any(word in text for word in INTERNALS)


@pytest.mark.parametrize(("message", "code"), MALFORMED)
def test_malformed_messages_over_http_are_rejected(
    service: Served, message: bytes, code: int
) -> None:
    for headers in ([], [f"Mcp-Protocol-Version: {VERSION}"]):
        status, answer = posted(service, message, *headers)
        assert (status, answer["id"], answer["error"]["code"]) == (400, None, code)
        assert says_nothing_of_it(answer)


@pytest.mark.parametrize(("method", "params"), UNKNOWN)
def test_over_http_what_is_not_there_is_not_repeated(
    service: Served, method: str, params: dict[str, Any]
) -> None:
    _, answer = posted(service, json.dumps({**GOOD, "method": method, "params": params}).encode())
    assert "error" in answer or answer["result"]["isError"]
    assert says_nothing_of_it(answer)
    modern = {**GOOD, "method": method, "params": {**params, "_meta": ENVELOPE}}
    headers = [f"Mcp-Protocol-Version: {VERSION}", f"Mcp-Method: {method}"]
    for name in (params.get("name"), params.get("uri")):
        headers += [f"Mcp-Name: {name}"] if isinstance(name, str) else []
    _, answer = posted(service, json.dumps(modern).encode(), *headers)
    assert "error" in answer or answer["result"]["isError"]
    assert says_nothing_of_it(answer)


@pytest.mark.parametrize("version", [SENT, "2099-01-01"])
def test_over_http_an_unknown_version_is_not_repeated(service: Served, version: str) -> None:
    modern = {**GOOD, "params": {"_meta": {**ENVELOPE, next(iter(ENVELOPE)): version}}}
    headers = (f"Mcp-Protocol-Version: {version}", "Mcp-Method: tools/list")
    status, answer = posted(service, json.dumps(modern).encode(), *headers)
    assert status == 400
    assert says_nothing_of_it(answer)


def test_over_http_it_goes_on(service: Served) -> None:
    status, answer = posted(service, json.dumps(GOOD).encode())
    assert (status, answer["id"], len(answer["result"]["tools"])) == (200, 7, 1)


@pytest.mark.parametrize(("message", "code"), MALFORMED)
def test_over_a_pipe_what_is_no_message_is_answered_and_it_goes_on(
    pipe: subprocess.Popen[bytes], message: bytes, code: int
) -> None:
    answer = exchanged(pipe, message)
    assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert says_nothing_of_it(answer)
    assert exchanged(pipe, json.dumps(GOOD).encode())["id"] == 7


@pytest.mark.parametrize(("method", "params"), UNKNOWN)
def test_over_a_pipe_what_is_not_there_is_not_repeated(
    pipe: subprocess.Popen[bytes], method: str, params: dict[str, Any]
) -> None:
    answer = exchanged(pipe, json.dumps({**GOOD, "method": method, "params": params}).encode())
    assert "error" in answer or answer["result"]["isError"]
    assert says_nothing_of_it(answer)


def test_over_a_pipe_a_line_without_end_is_given_up(pipe: subprocess.Popen[bytes]) -> None:
    answer = exchanged(pipe, b"x" * (3 * MAX_MESSAGE_BYTES))
    assert answer["error"]["code"] == INVALID_REQUEST
    assert exchanged(pipe, b"\n \n" + json.dumps(GOOD).encode())["id"] == 7
