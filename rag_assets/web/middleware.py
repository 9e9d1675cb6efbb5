"""Middleware of Dagster's UI and the pages next to it, against other sites and frames."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_POLICY = "Content-Security-Policy"
_DIRECTIVE = "frame-ancestors"
_NO_ANCESTORS = f"{_DIRECTIVE} 'none'"


class FramePolicy:
    """Middleware that adds headers which forbid showing the pages in a frame."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and add the headers to its response."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["X-Frame-Options"] = "DENY"
                policy = headers.get(_POLICY, "").rstrip("; ")
                if _DIRECTIVE not in policy:
                    headers[_POLICY] = f"{policy}; {_NO_ANCESTORS}" if policy else _NO_ANCESTORS
            await send(message)

        await self._app(scope, receive, send_with_headers)


LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
_ACTION_PATH = "/graphql"
"""Path of Dagster's actions, which also work by GET, for which browsers send no Origin."""
_OWN_FETCHES = frozenset({"same-origin", "none"})
_REFUSAL = (
    "This server answers only at 127.0.0.1 and localhost, and not to pages of other sites. "
    "Open it at the address that `rag-assets status` shows.\n"
)


class LoopbackGuard:
    """Middleware that refuses requests from pages of other sites.

    Dagster's UI has no login and only listens on loopback. A page of any site in a browser on this
    machine could still launch runs (detected by Origin and Sec-Fetch-Site), and read the responses
    if the name of the site resolves to this machine (detected by Host).
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan" or _is_local(scope["path"], Headers(scope=scope)):
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            await PlainTextResponse(_REFUSAL, status_code=403)(scope, receive, send)


def _is_local(path: str, headers: Headers) -> bool:
    """Return whether a request comes from a program or from a page of this machine.

    Its Host and, if sent, its Origin must name this machine. For Dagster's actions, a browser must
    not report that another site sent the request.
    """
    if _find_hostname(f"//{headers.get('host', '')}") not in LOOPBACK_NAMES:
        return False
    origin = headers.get("origin")
    if origin is not None and _find_hostname(origin) not in LOOPBACK_NAMES:
        return False
    # Programs and older browsers do not send this header.
    fetch_is_own = headers.get("sec-fetch-site", "none") in _OWN_FETCHES
    return fetch_is_own or not path.startswith(_ACTION_PATH)


def _find_hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
