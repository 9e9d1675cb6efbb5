"""Show the group of the five assets opened on Dagster's lineage page, which closes all groups.

The page stores the list of open groups in the browser's localStorage, and opens none by default. A
script in the UI's only HTML page sets this list if the browser has no stored value, so a user's own
choice stays.
"""

from __future__ import annotations

import json
import re
from html import escape

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

GROUP = "knowledge"
STORAGE_KEY = "asset-graph-open-graph-nodes-global-__GLOBAL__"
_VALUE = json.dumps({"expanded": f"global@global:{GROUP}"})
_SCRIPT = (
    f"try {{ const key = {json.dumps(STORAGE_KEY)}; if (localStorage.getItem(key) === null) "
    f"localStorage.setItem(key, {json.dumps(_VALUE)}); }} "
    "catch (error) { /* a browser without storage */ }"
)
_HEAD = re.compile(r"<head>")
_NONCE = re.compile(r'<script nonce="([^"]+)"')


class OpenLineage:
    """Adds the script to the UI's page.

    Args:
        app: application with Dagster's pages and our own pages; ours have no scripts and stay
            unchanged.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; if the response is a page with scripts, add the script to it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def add(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_page(
                Headers(raw=message["headers"])
            ):
                start = message
            elif start is None or message["type"] != "http.response.body":
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body", False):
                    page = with_script(body.decode()).encode()
                    MutableHeaders(scope=start)["content-length"] = str(len(page))
                    await send(start)
                    await send({"type": "http.response.body", "body": page})

        await self._app(scope, receive, add)


def with_script(page: str) -> str:
    """Add the script under the nonce of the page's scripts; a page without a nonce is unchanged."""
    nonce = _NONCE.search(page)
    if nonce is None:
        return page
    script = f'<head><script nonce="{escape(nonce[1])}">{_SCRIPT}</script>'
    return _HEAD.sub(lambda _: script, page, count=1)


def _is_page(headers: Headers) -> bool:
    kind = headers.get("content-type", "")
    return kind.startswith("text/html") and "content-encoding" not in headers
