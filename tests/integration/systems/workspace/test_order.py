"""The order of writes in a workspace: pages, their blocks, and records deleted with a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

NINE, TEN, ELEVEN, NOON = (f"2026-03-02T{hour}:00:00Z" for hour in ("09", "10", "11", "12"))


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "ordered") as made:
        made.grant("p-1", "p-2")
        yield made


def page(*blocks: dict[str, Any], at: str) -> dict[str, Any]:
    return {"title": "Pumps", "blocks": [*blocks], "updated_at": at}


def block(id_: str, text: str) -> dict[str, Any]:
    return {"block_id": id_, "type": "paragraph", "text": text}


def outcome(site: Site, path: str, body: Any, method: str = "PUT") -> tuple[int, str]:
    answer = site.send(method, f"/rag/records/{path}", body)
    return answer.status_code, answer.json()["outcome"]


def stored(site: Site, source_id: str) -> str | None:
    answer = site.send("GET", f"/rag/records/page/{source_id}")
    return None if answer.status_code == 404 else answer.json()["sha256"]


def test_blocks_and_their_page_replace_nothing_newer(site: Site) -> None:
    change = {"page_uuid": "p-1", "block": block("a", "The impeller, eleven.")}
    older = {"page_uuid": "p-1", "block": block("a", "The impeller, nine.")}
    first = page(block("a", "The impeller, ten."), block("b", "The valve, ten."), at=TEN)
    assert outcome(site, "page/p-1", first) == (202, "queued")
    assert outcome(site, "block/a", {**older, "updated_at": NINE}) == (200, "outdated")
    assert outcome(site, "block/a", {**change, "updated_at": NOON}) == (202, "queued")
    newest = stored(site, "p-1")
    assert outcome(site, "block/a", {**older, "updated_at": ELEVEN}) == (200, "outdated")
    between = page(block("a", "The impeller, ten."), at=ELEVEN)
    assert outcome(site, "page/p-1", between) == (200, "outdated")
    late = f"block/a?page_uuid=p-1&updated_at={ELEVEN}"
    assert outcome(site, late, None, "DELETE") == (200, "outdated")
    assert stored(site, "p-1") == newest
    # Another block of the page has its own time.
    other = {"page_uuid": "p-1", "block": block("b", "The valve, eleven."), "updated_at": ELEVEN}
    assert outcome(site, "block/b", other) == (202, "queued")


def test_a_comment_that_went_with_its_page_does_not_come_back(site: Site) -> None:
    comment = {"page_uuid": "p-2", "text": "The ocelot is well seen.", "updated_at": TEN}
    site.put("page", "p-2", page(block("a", "The ocelot."), at=NINE))
    site.put("comment", "c-2", comment)
    deletion = f"page/p-2?updated_at={ELEVEN}"
    assert outcome(site, deletion, None, "DELETE") == (202, "removed")
    assert outcome(site, "comment/c-2", comment) == (200, "outdated")
    assert outcome(site, "page/p-2", page(at=TEN)) == (200, "outdated")
    site.sync()
    assert site.hits("ocelot well seen") == []
    assert outcome(site, "comment/c-2", {**comment, "updated_at": NOON}) == (202, "queued")
