"""Indexing again on request: a workspace, a page with its records, a database's rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import select

from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.storage.catalog.tables import document_index
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

DEALS = {("db_row", f"deal-{number}") for number in range(3)}
PEOPLE = {("db_row", f"person-{number}") for number in range(2)}
PLAN = {("page", "plan"), ("comment", "note"), ("file", "list")}
OTHER = {("page", "other"), ("template", "letter")}


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "made-anew") as made:
        for database in ("deals", "people", "empty"):
            made.send("PUT", f"/rag/tree/{database}", {"kind": "database"})
        for page in ("plan", "other", "bare"):
            made.send("PUT", f"/rag/tree/{page}", {})
        for rows, database in ((DEALS, "deals"), (PEOPLE, "people")):
            for _, row in rows:
                values = [{"name": "name", "value_text": f"The name of {row}."}]
                made.put("db_row", row, {"database_uuid": database, "values": values})
        for page in ("plan", "other"):
            block = {"block_id": "b", "type": "paragraph", "text": f"The text of {page}."}
            made.put("page", page, {"title": page, "blocks": [block]})
        made.put("comment", "note", {"page_uuid": "plan", "text": "A note on it."})
        made.put("file", "list", {"page_uuid": "plan", "name": "list.md"})
        made.put_content("list", b"# A list")
        made.put("template", "letter", {"name": "Letter", "description": "To whom it may concern."})
        made.sync()
        yield made


def indexed(site: Site) -> dict[tuple[str, str], datetime]:
    """Return when each record was indexed."""
    query = select(document_index.c.document_id, document_index.c.indexed_at).where(
        document_index.c.tenant == site.id
    )
    with site.catalog.database.begin() as connection:
        at = dict(connection.execute(query).all())
    records = DEALS | PEOPLE | PLAN | OTHER
    return {record: at[compute_record_document_id("pushed", *record)] for record in records}


@pytest.mark.parametrize(
    ("body", "reindexed"),
    [
        ({"scope": "database", "id": "deals"}, DEALS),
        ({"scope": "database", "id": "people"}, PEOPLE),
        ({"scope": "page", "id": "plan"}, PLAN),
        ({"scope": "workspace"}, DEALS | PEOPLE | PLAN | OTHER),
        ({"scope": "workspace", "id": "made-anew"}, DEALS | PEOPLE | PLAN | OTHER),
        ({"scope": "database", "id": "empty"}, set()),
        ({"scope": "page", "id": "bare"}, set()),
    ],
)
def test_what_was_asked_for_is_made_anew_and_nothing_else(
    site: Site, body: dict[str, Any], reindexed: set[tuple[str, str]]
) -> None:
    before = indexed(site)
    answer = site.send("POST", "/rag/reindex", body)
    assert (answer.status_code, answer.json()) == (202, {"documents": len(reindexed)})
    assert site.status()["queue_depth"] == len(reindexed)
    done = site.sync()
    assert (done["upserted"] >= len(reindexed), done["embedded"]) == (True, 0)
    after = indexed(site)
    assert {one for one in after if after[one] != before[one]} == reindexed
    assert site.status()["queue_depth"] == 0
    if reindexed:
        event = site.catalog.events.latest(site.id, kind="reindex_requested")[0].payload
        asked = {"scope": "tenant"} if body["scope"] == "workspace" else body
        assert event == {**asked, "by": "jwt:ann", "documents": len(reindexed)}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"scope": "database", "id": "unknown"}, 404),
        ({"scope": "database", "id": "plan"}, 404),
        ({"scope": "page", "id": "deals"}, 404),
        ({"scope": "page", "id": "letter"}, 404),
        ({"scope": "database"}, 422),
        ({"scope": "database", "id": ""}, 422),
        ({"scope": "databases", "id": "deals"}, 422),
        ({"scope": "workspace", "id": "deals"}, 403),
        ({"scope": "workspace", "id": "deals", "tenant": "made-anew"}, 422),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_is_made_anew(
    site: Site, body: dict[str, Any], status: int
) -> None:
    answer = site.send("POST", "/rag/reindex", body)
    assert answer.status_code == status, answer.text
    assert site.status()["queue_depth"] == 0
    denied = site.send("POST", "/rag/reindex", {"scope": "database", "id": "deals"}, role="member")
    assert denied.status_code == 403
    assert site.status()["queue_depth"] == 0
