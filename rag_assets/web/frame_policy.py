"""The frame policy: no other site may show the UI in a frame to trick visitors into clicking."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "Content-Security-Policy"
_DIRECTIVE = "frame-ancestors"
_NO_ANCESTORS = f"{_DIRECTIVE} 'none'"


class FramePolicy:
    """Adds headers to every response that forbid framing the page.

    Args:
        app: the application; security policies that it sets itself stay in force.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the two headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                _add_headers(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, send_with_headers)


def _add_headers(headers: MutableHeaders) -> None:
    headers["X-Frame-Options"] = "DENY"
    policy = headers.get(_POLICY, "").rstrip("; ")
    if _DIRECTIVE not in policy:
        headers[_POLICY] = f"{policy}; {_NO_ANCESTORS}" if policy else _NO_ANCESTORS
