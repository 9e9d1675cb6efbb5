"""Keeps other sites from showing the UI in a frame, where a click meant for them acts in it."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "Content-Security-Policy"
_DIRECTIVE = "frame-ancestors"
_NOWHERE = f"{_DIRECTIVE} 'none'"


class NoFraming:
    """Says of every response that no page may frame it.

    Args:
        app: what answers; the policies that it sets stay in force.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response back with the two headers."""

        async def refusing(message: Message) -> None:
            if message["type"] == "http.response.start":
                _refuse(MutableHeaders(scope=message))
            await send(message)

        await self._app(scope, receive, refusing)


def _refuse(headers: MutableHeaders) -> None:
    headers["X-Frame-Options"] = "DENY"
    policy = headers.get(_POLICY, "").rstrip("; ")
    if _DIRECTIVE not in policy:
        headers[_POLICY] = f"{policy}; {_NOWHERE}" if policy else _NOWHERE
