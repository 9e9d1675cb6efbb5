"""Records of a workspace: typed bodies, the stored text, and hits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest
from sqlalchemy import text

from rag_assets.ingest.sources.record_bodies import PageBlocks
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.records import drafts
from tests import driving
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace
from tests.unit.ingest.parsing.office_files import word
from tests.unit.ingest.parsing.pictures import bomb, drawn, saved

PAGE = {
    "title": "Rollbacks",
    "url": "https://wiki.example/p/1",
    "blocks": [
        {"block_id": "h", "type": "heading", "level": 2, "text": "Who approves"},
        {"block_id": "b1", "type": "paragraph", "text": "A duty manager approves a rollback."},
        {"block_id": "gone", "type": "paragraph", "text": "The zeppelin.", "archived": True},
        {
            "block_id": "code",
            "type": "code",
            "text": "quokka --password",
            "metadata": {"secret": True},
        },
    ],
}


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "wiki") as made:
        made.grant("p-1", "p-2", "long", "db-1")
        yield made


def problem(answer: Any) -> tuple[int, list[str]]:
    return answer.status_code, [error["field"] for error in answer.json().get("errors", ())]


def stored(site: Site) -> str:
    """Return the texts of the workspace's records in Postgres, including former ones."""
    queries = (
        "SELECT text FROM rag_catalog.source_records",
        "SELECT text FROM rag_catalog.record_texts",
    )
    with site.catalog.database.begin() as connection:
        return "\n".join(
            str(value)
            for query in queries
            for value in connection.execute(
                text(f"{query} WHERE tenant = :t"), {"t": site.id}
            ).scalars()
        )


def test_a_page_is_found_by_the_block_that_holds_the_answer(site: Site) -> None:
    assert site.put("page", "p-1", PAGE) == "queued"
    assert site.put("page", "p-1", PAGE) == "unchanged"
    assert "quokka" not in stored(site)
    assert "zeppelin" in stored(site)
    site.sync()
    [hit] = site.hits("who approves a rollback")
    assert hit["source_type"], hit["source_id"] == ("page", "p-1")
    assert (hit["page_uuid"], hit["block_id"]) == ("p-1", "b1")
    assert hit["url"] == "https://wiki.example/p/1#b1"
    assert hit["heading_path"] == ["Rollbacks", "Who approves"]
    assert "zeppelin" not in hit["text"]
    assert site.hits("zeppelin") == []


def test_a_block_is_changed_alone(site: Site) -> None:
    site.put(
        "page", "p-2", {"title": "Pumps", "blocks": [_block("a", "One."), _block("c", "Three.")]}
    )
    body = {
        "page_uuid": "p-2",
        "block": _block("b", "The impeller is made of bronze."),
        "after": "a",
    }
    assert site.put("block", "b", body) == "queued"
    assert site.put("block", "b", body) == "unchanged"
    site.sync()
    [hit] = site.hits("impeller")
    assert hit["block_id"] == "b"
    assert hit["text"].index("One.") < hit["text"].index("impeller") < hit["text"].index("Three.")
    body["block"] = _block("b", "The impeller is made of steel.", archived=True)
    del body["after"]
    assert site.put("block", "b", body) == "queued"
    site.sync()
    assert site.hits("impeller") == []
    assert problem(site.send("DELETE", "/rag/records/block/a")) == (422, ["page_uuid"])
    answer = site.send("DELETE", "/rag/records/block/a?page_uuid=p-2")
    assert answer.json()["outcome"] == "queued"
    site.sync()
    assert '"One."' not in stored(site)
    unknown = site.send(
        "PUT", "/rag/records/block/x", {"page_uuid": "none", "block": _block("x", "X")}
    )
    assert unknown.status_code == 404


def test_many_blocks_of_one_page_are_one_change_of_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    opening = PageBlocks.__init__

    def counted(self: PageBlocks, text: str) -> None:
        read.append(text)
        opening(self, text)

    monkeypatch.setattr(PageBlocks, "__init__", counted)
    monkeypatch.setattr(drafts, "MAX_PAGE_BYTES", 1 << 20)
    site.put("page", "batch", {"title": "Many", "blocks": [_block("a", "Alpha.")]})

    def line(number: int, text: str = "", **more: Any) -> dict[str, Any]:
        block = _block(f"n{number}", text or f"Numbat {number}.")
        at = f"2026-11-20T09:{number:02}:00Z"
        body = {"page_uuid": "batch", "block": block, "updated_at": at}
        return {"op": "put", "type": "block", "id": f"n{number}", **body, **more}

    lines = [
        *(line(number) for number in range(40)),
        line(40, "x" * (1 << 20)),
        line(41, after=None),
        {"op": "delete", "type": "block", "id": "n3", "page_uuid": "batch"},
        line(42, page_uuid="unknown"),
        line(0, "Last word."),
    ]
    outcomes = [one["outcome"] for one in site.lines(lines)]
    assert outcomes == [*["queued"] * 40, "invalid", "queued", "queued", "unknown-page", "queued"]
    assert len(read) == 1, "the page is read once"
    stored = site.catalog.records.find(
        site.id, compute_record_document_id("pushed", "page", "batch")
    )
    assert stored is not None
    blocks = json.loads(stored.text)["blocks"]
    ids = [one["block_id"] for one in blocks]
    assert ids == ["n41", "a", *(f"n{number}" for number in range(40) if number != 3)]
    assert blocks[2]["text"] == "Last word."
    assert str(stored.source_metadata.modified_at) == "2026-11-20 09:41:00+00:00"
    site.sync()


def test_blocks_of_a_long_page_are_entries_and_one_hit_with_their_page(site: Site) -> None:
    words = " ".join(f"word{number}" for number in range(300))
    blocks = [_block(f"b{number}", f"Section {number}. {words}") for number in range(6)]
    blocks[4]["text"] = f"The marmoset sleeps in the attic. {words}"
    site.put("page", "long", {"title": "Long", "blocks": blocks})
    site.sync()
    hits = [hit for hit in site.hits("marmoset attic") if "marmoset" in hit["text"]]
    assert len(hits) == 1
    assert (hits[0]["block_id"], hits[0]["source_id"]) == ("b4", "long")
    found = site.hits("marmoset attic", source_types=["block"])
    assert [hit["block_id"] for hit in found if "marmoset" in hit["text"]] == ["b4"]
    assert found[0]["source_type"] == "block"
    assert found[0]["text"] == blocks[4]["text"], "a block is uncut"


def test_comments_leave_on_the_day_however_many_they_are(site: Site) -> None:
    now = datetime.now(UTC)
    lately, long_ago = now - timedelta(days=2), now - timedelta(days=31)
    comment = {"page_uuid": "p-1", "block_id": "b1"}
    for number in range(30):
        body = {
            **comment,
            "text": f"Nit {number} about armadillos.",
            "resolved_at": lately.isoformat(),
        }
        assert site.put("comment", f"c{number}", body) == "queued"
    site.sync()
    [first, *_] = site.hits("armadillos")
    assert (first["source_type"], first["block_id"], first["page_uuid"]) == ("comment", "b1", "p-1")
    with site.catalog.database.begin() as connection:
        connection.execute(
            text(
                "UPDATE rag_catalog.source_records SET resolved_at = :at"
                " WHERE resolved_at IS NOT NULL"
            ),
            {"at": long_ago},
        )
    clock = site.catalog.clock
    clock.replace(long_ago, None)
    assert site.sync()["deleted"] == 0, "the clock may be wrong"
    clock.replace(now, None)
    made = site.sync()
    assert made["deleted"] == 30
    assert site.hits("armadillos") == []
    old = {**comment, "text": "An old armadillo.", "resolved_at": long_ago.isoformat()}
    assert site.put("comment", "old", old) == "excluded"
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": 60})
    site.sync()
    assert len(site.hits("armadillos", top_k=20)) == 20
    site.send("PATCH", "/rag/settings", {"resolved_comment_days": None})
    site.sync()
    assert site.hits("armadillos") == []
    assert site.status()["queue_depth"] == 0


def test_templates_and_rows_are_found_by_their_texts(site: Site) -> None:
    payload = {"blocks": [{"text": "Ask the lemur"}], "level": 3, "draft": False, "none": None}
    site.put("template", "t-1", {"name": "Standup", "description": "Daily.", "payload": payload})
    row = {"database_uuid": "db-1", "values": [{"name": "City", "value_text": "Tallinn"}]}
    site.put("db_row", "r-1", row)
    site.sync()
    [hit] = site.hits("lemur")
    assert (hit["source_type"], hit["page_uuid"], hit["title"]) == ("template", None, "Standup")
    assert "blocks.text: Ask the lemur" in hit["text"]
    [hit] = site.hits("tallinn")
    assert (hit["source_type"], hit["page_uuid"]) == ("db_row", "db-1")
    assert (hit["title"], hit["text"]) == ("Tallinn", "City: Tallinn")


def test_rows_are_filtered_by_their_properties_but_for_credentials(site: Site) -> None:
    def row(name: str, **values: str) -> None:
        told = [{"name": one, "value_text": value} for one, value in values.items()]
        site.put("db_row", name, {"database_uuid": "db-1", "values": told})

    row("d1", Deal="Pelican one", Größe="groß", Stage="won")
    row("d3", Deal="Heron", Stage="new", Token=f"ghp_{'a1B2' * 9}")
    row("d2", Deal="Pelican two", Stage="lost")
    site.sync()

    def found(**metadata: str) -> set[str]:
        hits = site.hits("pelican", filters={"metadata": metadata})
        return {hit["source_id"] for hit in hits}

    assert found(Stage="won") == found(Größe="groß") == {"d1"}
    assert found(Stage="lost") == {"d2"}
    assert found(Stage="open") == set()
    with site.catalog.database.begin() as connection:
        query = "SELECT metadata::text FROM rag_catalog.documents WHERE tenant = :t"
        kept = "".join(connection.execute(text(query), {"t": site.id}).scalars())
    assert "Stage" in kept
    assert "Token" not in kept
    assert "ghp_" not in kept


def test_blocks_within_others_follow_them_and_share_what_hides_them(site: Site) -> None:
    hidden = _block("gone", "The ibex.", archived=True) | {"children": [_block("g1", "The oryx.")]}
    code = {**_block("code", "kudu"), "type": "code", "metadata": {"secret": True}}
    code["children"] = [_block("c1", "The kudu sleeps.")]
    inner = _block("i", "Second quagga.") | {"children": [_block("ii", "Third quagga.")]}
    outer = _block("o", "First quagga.") | {"children": [inner]}
    page = {"title": "Nested", "blocks": [outer, hidden, code, _block("last", "Fourth quagga.")]}
    assert site.put("page", "p-2", page) == "queued"
    site.sync()
    [hit] = site.hits("quagga")
    order = [hit["text"].index(f"{word} quagga") for word in ("First", "Second", "Third", "Fourth")]
    assert order == sorted(order)
    assert [place["block_id"] for place in hit["blocks"]] == ["o", "i", "ii", "last"]
    assert [site.hits(word) for word in ("ibex", "oryx", "kudu")] == [[], [], []]
    assert "kudu" not in stored(site)
    alone = {"page_uuid": "p-2", "block": _block("o", "x") | {"children": [_block("n", "x")]}}
    refused = site.send("PUT", "/rag/records/block/o", alone)
    assert problem(refused) == (422, ["block"])
    twice = {"title": "x", "blocks": [_block("a", "x") | {"children": [_block("a", "x")]}]}
    assert problem(site.send("PUT", "/rag/records/page/p-2", twice)) == (422, ["block_id"])
    site.send("DELETE", "/rag/records/page/p-2")
    site.grant("p-2")


def test_a_page_over_a_mebibyte_comes_in_parts(site: Site) -> None:
    filler = "The tern flies over the water and comes back to its cliff. " * 300
    blocks = [_block(f"b{n}", f"{filler} number{n}") for n in range(120)]
    site.put("page", "long", {"title": "Long", "blocks": blocks[:20]})
    lines = [
        {"op": "put", "type": "block", "id": block["block_id"], "page_uuid": "long", "block": block}
        for block in blocks[20:]
    ]
    assert {line["outcome"] for line in site.lines(lines)} == {"queued"}
    document_id = compute_record_document_id("pushed", "page", "long")
    assert len(site.catalog.records.for_tenant(site.id).text(document_id) or "") > 2 << 20
    site.sync()
    state = site.send("GET", "/rag/records/page/long?chunks=false").json()
    assert (state["status"], state["chunks"]) == ("indexed", [])
    assert state["chunk_count"] > 120
    [hit] = site.hits("number117", top_k=1)
    assert (hit["source_id"], hit["block_id"]) == ("long", "b117")
    site.send("DELETE", "/rag/records/page/long")
    site.sync()


def test_files_are_found_by_their_content(site: Site) -> None:
    assert site.put_content("f-1", b"# Early\n").status_code == 404
    assert site.put("file", "f-1", {"page_uuid": "p-1", "name": "notes.md"}) == "queued"
    site.sync()
    assert site.status()["queue_depth"] == 0, "a file without content is nothing to be indexed"
    ships = b"# Ships\n\nThe sloop sails at dawn.\n"
    answer = site.put_content("f-1", ships)
    assert (answer.status_code, answer.json()["outcome"]) == (202, "queued")
    site.sync()
    [hit] = site.hits("sloop")
    assert (hit["source_type"], hit["source_id"], hit["page_uuid"]) == ("file", "f-1", "p-1")
    assert (
        site.put_content("f-1", b"# Ships\n\nThe sloop sails at dawn.\n").json()["outcome"]
        == "unchanged"
    )
    for name, content in (
        ("table.csv", b"ship,port\nsloop,Narvik\n"),
        ("page.html", b"<html><body><h1>Port</h1><p>The sloop of Narvik.</p></body></html>"),
        ("letter.docx", word(lambda made: made.add_paragraph("The sloop of Narvik."))),
    ):
        site.put("file", name, {"page_uuid": "p-1", "name": name})
        assert site.put_content(name, content).status_code == 202, name
        site.sync()
        assert {hit["source_id"] for hit in site.hits("narvik")} == {name}
        site.send("DELETE", f"/rag/records/file/{name}")
    assert site.put_content("f-1", b"\x89PNG\r\n\x1a\n" + bytes(40)).status_code == 415
    site.put_content("f-1", b"# Ships\n\nThe galleon sails at noon.\n")
    site.sync()
    assert site.hits("sloop") == []
    assert len(site.hits("galleon")) == 1
    secret = {"page_uuid": "p-1", "name": "n.md", "metadata": {"is_secret": True}}
    assert site.put("file", "f-1", secret) == "secret"
    assert site.hits("galleon") == []
    site.sync()
    assert list(site.catalog.blob_needs.all(site.id)) == []


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("ghost/1", {"title": "x"}, "source_type"),
        ("page/1", {"title": "x", "colour": 1}, "*"),
        ("page/1", {"blocks": []}, "title"),
        ("page/1", {"title": "x", "blocks": [{"block_id": "a"}]}, "blocks.0.type"),
        ("page/1", {"title": "x", "blocks": [{"block_id": "a", "type": "p"}] * 2}, "block_id"),
        ("page/1", {"title": "x", "url": "javascript:alert(1)"}, "url"),
        ("comment/1", {"text": "x"}, "page_uuid"),
        ("comment/1", {"page_uuid": "xoxb-1", "text": "x"}, "page_uuid"),
        ("file/1", {"page_uuid": "p", "name": ""}, "name"),
        ("db_row/1", {"database_uuid": "d", "values": [{"name": "n"}]}, "values.0.value_text"),
        ("block/1", {"page_uuid": "p", "block": {"block_id": "2", "type": "p"}}, "block_id"),
    ],
)
def test_bodies_that_are_not_of_their_type_name_the_field(
    site: Site, path: str, body: dict[str, Any], field: str
) -> None:
    assert problem(site.send("PUT", f"/rag/records/{path}", body)) == (422, [field])


def test_lines_are_followed_in_order_and_a_bad_one_stops_no_other(site: Site) -> None:
    page = {"op": "put", "type": "page", "id": "bulk", "title": "Bulk"}
    outcomes = site.lines(
        [
            {**page, "blocks": [_block("a", "The first axolotl.")]},
            "{no json",
            {**page, "op": "sell"},
            {
                "op": "put",
                "type": "block",
                "id": "b",
                "page_uuid": "bulk",
                "block": _block("b", "Second."),
            },
            {
                "op": "put",
                "type": "block",
                "id": "b",
                "page_uuid": "nowhere",
                "block": _block("b", "?"),
            },
            {"op": "put", "type": "comment", "id": "k", "page_uuid": "bulk", "text": 7},
            {"op": "put", "type": "comment", "id": "k", "page_uuid": "bulk", "text": "Kept."},
            {"op": "delete", "type": "comment", "id": "k"},
        ]
    )
    assert [outcome["outcome"] for outcome in outcomes] == [
        *("queued", "invalid", "invalid", "queued", "unknown-page", "invalid"),
        *("unchanged", "unchanged"),
    ]
    assert [outcome["line"] for outcome in outcomes] == [*range(1, 9)]
    assert outcomes[2]["errors"][0]["field"] == "op"
    assert outcomes[5]["errors"][0]["field"] == "text"
    site.grant("bulk")
    site.sync()
    [hit] = site.hits("axolotl")
    assert "Second." in hit["text"]
    assert site.lines([{"op": "delete", "type": "page", "id": "bulk"}])[0]["outcome"] == "removed"
    assert site.hits("axolotl") == []
    many = "\n".join(["{}"] * 1_001)
    answer = site.client.post("/rag/records", content=many, headers=site.headers())
    assert answer.status_code == 413


def _block(block_id: str, words: str, **more: Any) -> dict[str, Any]:
    return {"block_id": block_id, "type": "paragraph", "text": words, **more}


def test_what_became_of_a_record_is_told_to_who_may_read_it(site: Site) -> None:
    path = "/rag/records/page/told"
    site.put("page", "told", {"title": "Told", "blocks": [_block("a", "A capybara bathes.")]})
    assert site.send("GET", path).status_code == 404, "an admin reads no private page"
    site.grant("told")
    assert site.send("GET", path).json()["status"] == "queued"
    site.sync()
    found = site.send("GET", path, role="member").json()
    assert (found["status"], found["reason"], found["dropped_chunks"]) == ("indexed", None, 0)
    [chunk] = found["chunks"]
    assert chunk == {
        "workspace_id": site.id,
        "source_type": "page",
        "source_id": "told",
        "chunk_index": 0,
        "text": "Told\n\nA capybara bathes.",
        "content_hash": sha256(chunk["text"].encode()).hexdigest(),
        "page_uuid": "told",
        "block_ids": ["a"],
    }
    assert site.send("GET", path, subject="eve", role="member").status_code == 404
    site.put("file", "empty", {"page_uuid": "told", "name": "a.pdf"})
    left_out = site.send("GET", "/rag/records/file/empty").json()
    assert (left_out["status"], left_out["chunks"]) == ("excluded", [])
    site.put_content("empty", b"%PDF-1.4 nothing that could be read")
    site.sync()
    assert site.send("GET", "/rag/records/file/empty").json()["status"] == "failed"
    site.put("page", "told", {"title": "Told", "blocks": [_block("a", "It dries.")]})
    again = site.send("GET", path).json()
    assert (again["status"], again["chunks"][0]["text"]) == ("queued", chunk["text"])
    site.send("DELETE", path)
    assert site.send("GET", path).status_code == 404


def test_a_run_indexes_what_it_has_listed_though_it_is_pushed_again_meanwhile(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.grant("busy")

    def push(number: int) -> None:
        block = _block("a", f"The clock shows {number} pangolins.")
        assert site.put("page", "busy", {"title": "Busy", "blocks": [block]}) == "queued"

    push(1)
    numbers = iter(range(2, 100))
    listing, parsing = driving.list_documents, driving.parse_documents

    def listed_and_pushed(*arguments: Any, **options: Any) -> Any:
        found = listing(*arguments, **options)
        push(next(numbers))
        return found

    def parsed_and_pushed(*arguments: Any, **options: Any) -> Any:
        push(next(numbers))
        found = parsing(*arguments, **options)
        push(next(numbers))
        return found

    monkeypatch.setattr(driving, "list_documents", listed_and_pushed)
    monkeypatch.setattr(driving, "parse_documents", parsed_and_pushed)
    made = site.driver.run_once(site.id)
    assert (made["parsed"], made["failed"]) == (1, 0)
    [hit] = site.hits("pangolins")
    assert "shows 1 pangolins" in hit["text"]
    assert hit["stale"]
    made = site.driver.run_once(site.id)
    [hit] = site.hits("pangolins")
    assert "shows 4 pangolins" in hit["text"], "what the second listing found"
    monkeypatch.undo()
    site.sync()
    [hit] = site.hits("pangolins")
    assert "shows 7 pangolins" in hit["text"]
    assert stored(site).count("pangolins") == 1, "former texts are gone"


def test_hits_are_twenty_at_most_whatever_is_asked_for(site: Site) -> None:
    site.grant("many")
    lines = [
        {"op": "put", "type": "comment", "id": f"m{n}", "page_uuid": "many", "text": f"Ibex {n}."}
        for n in range(30)
    ]
    assert {line["outcome"] for line in site.lines(lines)} == {"queued"}
    site.put("comment", "single", {"page_uuid": "many", "text": "A single ibex."})
    with site.driver.locked(site.id) as ctx:
        driving.list_documents(ctx, site.driver.scanner)
        rows = ctx.catalog.documents.all(site.id)
        waiting = [row.document_id for row in rows if row.status == "PROCESSING"]
        first = ctx.catalog.documents.find(site.id, waiting)[0].source_id
    assert first == "single", "lines yield to single pushes"
    site.sync()
    for asked in (20, 21, 100, 101, 10**9):
        assert len(site.hits("ibex", top_k=asked)) == 20
    assert len(site.hits("ibex")) == 8


def test_a_manifest_tells_what_is_missing_stale_and_extra(site: Site) -> None:
    site.send("PUT", "/rag/tree/kept", {})
    lines = [
        {
            "op": "put",
            "type": "comment",
            "id": f"okapi{n}",
            "page_uuid": "kept",
            "text": f"Okapi {n}.",
        }
        for n in range(90)
    ]
    lines[0]["updated_at"] = "2026-01-02T03:04:05Z"
    site.lines(lines)
    others = reconciled(site, [], allow_deletes=False)
    stored_now = others["extra"]
    assert stored_now >= 90
    names = [one for one in others["records"] if not one["id"].startswith("okapi")]
    manifest = [{"type": name["type"], "id": name["id"]} for name in names]
    manifest += [{"type": "comment", "id": f"okapi{n}"} for n in range(90)]
    manifest[-90]["updated_at"] = "2026-01-02T03:04:05.000Z"
    assert counts(reconciled(site, manifest)) == (0, 0, 0)
    manifest[-90]["updated_at"] = "2026-02-02T03:04:05Z"
    manifest[-89]["sha256"] = "0" * 64
    manifest.append({"type": "page", "id": "never"})
    assert counts(reconciled(site, manifest)) == (1, 2, 0)
    site.lines([{**lines[0], "updated_at": "2026-02-02T03:04:05Z"}])
    assert counts(reconciled(site, manifest)) == (1, 1, 0), "a time alone is noted"
    fewer = [one for one in manifest if not one["id"].startswith("okapi")]
    held = site.client.post(
        "/rag/reconcile?apply=true", content=ndjson(fewer), headers=site.headers()
    )
    assert (held.status_code, counts(reconciled(site, fewer))[2]) == (409, 90)
    gone = reconciled(site, fewer, apply=True, allow_deletes=True)
    assert gone["removed"] == 90
    assert counts(reconciled(site, fewer)) == (1, 0, 0)
    bad = site.client.post("/rag/reconcile", content='{"type": "page"}', headers=site.headers())
    assert bad.json()["errors"] == [{"field": "id", "problem": "line 1: this field is needed"}]
    assert problem(bad) == (422, ["id"])


def test_what_is_pushed_while_a_manifest_is_made_is_not_taken_for_extra(site: Site) -> None:
    site.put("comment", "old", {"page_uuid": "p-1", "text": "An old quoll."})
    made = datetime.now(UTC)
    manifest = [{"type": one["type"], "id": one["id"]} for one in reconciled(site, [])["records"]]
    site.put("comment", "new", {"page_uuid": "p-1", "text": "A new quoll."})
    assert counts(reconciled(site, manifest)) == (0, 0, 1)
    as_of = f"&as_of={made.isoformat().replace('+', '%2B')}"
    answer = site.client.post(
        f"/rag/reconcile?apply=true{as_of}", content=ndjson(manifest), headers=site.headers()
    )
    assert (answer.json()["removed"], counts(answer.json())) == (0, (0, 0, 0))
    assert site.send("GET", "/rag/records/comment/new").status_code == 200
    assert reconciled(site, manifest, apply=True)["removed"] == 1
    assert site.send("GET", "/rag/records/comment/new").status_code == 404


def test_a_clock_that_is_ahead_takes_nothing_that_comes_meanwhile_for_extra(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifests = site.client.app.state.backend.catalog.record_manifests
    compare = manifests.compare

    def push_before(*given: Any, **named: Any) -> Any:
        site.put("comment", "meanwhile", {"page_uuid": "p-1", "text": "A manatee."})
        return compare(*given, **named)

    monkeypatch.setattr(manifests, "compare", push_before)
    ahead = datetime.now(UTC) + timedelta(hours=1)
    found = reconciled(site, [], as_of=ahead.isoformat())
    assert site.send("DELETE", "/rag/records/comment/meanwhile").json()["outcome"] == "removed"
    assert "meanwhile" not in {one["id"] for one in found["records"]}


def test_what_is_pushed_again_as_it_was_is_not_taken_for_extra_either(site: Site) -> None:
    site.send("PUT", "/rag/tree/again", {})
    comment = {"page_uuid": "again", "text": "The dugong grazes."}
    file = {"page_uuid": "again", "name": "seas.md"}
    for number in range(3):
        site.put("comment", f"again{number}", comment)
    site.put("file", "again", file)
    site.put_content("again", b"# Seas")
    as_of = datetime.now(UTC)
    assert site.put("comment", "again0", comment) == "unchanged"
    assert [
        line["outcome"]
        for line in site.lines([{"op": "put", "type": "comment", "id": "again1", **comment}])
    ] == ["unchanged"]
    assert site.put_content("again", b"# Seas").json()["outcome"] == "unchanged"
    found = reconciled(site, [], as_of=as_of.isoformat(), allow_deletes=True)
    extra = {one["id"] for one in found["records"] if one["difference"] == "extra"}
    assert "again2" in extra
    assert not extra & {"again0", "again1", "again"}
    for id_ in ("again0", "again1", "again2"):
        site.send("DELETE", f"/rag/records/comment/{id_}")
    site.send("DELETE", "/rag/records/file/again")
    site.sync()


def test_a_manifest_compares_what_the_service_says_and_names_no_block(site: Site) -> None:
    site.put("template", "said", {"name": "Minutes", "payload": {"b": 1, "a": [True, None]}})
    site.put("file", "said", {"page_uuid": "p-1", "name": "said.md"})
    site.put_content("said", b"# Said")
    manifest = [
        {"type": type_, "id": "said", "sha256": site.send("GET", path).json()["sha256"]}
        for type_ in ("template", "file")
        if (path := f"/rag/records/{type_}/said")
    ]
    assert manifest[1]["sha256"] == sha256(b"# Said").hexdigest()
    assert counts(reconciled(site, manifest))[:2] == (0, 0)
    site.put("template", "said", {"name": "Minutes of meetings"})
    assert counts(reconciled(site, manifest))[:2] == (0, 1)
    for type_ in ("block", "wiki"):
        answer = site.client.post(
            "/rag/reconcile",
            content=ndjson([*manifest, {"type": type_, "id": "x"}]),
            headers=site.headers(),
        )
        assert problem(answer) == (422, ["type"])
        assert "line 3" in answer.text


def test_a_block_is_asked_about_by_its_page(site: Site) -> None:
    secret = {"block_id": "x4", "type": "code", "text": "bandicoot", "metadata": {"secret": True}}
    blocks = [
        *(_block("x1", "Wombats dig."), _block("x2", "Wallabies hop.")),
        *(_block("x3", "Quolls hide.", archived=True), secret),
    ]
    site.put("page", "p-2", {"title": "Marsupials", "blocks": blocks})
    site.sync()
    assert problem(site.send("GET", "/rag/records/block/x2")) == (422, ["page_uuid"])
    found = site.send("GET", "/rag/records/block/x2?page_uuid=p-2").json()
    assert found["status"] == "indexed"
    assert [chunk["block_ids"] for chunk in found["chunks"]] == [["x1", "x2"]]
    hidden = site.send("GET", "/rag/records/block/x3?page_uuid=p-2").json()
    assert (hidden["status"], hidden["chunks"]) == ("excluded", [])
    assert "archived" in hidden["reason"]
    # Nothing about a secret block is stored, not even that it exists.
    for block_id in ("none", "x4", "Wombats"):
        answer = site.send("GET", f"/rag/records/block/{block_id}?page_uuid=p-2")
        assert answer.status_code == 404, block_id
    assert site.send("GET", "/rag/records/block/x2?page_uuid=none").status_code == 404
    # Waiting changes are reported with their page, and removed blocks are gone immediately.
    change = {"page_uuid": "p-2", "block": _block("x1", "Numbats dig.")}
    site.put("block", "x1", change)
    path = "/rag/records/block/x1?page_uuid=p-2"
    assert site.send("GET", path).json()["status"] == "queued"
    site.send("DELETE", path)
    assert site.send("GET", path).status_code == 404
    path = "/rag/records/block/x2?page_uuid=p-2"
    assert site.send("GET", path, role="guest", subject="eve").status_code == 404


def test_a_page_may_have_very_many_blocks(site: Site) -> None:
    blocks = [{**_block(f"m{n}", "x"), "level": 0, "archived": False} for n in range(10_000)]
    assert site.put("page", "many", {"title": "Many", "blocks": blocks}) == "queued"
    more = site.send(
        "PUT", "/rag/records/page/many", {"title": "T", "blocks": [*blocks, _block("z", "x")]}
    )
    assert (more.status_code, more.json()["errors"][0]["field"]) == (422, "blocks")
    site.send("DELETE", "/rag/records/page/many")


@pytest.mark.parametrize(
    "payload", [r'{"a": "\ud800"}', r'{"\udfff": 1}', "NaN", "-Infinity", "9" * 5_000, "[" * 3_000]
)
def test_what_no_json_has_is_refused_and_not_stored(site: Site, payload: str) -> None:
    content = f'{{"name": "Odd", "payload": {payload}}}'
    headers = {**site.headers(), "Content-Type": "application/json"}
    answer = site.client.put("/rag/records/template/odd", content=content, headers=headers)
    assert answer.status_code in {400, 422}, answer.text
    line = f'{{"op": "put", "type": "template", "id": "odd", {content[1:]}'
    good = {"op": "put", "type": "template", "id": "even", "name": "Even"}
    first, second = site.lines([line, good])
    assert first["outcome"] == "invalid"
    assert second["outcome"] in {"queued", "unchanged"}
    assert site.send("GET", "/rag/records/template/odd").status_code == 404


def test_records_whose_time_alone_changed_are_listed_again_by_night(site: Site) -> None:
    site.send("PUT", "/rag/tree/dated", {})
    body = {"page_uuid": "dated", "text": "A dated numbat.", "updated_at": "2026-01-01T00:00:00Z"}
    site.put("comment", "dated", body)
    site.sync()
    assert (
        site.put("comment", "dated", {**body, "updated_at": "2026-03-01T00:00:00Z"}) == "unchanged"
    )
    ref = site.catalog.tenants.get(site.id).ref
    assert site.catalog.records.renew_stale(ref) == 1
    assert site.sync()["embedded"] == 0
    [hit] = site.hits("numbat")
    assert hit["modified_at"].startswith("2026-03-01")
    assert site.catalog.records.renew_stale(ref) == 0


def reconciled(site: Site, manifest: list[dict[str, Any]], **parameters: Any) -> dict[str, Any]:
    answer = site.client.post(
        "/rag/reconcile", params=parameters, content=ndjson(manifest), headers=site.headers()
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ndjson(lines: list[dict[str, Any]]) -> str:
    return "\n".join(map(json.dumps, lines))


def counts(found: dict[str, Any]) -> tuple[int, int, int]:
    return found["missing"], found["stale"], found["extra"]


def test_a_picture_is_read_where_ocr_is_on_and_refused_where_it_is_off(
    shared_installation: Installation,
) -> None:
    picture = saved(drawn("Pangolins sleep in the boiler room"), "PNG")
    with workspace(shared_installation, "scans") as site:
        site.grant("p-1")
        site.put("file", "scan", {"page_uuid": "p-1", "name": "scan.png"})
        answer = site.put_content("scan", picture)
        assert answer.status_code == 415
        assert "PNG picture" in answer.text
        assert "save the file in an accepted format: .pdf" in answer.text
        shared_installation.configure("scans", parser={"ocr": True})
        site.driver.session.reconcile()
        assert site.put_content("scan", picture).json()["outcome"] == "queued"
        site.put("file", "gif", {"page_uuid": "p-1", "name": "moving.gif"})
        assert site.put_content("gif", saved(drawn(), "GIF")).status_code == 415
        site.put("file", "bomb", {"page_uuid": "p-1", "name": "bomb.png"})
        assert site.put_content("bomb", bomb(60_000, 60_000)).status_code == 202
        site.put("file", "cut", {"page_uuid": "p-1", "name": "cut.png"})
        assert site.put_content("cut", picture[: len(picture) // 2]).status_code == 202
        site.sync()
        [hit] = site.hits("where do pangolins sleep")
        assert (hit["source_type"], hit["source_id"]) == ("file", "scan")
        states = {
            name: site.send("GET", f"/rag/records/file/{name}").json()
            for name in ("scan", "bomb", "cut")
        }
        assert states["scan"]["status"] == "indexed"
        assert (states["bomb"]["status"], states["cut"]["status"]) == ("excluded", "failed")
        shared_installation.configure("scans", parser=None)
        site.driver.session.reconcile()
        site.sync()
        off = site.send("GET", "/rag/records/file/scan").json()
        assert (off["status"], off["chunks"]) != ("failed", [])
