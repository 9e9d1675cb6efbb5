"""Every response has a frame policy, whatever policy it already has."""

from __future__ import annotations

import asyncio

import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Message

from rag_assets.web.middleware import FramePolicy


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
