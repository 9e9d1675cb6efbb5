"""Dagster's own page opens the lineage on the assets of the chain."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import dagster_webserver
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from rag_assets.declarations import STAGES as CHAIN
from rag_assets.web.lineage import GROUP, STORAGE_KEY, OpenLineage

BUILD = Path(dagster_webserver.__file__).parent / "webapp" / "build"
NONCE = "0123456789abcdef"


def served(page: str) -> tuple[str, int]:
    """A page as a browser gets it, and the length that its header says."""
    app = OpenLineage(Starlette(routes=[Route("/", lambda _: HTMLResponse(page))]))
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []}
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent)  # type: ignore[misc]
    length = dict(sent[0]["headers"])[b"content-length"]  # type: ignore[call-overload]
    return body.decode(), int(length)


def test_dagsters_page_opens_the_group_of_the_chain_before_its_own_scripts() -> None:
    page = (BUILD / "index.html").read_text().replace("NONCE-PLACEHOLDER", NONCE)
    body, length = served(page)
    first = re.search(r"<script[^>]*>(.*?)</script>", body, re.DOTALL)
    assert first is not None
    assert f'nonce="{NONCE}"' in first[0], "the page's policy lets it run"
    assert STORAGE_KEY in first[1]
    assert f"global@global:{GROUP}" in first[1]
    assert GROUP == CHAIN
    assert length == len(body.encode())
    assert body.replace(first[0], "", 1) == page


def test_a_page_without_scripts_stays_as_it_is() -> None:
    page = "<!doctype html><html><head></head><body>Documents</body></html>"
    assert served(page)[0] == page


def test_this_version_of_dagster_keeps_open_groups_under_that_key() -> None:
    chunks = (BUILD / "_next" / "static" / "chunks").rglob("*.js")
    prefix = STORAGE_KEY.removesuffix("global-__GLOBAL__")
    assert any(prefix in chunk.read_text() for chunk in chunks)
