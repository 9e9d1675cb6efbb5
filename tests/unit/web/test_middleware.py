import asyncio
from typing import Any

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message, Receive, Scope, Send

from rag_assets.web.middleware import FramePolicy, LoopbackGuard


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (None, "frame-ancestors 'none'"),
        ("sandbox allow-scripts", "sandbox allow-scripts; frame-ancestors 'none'"),
        ("base-uri 'none'; ", "base-uri 'none'; frame-ancestors 'none'"),
        ("frame-ancestors 'none'; base-uri 'none'", "frame-ancestors 'none'; base-uri 'none'"),
    ],
)
def test_a_policy_stays_and_framing_is_refused(policy: str | None, expected: str) -> None:
    headers = {} if policy is None else {"Content-Security-Policy": policy}
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    asyncio.run(FramePolicy(PlainTextResponse("a page", headers=headers))(scope, receive, send))
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    assert told["content-security-policy"] == expected
    assert told["x-frame-options"] == "DENY"


async def _app(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("served")(scope, receive, send)


def first_answer(kind: str, headers: dict[str, str], path: str = "/graphql") -> dict[str, Any]:
    scope = {
        "type": kind, "method": "POST", "path": path,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        raise AssertionError

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(LoopbackGuard(_app)(scope, receive, send))
    return sent[0]


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "127.0.0.1:3000"},
        {"host": "localhost:3000", "origin": "http://localhost:3000"},
        {"host": "[::1]:3000", "sec-fetch-site": "same-origin"},
        {"host": "127.0.0.1:3000", "sec-fetch-site": "none"},
    ],
)
def test_its_own_pages_are_served(headers: dict[str, str]) -> None:
    assert first_answer("http", headers)["status"] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"host": "rebound.example:3000"},
        {"host": "127.0.0.1.example"},
        {"host": "[bad"},
        {"host": "127.0.0.1:3000", "origin": "https://elsewhere.example"},
        {"host": "127.0.0.1:3000", "origin": "null"},  # a sandboxed page's, data docs' say
        {"host": "127.0.0.1:3000", "sec-fetch-site": "cross-site"},  # an image's address, say
        {"host": "localhost:3000", "sec-fetch-site": "same-site"},  # of another port
    ],
)
def test_other_sites_are_refused(headers: dict[str, str]) -> None:
    assert first_answer("http", headers)["status"] == 403
    assert first_answer("websocket", headers)["type"] == "websocket.close"


def test_a_link_from_another_site_leads_to_a_page() -> None:
    link = {"host": "127.0.0.1:3000", "sec-fetch-site": "cross-site"}
    assert first_answer("http", link, "/documents/team")["status"] == 200
