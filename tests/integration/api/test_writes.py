"""Writes over HTTP: permissions, pending documents, and effects."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any
from urllib.parse import quote

import pytest
from sqlalchemy import text

from rag_assets.common.times import LAST_DAY
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.pipeline.drift import inspect_index
from rag_assets.pipeline.erasure import settle_open_erasures
from rag_assets.storage.catalog import database
from rag_assets.storage.catalog.documents.model import DocumentChange
from rag_assets.storage.catalog.documents.versions import IndexedVersion
from rag_assets.storage.catalog.erasure.holds import HoldScope
from rag_assets.storage.catalog.journal.events import SEARCHES
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.integration.api.conftest import Api
from tests.records import put_record, remove_record

PAGE = "/rag/records/page/p-1"
SAID = {
    "title": "Pumps of the old mill",
    "uri": "https://wiki.example/pages/1",
    "tags": ["mill", "pump"],
    "metadata": {"owner": "ada", "floor": 3},
}


def status(api: Api) -> tuple[int, int]:
    """Return the numbers of stale and of waiting documents."""
    said = api.get(api.token(role="admin"), "/rag/status").json()
    return said["stale"], said["queue_depth"]


def hits(api: Api, query: str, **body: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.ask(api.token(), query=query, **body).json()["hits"]
    return found


def listed(api: Api) -> Iterator[str]:
    """Yield the URIs of all documents, listed page by page."""
    after = None
    while True:
        page = api.get(api.token(), "/rag/documents", limit=1, after=after).json()
        yield from (document["uri"] for document in page["documents"])
        if (after := page["next"]) is None:
            return


def problem(response: Any) -> tuple[int, str]:
    return response.status_code, response.json()["type"].rpartition(":")[2]


def test_a_record_from_its_push_to_its_end(api: Api) -> None:
    first = api.send("PUT", PAGE, {"text": "The impeller is made of bronze.", **SAID})
    assert (first.status_code, first.json()["outcome"]) == (202, "queued")
    api.send("PUT", "/rag/records/comment/c-1", {"text": "Well seen.", "uri": SAID["uri"]})
    assert status(api) == (0, 2)
    api.driver.sync("acme")
    assert status(api) == (0, 0)
    assert sorted(listed(api)).count(str(SAID["uri"])) == 2
    api.send("DELETE", "/rag/records/comment/c-1")
    api.driver.sync("acme")
    [hit] = [h for h in hits(api, "impeller of bronze") if "bronze" in h["text"]]
    assert (hit["uri"], hit["title"], hit["stale"]) == (SAID["uri"], SAID["title"], False)
    assert hit["document_id"] == first.json()["document_id"]
    for narrowed in (
        {"source_types": ["page"]},
        {"filters": {"tags": ["mill", "pump"], "metadata": {"owner": "ada", "floor": "3"}}},
        {"filters": {"paths": ["https://wiki.example/"]}},
    ):
        assert {h["uri"] for h in hits(api, "impeller", **narrowed)} == {SAID["uri"]}

    again = api.send("PUT", PAGE, {"text": "The impeller is made of bronze.", **SAID})
    assert again.json()["outcome"] == "unchanged"
    assert status(api) == (0, 0)
    api.send("PUT", PAGE, {"text": "The impeller is made of steel."})
    assert status(api) == (1, 1)
    [former] = [h for h in hits(api, "impeller of bronze") if "bronze" in h["text"]]
    assert former["stale"]
    api.driver.sync("acme")
    [hit] = hits(api, "impeller", source_types=["page"])
    assert (hit["text"], hit["uri"]) == ("The impeller is made of steel.", "pushed/page/p-1")

    assert api.send("DELETE", PAGE).json()["outcome"] == "removed"
    assert hits(api, "impeller", source_types=["page"]) == []
    assert status(api) == (0, 1)
    assert api.driver.sync("acme")["deleted"] == 1
    assert status(api) == (0, 0)
    assert api.send("DELETE", PAGE).json()["outcome"] == "unchanged"


def test_callers_without_the_new_scope_of_a_record_see_no_former_version(api: Api) -> None:
    session = api.driver.session
    path, body = "/rag/records/page/narrowed", {"text": "The narwhal budget is seven crores."}
    api.send("PUT", path, body)
    api.driver.sync("acme")
    assert any("narwhal" in hit["text"] for hit in hits(api, "narwhal budget"))
    api.send("PUT", path, {**body, "scope": "board"})
    assert all("narwhal" not in hit["text"] for hit in hits(api, "narwhal budget"))
    ref = session.catalog.tenants.get("acme").ref
    session.catalog.access.grant(ref, "board", ["director"])
    director = api.ask(api.token("director"), query="narwhal budget").json()["hits"]
    assert any("narwhal" in hit["text"] for hit in director)
    with api.driver.locked("acme") as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
    api.send("PUT", path, body)
    api.driver.sync("acme")
    assert any("narwhal" in hit["text"] for hit in hits(api, "narwhal budget"))
    with api.driver.locked("acme") as ctx:
        assert all(state.is_healthy for state in inspect_index(ctx))
    api.send("DELETE", path)
    api.driver.sync("acme")


def test_a_record_whose_date_cannot_be_read_keeps_no_other_from_being_listed(api: Api) -> None:
    records = api.driver.session.catalog.records
    ref = api.driver.session.catalog.tenants.get("acme").ref
    late = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    metadata = SourceMetadata(modified_at=late)
    record = PushedRecord("pushed", "page", "late", "a", "text/plain", metadata)
    put_record(records, ref, record, scope="public")
    [listed] = [*records.for_tenant("acme").iter_records("pushed")]
    assert listed.source_metadata.modified_at == LAST_DAY
    remove_record(records, ref, record.document_id, "chief")


def test_writes_for_a_tenant_that_is_busy_wait_shortly_and_keep_no_other_tenant_waiting(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_EXCLUSIVE", text("SET LOCAL lock_timeout = '50ms'"))
    catalog = api.driver.session.catalog
    with catalog.database.begin_exclusive(catalog.tenants.get("acme").ref):
        refused = api.send("PUT", PAGE, {"text": "A page."})
        assert problem(refused) == (503, "tenant-busy")
        assert int(refused.headers["retry-after"]) > 0
        assert status(api) == (0, 0)


def test_a_document_of_a_file_is_gone_at_once_and_until_it_changes(api: Api) -> None:
    file = api.driver.session.settings.home.parent / "sources" / "acme" / "public" / "pond.md"
    file.write_text("# Pond\n\nCarps winter in the pond.\n")
    api.driver.sync("acme")
    [hit] = [h for h in hits(api, "carps winter") if "Carps" in h["text"]]
    path = f"/rag/documents/{hit['document_id']}"
    only = {"mode": "text", "filters": {"documents": [hit["document_id"]]}}

    def looked_at() -> int:
        answer = api.ask(api.token(), query="carps", **only).json()
        return int(answer["debug"]["total_candidates"])

    assert looked_at() == 1
    assert api.send("DELETE", path).status_code == 202
    # Otherwise a caller could guess words until the index has removed the entries.
    assert looked_at() == 0
    assert all("Carps" not in h["text"] for h in hits(api, "carps winter"))
    assert api.send("DELETE", path).json()["outcome"] == "unchanged"
    nothing = api.send("DELETE", f"/rag/documents/{'0' * 32}")
    assert problem(nothing) == (404, "unknown-document")
    api.driver.sync("acme")
    assert status(api) == (0, 0)
    assert all("Carps" not in h["text"] for h in hits(api, "carps winter"))
    file.write_text("# Pond\n\nCarps winter in the deep of the pond.\n")
    api.driver.sync("acme")
    assert any("the deep" in h["text"] for h in hits(api, "carps winter"))
    file.unlink()
    api.driver.sync("acme")


@pytest.mark.parametrize("kind", ["record", "file"])
def test_a_sync_under_way_brings_nothing_back_that_is_deleted(api: Api, kind: str) -> None:
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    file = api.driver.session.settings.home.parent / "sources" / "acme" / "public" / "race.md"
    if kind == "record":
        api.send("PUT", "/rag/records/page/race", {"text": "A race of snails."})
    else:
        file.write_text("A race of snails.")
    api.driver.sync("acme")
    [hit] = [h for h in hits(api, "race of snails") if "snails" in h["text"]]
    id_ = hit["document_id"]
    [row] = catalog.documents.find("acme", [id_])
    listed = DocumentChange(
        *(row.document_id, row.source, row.source_type, row.path, row.uri, row.facts),
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        modified_at=row.modified_at,
    )
    serving = catalog.generations.serving("acme")
    assert serving is not None
    [held] = [
        v for v in catalog.index.stream_versions("acme", serving.number) if v.document_id == id_
    ]
    version = IndexedVersion(
        id_, held.indexed_key, row.document_key, "any", "parsed", "chunks", held.chunk_count
    )

    api.send("DELETE", f"/rag/documents/{id_}")
    catalog.documents.record(ref, [listed], lane=0)
    catalog.index.commit(ref, serving.number, [version])
    [row] = catalog.documents.find("acme", [id_])
    assert row.status == "DELETED"
    assert all("snails" not in h["text"] for h in hits(api, "race of snails"))
    if kind == "record":
        api.send("PUT", "/rag/records/page/race", {"text": "Another race."})
        catalog.documents.record(ref, [listed], lane=0)
        [row] = catalog.documents.find("acme", [id_])
        assert row.status == "DELETED"
        api.send("DELETE", "/rag/records/page/race")
    file.unlink(missing_ok=True)
    api.driver.sync("acme")
    assert status(api) == (0, 0)


def test_reindexed_documents_are_read_parsed_and_indexed_again(api: Api) -> None:
    catalog = api.driver.session.catalog
    broken = api.driver.session.settings.home.parent / "sources" / "acme" / "public" / "b.pdf"
    broken.write_bytes(b"%PDF-1.7 and no more")
    assert api.driver.sync("acme")["failed"] == 1
    living = len(catalog.documents.all("acme"))
    whole = living - 1
    answer = api.send("POST", "/rag/reindex", {"scope": "tenant"})
    assert (answer.status_code, answer.json()) == (202, {"documents": living})
    assert status(api) == (0, living)
    done = api.driver.sync("acme")
    assert (done["parsed"], done["upserted"], done["deleted"]) == (whole, whole, whole)
    assert (done["failed"], done["embedded"]) == (1, 0)
    broken.unlink()
    assert status(api) == (0, 0)
    source = {"scope": "source", "id": "public"}
    assert api.send("POST", "/rag/reindex", source).json() == {"documents": 2}
    [document] = [d for d in catalog.documents.all("acme") if d.source == "board"]
    one = {"scope": "document", "id": document.document_id}
    assert api.send("POST", "/rag/reindex", one).json() == {"documents": 1}
    assert api.driver.sync("acme")["parsed"] == 2
    nowhere = {"scope": "source", "id": "nowhere"}
    assert problem(api.send("POST", "/rag/reindex", nowhere)) == (404, "unknown-source")
    nothing = {"scope": "document", "id": "0" * 32}
    assert problem(api.send("POST", "/rag/reindex", nothing)) == (404, "unknown-document")
    kinds = api.get(api.token("chief", role="admin"), "/rag/events", kind="reindex_requested")
    told = [event["payload"] for event in kinds.json()["events"][:3]]
    assert [payload["scope"] for payload in told] == ["document", "source", "tenant"]
    assert {payload["by"] for payload in told} == {"jwt:chief"}


@pytest.mark.parametrize(
    "id_", ["a/b/c", "ÄÖ €🔒", "a b?c#d&e=f", "100%", "x" * 512, "'; DROP TABLE x --"]
)
def test_any_id_is_a_record_of_its_own(api: Api, id_: str) -> None:
    path = f"/rag/records/row/{quote(id_, safe='')}"
    answer = api.send("PUT", path, {"text": "A row."})
    assert answer.status_code == 202, answer.text
    assert answer.json()["document_id"] == compute_record_document_id("pushed", "row", id_)
    assert api.send("DELETE", path).json()["outcome"] == "removed"


@pytest.mark.parametrize("id_", ["%00", "%0A", "%FF", "", "x" * 513])
def test_no_record_has_an_id_that_cannot_be_kept(api: Api, id_: str) -> None:
    assert api.send("PUT", f"/rag/records/row/{id_}", {"text": "A row."}).status_code in {404, 422}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": "a\0b"},
        {"text": " \n"},
        {"text": "a", "media_type": "application/pdf"},
        {"text": "a", "metadata": {"a.b": "c"}},
        {"text": "a", "metadata": {"a": {"b": "c"}}},
        {"text": "a", "uri": "two\nlines"},
        {"text": "a", "updated_at": "2026-01-01T00:00:00"},
        {"text": "a", "caller": "ada"},
    ],
)
def test_a_record_that_is_not_valid_is_refused(api: Api, body: dict[str, Any]) -> None:
    assert problem(api.send("PUT", PAGE, body)) == (422, "invalid-request")
    assert status(api) == (0, 0)


def test_a_secret_record_is_kept_nowhere(api: Api) -> None:
    path = "/rag/records/file/s"
    api.send("PUT", path, {"text": "The combination is 1234."})
    secret = {"text": "The combination is 1234.", "metadata": {"is_secret": True}}
    assert api.send("PUT", path, secret).json()["outcome"] == "secret"
    assert status(api) == (0, 0)
    records = api.driver.session.catalog.records.for_tenant("acme")
    assert [record for record in records.iter_records("pushed") if record.source_id == "s"] == []


def test_only_an_admin_of_the_tenant_writes(api: Api) -> None:
    writes = [
        ("PUT", PAGE, {"text": "a"}),
        ("PUT", PAGE, {"no": "record"}),
        ("DELETE", PAGE, None),
        ("DELETE", f"/rag/documents/{'0' * 32}", None),
        ("POST", "/rag/reindex", {"scope": "tenant"}),
    ]
    other = api.token("chief", "other", role="admin")
    for method, path, body in writes:
        assert problem(api.send(method, path, body, token=api.token())) == (403, "forbidden")
    assert problem(api.send("PUT", f"{PAGE}?tenant=acme", {"text": "a"}, token=other)) == (
        403,
        "forbidden",
    )
    assert status(api) == (0, 0)


def test_a_tenant_without_a_source_of_records_gets_the_remedy(api: Api) -> None:
    token = api.token("chief", "other", role="admin")
    refused = api.send("PUT", PAGE, {"text": "a"}, token=token)
    assert problem(refused) == (409, "no-records-source")
    assert "type: records" in refused.json()["detail"]


def test_members_see_their_own_searches_and_admins_everything(api: Api) -> None:
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    for caller in ("jwt:eve", "jwt:ada"):
        told = {"search_id": caller, "caller": caller, "query": "valves?"}
        catalog.events.write(ref, "rag_search_started", [told])
    catalog.events.write(ref, "document_indexed", [{"uri": "x", "caller": "jwt:eve"}])

    def seen(token: str, **parameters: Any) -> list[tuple[str, Any]]:
        page = api.get(token, "/rag/events", **parameters).json()["events"]
        return [(event["kind"], event["payload"].get("caller")) for event in page]

    assert ("rag_search_started", "jwt:eve") in seen(api.token())
    assert {who for _, who in seen(api.token())} == {"jwt:eve"}
    assert {kind for kind, _ in seen(api.token())} <= {*SEARCHES}
    assert seen(api.token(), kind="document_indexed") == []
    admin = api.token("chief", role="admin")
    assert {("rag_search_started", "jwt:ada"), ("document_indexed", "jwt:eve")} <= {*seen(admin)}
    newest = api.get(admin, "/rag/events", limit=1).json()
    older = api.get(admin, "/rag/events", limit=1, after=newest["next"]).json()
    assert older["events"][0]["id"] < newest["events"][0]["id"] == newest["next"]


def test_a_purge_names_its_receipt_and_what_is_held_is_refused(api: Api) -> None:
    api.send("PUT", "/rag/records/page/seal", {"text": "Seventeen grey seals lie on the sandbank."})
    api.driver.sync("acme")
    [hit] = [h for h in hits(api, "grey seals") if "sandbank" in h["text"]]
    path = f"/rag/documents/{hit['document_id']}?purge=true"
    catalog = api.driver.session.catalog
    ref = catalog.tenants.get("acme").ref
    scope = HoldScope(document_id=hit["document_id"])
    catalog.holds.set(ref, scope, reason="a claim", by="a test")
    assert problem(api.send("DELETE", path)) == (409, "on-hold")
    assert catalog.holds.lift(ref, scope, reason="settled", by="a test")
    said = api.send("DELETE", path)
    assert (said.status_code, said.json()["outcome"]) == (202, "removed")
    assert all("sandbank" not in h["text"] for h in hits(api, "grey seals"))
    with api.driver.locked("acme") as ctx:
        [receipt] = settle_open_erasures(ctx)
    assert str(receipt.id) == said.json()["receipt"]
    assert (receipt.kind, receipt.counts["records"]["records"]) == ("purge", 1)
    assert receipt.proof["found"] == {"index": 0, "lake": 0, "postgres": []}
    assert problem(api.send("DELETE", f"/rag/documents/{'0' * 32}?purge=true"))[0] == 404


def test_filters_that_match_nothing_are_named_and_empty_lists_match_nothing(api: Api) -> None:
    body = {"text": "The sluice opens at dawn.", "tags": ["water"], "metadata": {"year": 2024.0}}
    api.send("PUT", "/rag/records/page/sluice", body)
    api.driver.sync("acme")

    def asked(**narrowed: Any) -> tuple[set[str], set[str]]:
        answer = api.ask(api.token(), query="sluice", **narrowed).json()
        uris = {hit["uri"] for hit in answer["hits"]}
        return uris, {warning["field"] for warning in answer["warnings"]}

    page = "pushed/page/sluice"
    for year in (2024, 2024.0, "2024", [2024, 1999]):
        uris, unmatched = asked(filters={"metadata": {"year": year}})
        assert uris == {page}
        assert unmatched == ({"filters.metadata.year.1"} if isinstance(year, list) else set())
    assert asked(filters={"tags": ["water"]}) == ({page}, set())
    for name in ("documents", "paths", "languages", "tags", "within"):
        assert asked(filters={name: []}) == (set(), {f"filters.{name}"})
    assert asked(source_types=[]) == (set(), {"source_types"})
    assert asked(source_types=["page", "pages"]) == ({page}, {"source_types.1"})
    assert asked(filters={"tags": ["water", "wine"]}) == (set(), {"filters.tags.1"})
    assert asked(filters={"paths": ["pushed", "pusht"]}) == ({page}, {"filters.paths.1"})
    # Unreadable documents are reported like missing ones.
    assert asked(filters={"paths": ["board"]}) == (set(), {"filters.paths.0"})
    api.send("DELETE", "/rag/records/page/sluice")
    api.driver.sync("acme")
    assert asked(filters={"tags": ["water"]}) == (set(), {"filters.tags.0"})


@pytest.mark.parametrize(
    ("narrowed", "named"),
    [
        ({"source_types": ["file", "files"]}, "it must be one of: file"),
        ({"filters": {"languages": ["English"]}}, "de, "),
        ({"filters": {"metadata": {"year": {"gt": 2}}}}, ""),
    ],
)
def test_an_unknown_value_of_a_closed_set_is_refused_with_those_allowed(
    api: Api, narrowed: dict[str, Any], named: str
) -> None:
    response = api.ask(api.token("eve", "other"), **narrowed)
    assert problem(response) == (422, "invalid-request")
    assert named in response.text


def test_an_unknown_kind_of_event_is_refused_with_those_allowed(api: Api) -> None:
    response = api.get(api.token(role="admin"), "/rag/events", kind="documents_indexed")
    assert problem(response) == (422, "invalid-request")
    assert "document_indexed" in response.text
