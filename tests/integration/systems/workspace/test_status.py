"""The status of a workspace: each figure equals a recount of records in that state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, event, select, text

from rag_assets.ingest.sources.records import EXCLUDED, compute_record_document_id
from rag_assets.storage.catalog.tables import document_index, documents, source_records
from rag_assets.storage.catalog.uploads.model import uploads
from tests.installation import FAST, Installation
from tests.integration.systems.workspace.site import Site, workspace

LONG_AGO = datetime.now(UTC) - timedelta(days=45)
TOLD = {"chunks", "stale", "last_indexed_at", "queue_depth", "disabled"}
OF_WORKSPACES = {
    *("excluded", "failed", "oldest_wait_seconds"),
    *("pending_model", "vector_backend", "backfilled"),
}


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "read_figures") as made:
        made.grant("p-1", principal="ann")
        made.grant("p-2", principal="bob")
        yield made


def rows_of(site: Site) -> dict[str, list[Mapping[str, Any]]]:
    with site.catalog.database.begin() as connection:
        return {
            table.name: [
                *connection.execute(select(table).where(table.c.tenant == site.id)).mappings()
            ]
            for table in (source_records, documents, document_index, uploads)
        }


def recount(site: Site) -> dict[str, int]:
    """Count waiting, excluded and failed records, row by row."""
    rows = rows_of(site)
    config = site.catalog.tenants.get(site.id).config
    days = timedelta(days=config.get("workspace", {}).get("resolved_comment_days", 30))
    records = {one["document_id"]: one for one in rows["source_records"]}
    contents = {one["document_id"] for one in rows["uploads"]}
    held = {one["document_id"] for one in rows["document_index"]}
    known = {one["document_id"]: one for one in rows["documents"]}
    numbers: Counter[str] = Counter()
    for id_ in {*records, *known}:
        record, document = records.get(id_), known.get(id_)
        resolved = record["resolved_at"] if record else None
        out = resolved is not None and resolved + days < datetime.now(UTC)
        if record and record["source_type"] == "file" and id_ not in contents:
            out = True
        gone = document is not None and document["status"] == "DELETED"
        shut = document is not None and document["access_scope"] == EXCLUDED
        changed = record and document and record["revision"] != document["revision"]
        if out:
            numbers["excluded"] += 1
            numbers["queue_depth"] += bool(document) and (not gone or id_ in held)
        elif document is None or gone:
            numbers["queue_depth"] += record is not None or id_ in held
        elif shut:
            numbers["excluded"] += 1
            numbers["queue_depth"] += bool(changed) or id_ in held
        elif changed or document["status"] == "PROCESSING":
            numbers["queue_depth"] += 1
        elif document["status"] == "FAILED":
            kinds = {"encrypted", "empty", "scanned", "unsupported", "too-large"}
            numbers["excluded" if document["error_kind"] in kinds else "failed"] += 1
    return {name: numbers[name] for name in ("queue_depth", "excluded", "failed")}


def read_figures(site: Site, **by: str) -> tuple[int, int, int]:
    """Return the service's figures: waiting, excluded and failed; by default an admin's."""
    status = site.send("GET", "/rag/status", **by).json()
    assert status.keys() == TOLD | OF_WORKSPACES
    numbers = {name: status[name] for name in ("queue_depth", "excluded", "failed")}
    if not by:
        assert numbers == recount(site)
    assert (status["oldest_wait_seconds"] is None) == (status["queue_depth"] == 0)
    return status["queue_depth"], status["excluded"], status["failed"]


def became(site: Site) -> Counter[str]:
    """Count the outcomes of all records, as ann and bob see them."""
    answers = (
        site.send("GET", f"/rag/records/{one['source_type']}/{one['source_id']}", subject=who)
        for one in rows_of(site)["source_records"]
        for who in ("ann", "bob")
    )
    return Counter(answer.json()["status"] for answer in answers if answer.status_code == 200)


def test_numbers_are_what_there_is(site: Site) -> None:
    assert read_figures(site) == (0, 0, 0)
    site.put("page", "p-1", {"title": "Otters", "blocks": []})
    site.put("page", "p-2", {"title": "Badgers", "blocks": []})
    assert read_figures(site) == (2, 0, 0)
    # A comment that was resolved long ago, and a file without content, do not wait.
    comment = {"page_uuid": "p-1", "text": "An old otter."}
    site.put("comment", "old", {**comment, "resolved_at": LONG_AGO.isoformat()})
    site.put("file", "f-1", {"page_uuid": "p-2", "name": "f.pdf"})
    assert read_figures(site) == (2, 2, 0)
    site.sync()
    assert read_figures(site) == (0, 2, 0)
    # An unreadable file fails; a file without text is left out.
    site.put("file", "f-2", {"page_uuid": "p-1", "name": "f.pdf"})
    for name, content in (("f-1", b"%PDF-1.7\nno more than that"), ("f-2", _empty_pdf())):
        assert site.put_content(name, content).status_code == 202
    assert read_figures(site) == (2, 1, 0)
    site.sync()
    assert read_figures(site) == (0, 2, 1)
    assert became(site) == {"indexed": 2, "excluded": 2, "failed": 1}
    # A failed file that is pushed again waits like any other.
    assert site.put_content("f-1", b"%PDF-1.7\nno more than this").status_code == 202
    assert read_figures(site) == (1, 2, 0)
    site.sync()
    assert read_figures(site) == (0, 2, 1)
    # Each person sees the figures of what they read.
    assert read_figures(site, role="member", subject="ann") == (0, 2, 0)
    assert read_figures(site, role="member", subject="bob") == (0, 0, 1)
    assert read_figures(site, role="guest", subject="eve") == (0, 0, 0)


def test_what_is_archived_waits_to_leave_and_then_is_out(site: Site) -> None:
    site.put("db_row", "r-1", {"database_uuid": "db", "values": [_value("City", "Tallinn")]})
    site.send("PUT", "/rag/tree/db", {"kind": "database"})
    site.sync()
    waiting, excluded, failed = read_figures(site)
    assert waiting == 0
    site.send("PUT", "/rag/tree/db", {"kind": "database", "archived": True})
    assert read_figures(site) == (1, excluded + 1, failed)
    site.sync()
    assert read_figures(site) == (0, excluded + 1, failed)
    site.put("db_row", "r-1", {"database_uuid": "db", "values": [_value("City", "Tartu")]})
    assert read_figures(site) == (1, excluded + 1, failed)
    site.sync()
    assert read_figures(site) == (0, excluded + 1, failed)
    site.send("PUT", "/rag/tree/db", {"kind": "database"})
    assert read_figures(site) == (1, excluded, failed)
    site.sync()
    assert read_figures(site) == (0, excluded, failed)
    # A restored record waits too, because it is in no build.
    site.send("PUT", "/rag/tree/db", {"kind": "database", "archived": True})
    site.sync()
    site.send("PUT", "/rag/tree/db", {"kind": "database"})
    assert read_figures(site) == (1, excluded, failed)
    path = "/rag/records/db_row/r-1"
    assert site.send("GET", path, role="member").json()["status"] == "queued"
    assert site.embedded() == 0
    assert read_figures(site) == (0, excluded, failed)
    assert site.send("GET", path, role="member").json()["status"] == "indexed"


def test_each_is_told_of_what_they_would_read_and_nothing_of_others(site: Site) -> None:
    for page, readers in (("p-a", ["ann"]), ("p-b", ["bob"]), ("p-c", ["ann", "bob"])):
        site.send("PUT", f"/rag/tree/{page}", {"inherit": False, "read": readers})
        for number in range(2):
            body = {"page_uuid": page, "text": f"Note {number} of {page}."}
            site.put("comment", f"{page}-{number}", body)
    resolved = {"page_uuid": "p-a", "text": "Old.", "resolved_at": LONG_AGO.isoformat()}
    site.put("comment", "p-a-old", resolved)
    each = {who: {"role": role, "subject": who} for who, role in READERS}
    # They were never listed: everybody who reads the page sees that they wait.
    before = {who: read_figures(site, **by) for who, by in each.items()}
    agree(site, each)
    site.sync()
    after = {who: read_figures(site, **by) for who, by in each.items()}
    waited = {who: before[who][0] - after[who][0] for who in each}
    assert waited == {"ann": 4, "bob": 4, "eve": 0}
    out = {"archived": True}
    for page, readers in (("p-a", ["ann"]), ("p-b", ["bob"]), ("p-c", ["ann", "bob"])):
        site.send("PUT", f"/rag/tree/{page}", {"inherit": False, "read": readers, **out})
        out = {"ai": "off"}
    agree(site, each)
    leaving = {who: read_figures(site, **by) for who, by in each.items()}
    assert {who: leaving[who][0] - after[who][0] for who in each} == {"ann": 4, "bob": 4, "eve": 0}
    site.sync()
    left = {who: read_figures(site, **by) for who, by in each.items()}
    assert {who: left[who][0] for who in each} == dict.fromkeys(each, 0)
    assert {who: left[who][1] - after[who][1] for who in each} == {"ann": 4, "bob": 4, "eve": 0}
    agree(site, each)
    # Grants and revocations of excluded pages take effect immediately.
    site.send("PUT", "/rag/tree/p-a", {"inherit": False, "read": ["bob"], "archived": True})
    assert read_figures(site, **each["ann"])[1] == left["ann"][1] - 3, "with its resolved comment"
    assert read_figures(site, **each["bob"])[1] == left["bob"][1] + 3
    agree(site, each)
    for page in ("p-a", "p-b", "p-c"):
        site.send("DELETE", f"/rag/tree/{page}")
    site.sync()


READERS = (("ann", "member"), ("bob", "member"), ("eve", "guest"))


def agree(site: Site, each: Mapping[str, dict[str, str]]) -> None:
    """Fail unless the figures equal the number of records with these outcomes."""
    for who, by in each.items():
        answers = (
            site.send("GET", f"/rag/records/{one['source_type']}/{one['source_id']}", **by)
            for one in rows_of(site)["source_records"]
        )
        states = Counter(answer.json()["status"] for answer in answers if answer.status_code == 200)
        assert read_figures(site, **by)[1:] == (states["excluded"], states["failed"]), who


def test_comments_wait_to_leave_and_to_come_back_as_days_go_by(site: Site) -> None:
    lately = datetime.now(UTC) - timedelta(days=3)
    comment = {"page_uuid": "p-1", "text": "Done.", "resolved_at": lately.isoformat()}
    site.put("comment", "c-1", comment)
    site.sync()
    waiting, excluded, failed = read_figures(site)
    assert waiting == 0
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": 2})
    assert read_figures(site) == (1, excluded + 1, failed)
    site.sync()
    assert read_figures(site) == (0, excluded + 1, failed)
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": 60})
    # The first test's comment is not too old any more, either.
    assert read_figures(site) == (2, excluded - 1, failed)
    site.sync()
    assert read_figures(site) == (0, excluded - 1, failed)
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": None})
    site.sync()
    assert read_figures(site) == (0, excluded, failed)
    # A comment that is found, but was resolved long ago, waits to be removed.
    site.put("comment", "c-1", {**comment, "resolved_at": LONG_AGO.isoformat()})
    assert read_figures(site)[0] == 1
    site.sync()
    assert read_figures(site) == (0, excluded + 1, failed)
    # A caller who may no longer read its page does not learn that it exists.
    path = "/rag/records/comment/c-1"
    assert site.send("GET", path, role="member").json()["status"] == "excluded"
    site.grant("p-1", principal="bob")
    assert site.send("GET", path, role="member").status_code == 404
    site.grant("p-1", principal="ann")


def test_what_only_the_next_build_has_waits_until_that_answers(site: Site) -> None:
    site.put("template", "next", {"name": "A gnu"})
    site.sync()
    before = site.status()
    change = text(
        "UPDATE rag_catalog.document_index SET indexed_key = :key"
        " WHERE tenant = :tenant AND document_id = :id"
    )
    held = text("SELECT indexed_key FROM rag_catalog.document_index WHERE document_id = :id")
    named = {"tenant": site.id, "id": compute_record_document_id("pushed", "template", "next")}
    with site.catalog.database.begin() as connection:
        key = connection.scalar(held, named)
        # As if the serving build's model could not embed it, but the next one's can.
        connection.execute(change, {**named, "key": None})
    status = site.status()
    record = site.send("GET", "/rag/records/template/next").json()
    with site.catalog.database.begin() as connection:
        connection.execute(change, {**named, "key": key})
    assert status["queue_depth"] == before["queue_depth"] + 1
    assert status["oldest_wait_seconds"] > 0
    assert (record["status"], record["chunks"]) == ("queued", [])
    after = site.status()
    assert (after["queue_depth"], after["chunks"]) == (before["queue_depth"], before["chunks"])


def test_models_and_back_ends_are_told(site: Site) -> None:
    status = site.status()
    assert status["pending_model"] is None
    assert (status["vector_backend"], status["backfilled"]) == ("elasticsearch", None)
    site.send("PATCH", "/rag/settings", {"provider": "local"})
    status = site.status()
    assert status["pending_model"]["provider"] == "local"
    assert status["queue_depth"] == 0, "a model that waits is no work"
    assert site.send("GET", "/rag/status", role="member").json()["pending_model"] is None
    site.send("PATCH", "/rag/settings", {"provider": None, "vector_backend": "pgvector"})
    status = site.status()
    assert (status["pending_model"], status["vector_backend"]) == (None, "pgvector")
    assert status["backfilled"] is False
    site.sync()
    assert site.status()["backfilled"] is True
    site.send("PATCH", "/rag/settings", {"vector_backend": None})
    assert site.status()["backfilled"] is None
    site.sync()


def test_a_status_takes_two_statements(site: Site) -> None:
    seen: list[str] = []

    def note(_: Any, __: Any, statement: str, *more: Any) -> None:
        if "rag_catalog" in statement and "security_changes" not in statement:  # asked by time
            seen.append(statement)

    site.status()
    event.listen(Engine, "before_cursor_execute", note)
    try:
        site.status()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    assert len(seen) == 2, seen


def test_other_workspaces_and_profiles_keep_theirs(
    site: Site, shared_installation: Installation
) -> None:
    site.put("page", "p-9", {"title": "Waits", "blocks": []})
    with workspace(shared_installation, "told-beside") as beside:
        assert read_figures(beside) == (0, 0, 0)
        assert beside.status()["chunks"] == 0
    plain = {"profile": "documents", "sources": [{"name": "pushed", "type": "records"}]}
    with workspace(shared_installation, "told-plain", **{**FAST, **plain}) as plain_site:
        assert plain_site.status().keys() == TOLD


def _value(name: str, value_text: str) -> dict[str, str]:
    return {"name": name, "value_text": value_text}


def _empty_pdf() -> bytes:
    """Return a PDF with a page without text and pictures."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>endobj\n"
        b"trailer<</Root 1 0 R>>\n%%EOF\n"
    )
