"""Private pages of a workspace are in no response to an admin who may not read them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from rag_assets.ingest.sources.records import compute_record_document_id
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

WORDS = ("axolotl", "bandicoot", "capybara", "dugong", "echidna", "fossa", "gecko", "hoatzin")
"""A title, a text, an address, the name of a file, its content, a comment, a row, a template's."""
TITLE, TEXT, ADDRESS, NAME, CONTENT, COMMENT, ROW, LATER = WORDS
SECRET = "ghp_Q7wERtYuIoPaSdFgHjKl2"
PAGES = ("own", "hidden")
"""Of bob alone, and one that is archived."""
RECORDS = [
    *(("page", page) for page in PAGES),
    *(("comment", "said"), ("db_row", "row"), ("file", "file"), ("file", "broken")),
]


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    name = f"private-{zlib.crc32(request.node.name.encode())}"
    with workspace(shared_installation, name) as made:
        made.grant(*PAGES, "rows", principal="bob")
        yield made


def push(site: Site, word: str = TEXT) -> None:
    """Push records of all types that contain the words and a credential."""
    url = f"https://wiki.example/{ADDRESS}"
    blocks = [
        {"block_id": "b1", "type": "paragraph", "text": f"The {word} sleeps."},
        {"block_id": "b2", "type": "paragraph", "text": f"It uses {SECRET} here."},
    ]
    for page in PAGES:
        site.put("page", page, {"title": f"On {TITLE}", "url": f"{url}/{page}", "blocks": blocks})
    site.put("comment", "said", {"page_uuid": "own", "text": f"A {COMMENT}. {SECRET}", "url": url})
    values = [{"name": "Animal", "value_text": f"{ROW} {SECRET}"}]
    site.put("db_row", "row", {"database_uuid": "rows", "values": values})
    for file in ("file", "broken"):
        site.put("file", file, {"page_uuid": "own", "name": f"{NAME}.md", "url": url})
    site.put_content("file", f"# {CONTENT}\n\nThe {CONTENT} sleeps. {SECRET}\n".encode())
    site.put_content("broken", f"%PDF-1.7\n{CONTENT} {CONTENT}".encode())


def asked(site: Site, **by: str) -> Iterator[tuple[str, Any]]:
    """Yield every response to an admin, or another caller, about these records."""
    ids = {compute_record_document_id("pushed", *one) for one in RECORDS}
    paths = [
        *(f"/rag/records/{type_}/{id_}" for type_, id_ in RECORDS),
        "/rag/records/block/b1?page_uuid=own",
        *("/rag/events?limit=1000", "/rag/events?kind=secret_dropped", "/rag/status"),
        *("/rag/documents", "/rag/uploads", "/rag/settings"),
        *(f"/rag/documents/{id_}" for id_ in ids),
        *(f"/rag/access?page_uuid={page}&principal=ann" for page in (*PAGES, "rows")),
    ]
    for path in paths:
        yield path, site.send("GET", path, **by)
    for word in WORDS:
        for mode in ("text", "knn", "hybrid"):
            body = {"query": f"sleeps {word[:-1]}", "mode": mode, "debug": True}
            yield f"query {word} {mode}", site.send("POST", "/rag/query", body, **by)
    body = {"query": "sleeps", "filters": {"within": [*PAGES, "rows"]}}
    yield "within", site.send("POST", "/rag/query", body, **by)
    answer = site.client.post("/rag/reconcile", content="", headers=site.headers(**by))
    yield "reconcile", answer
    for page in PAGES:
        yield "reindex", site.send("POST", "/rag/reindex", {"scope": "page", "id": page}, **by)
    change = {"page_uuid": "own", "block": {"block_id": "b9", "type": "p", "text": "New."}}
    yield "block", site.send("PUT", "/rag/records/block/b9", change, **by)


def shown(site: Site) -> Iterator[tuple[str, Any]]:
    """Yield all pages of the panel that the admin sees."""
    link = site.send("POST", "/panel/links", {})
    assert link.status_code == 201, link.text
    url = urlsplit(link.json()["url"])
    code, origin = parse_qs(url.query)["code"][0], f"{url.scheme}://{url.netloc}"
    form, headers = {"code": code}, {"Origin": origin}
    entered = site.client.post(f"{origin}/panel/enter", data=form, headers=headers)
    assert entered.is_success, entered.text
    places = [
        *("", "/status", "/records", "/tree", "/tree/unplaced", "/warnings", "/settings"),
        *("/records?status=failed", "/records?page=own", "/records?type=file", "/tree?page=own"),
        *(f"/record?source=pushed&type={type_}&id={id_}" for type_, id_ in RECORDS),
    ]
    for place in places:
        yield f"panel {place}", site.client.get(f"{origin}/panel/workspace{place}")
    site.client.cookies.clear()


def find_leaks(answers: Iterator[tuple[str, Any]]) -> tuple[set[tuple[str, str]], int]:
    """Return the private words in responses, and the number of successful responses."""
    found, good = set[tuple[str, str]](), 0
    for name, answer in answers:
        assert answer.status_code < 500, (name, answer.text)
        good += answer.status_code < 300
        held = answer.text.lower()
        found |= {(name, word) for word in (*WORDS, SECRET.lower()) if word in held}
    return found, good


def test_an_admin_learns_nothing_of_a_page_that_they_do_not_read(site: Site) -> None:
    push(site)
    site.sync()
    said = {"inherit": False, "read": ["bob"], "archived": True}
    assert site.send("PUT", "/rag/tree/hidden", said).status_code == 200
    question = {"query": f"Why does the {TEXT} of {TITLE} sleep?"}
    answer = site.send("POST", "/rag/query", question, role="member", subject="bob")
    assert TEXT in answer.text, "bob reads it"
    push(site, LATER)
    for _ in ("while it waits", "after it was indexed"):
        assert find_leaks(asked(site))[0] == set()
        found, good = find_leaks(shown(site))
        assert found == set()
        assert good >= 11
        site.sync()
    # The event about the credential has only the described fields.
    events = site.send("GET", "/rag/events?kind=secret_dropped&limit=1000").json()["events"]
    payloads = [event["payload"] for event in events]
    assert {payload["type"] for payload in payloads} >= {"page", "comment", "file", "db_row"}
    assert {name for payload in payloads for name in payload} == {
        "source",
        "type",
        "id",
        "chunk",
        "rule",
    }
    bobs = site.send("GET", "/rag/events?limit=1000", subject="bob")
    assert ADDRESS in bobs.text, "an admin who reads it is told"
    searches = [one for one in events_of(site) if one["kind"].startswith("rag_search")]
    of_bob = [search["payload"] for search in searches if search["payload"]["caller"] == "jwt:bob"]
    assert of_bob, "that others have searched is told"
    assert not {"query", "ids", "chosen", "scores", "nearest"} & {n for one in of_bob for n in one}
    own = [search["payload"] for search in searches if search["payload"]["caller"] == "jwt:ann"]
    assert own
    assert all("query" in one for one in own)
    site.send("DELETE", "/rag/tree/own")
    site.sync()
    assert find_leaks(asked(site))[0] == set()


def test_an_address_that_a_private_record_shares_tells_nothing_of_it(site: Site) -> None:
    site.grant("open")
    for page, address in (("open", "shared"), ("own", "shared"), ("open-too", "alone")):
        url = f"https://wiki.example/{address}"
        site.grant("open-too")
        site.put("page", page, {"title": page, "url": url, "blocks": []})
    site.sync()
    uris = [one["payload"].get("uri") for one in events_of(site)]
    assert "https://wiki.example/alone" in uris
    assert "https://wiki.example/shared" not in uris


def events_of(site: Site) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(site.send("GET", "/rag/events?limit=1000").text)[
        "events"
    ]
    return found


def test_a_writer_is_told_what_became_of_each_record_and_nothing_that_it_says(site: Site) -> None:
    push(site)
    block = {"block_id": "b1", "type": "paragraph", "text": f"The {TEXT} sleeps."}
    site.put("page", "outside", {"title": TITLE, "blocks": [block]})
    site.sync()
    states = states_of(site)
    expected = dict.fromkeys(RECORDS, "indexed") | {("file", "broken"): "failed"}
    assert {record: state["status"] for record, state in states.items()} == expected
    assert states["file", "broken"]["reason"]
    assert all(state["chunks"] == [] for state in states.values())
    assert states["comment", "said"]["dropped_chunks"] == 1
    outside = site.send("GET", "/rag/records/page/outside", role="writer").json()
    assert "tree" in outside["reason"]
    assert site.send("GET", "/rag/records/page/outside").status_code == 404
    assert site.send("GET", "/rag/status", role="writer").json()["failed"] == 1
    # This also holds if the writer is among the readers.
    for subject in ("ann", "bob"):
        by = {"role": "writer", "subject": subject}
        found, good = find_leaks(asked(site, **by))
        assert found == set()
        assert good >= len(RECORDS)
        for method, path in (
            *(("GET", path) for path in ("/rag/documents", "/rag/events", "/rag/uploads")),
            *(("POST", path) for path in ("/rag/query", "/rag/answer", "/mcp", "/panel/links")),
            *(("GET", "/rag/settings"), ("POST", "/api/projects/acme/retrieve")),
        ):
            assert site.send(method, path, {}, **by).status_code == 403, path


def test_a_writer_lists_all_records_and_others_what_they_read(site: Site) -> None:
    push(site)
    site.sync()
    listed, after = list[dict[str, Any]](), ""
    while after is not None:
        following = f"&after={quote(after)}" if after else ""
        answer = site.send("GET", f"/rag/records?limit=2{following}", role="writer").json()
        listed += answer["records"]
        after = answer["next"]
    assert [(one["type"], one["id"]) for one in listed] == sorted(RECORDS)
    [failed] = site.send("GET", "/rag/records?status=failed", role="writer").json()["records"]
    assert (failed["id"], failed["page_uuid"]) == ("broken", "own")
    assert site.send("GET", "/rag/records").json()["records"] == []
    bobs = site.send("GET", "/rag/records", role="member", subject="bob").json()["records"]
    assert len(bobs) == len(RECORDS)
    assert not {"title", "text"} & {*bobs[0]}
    assert site.send("GET", "/rag/records?after=x", role="writer").status_code == 422


def states_of(site: Site) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the state of each record as a writer sees it."""
    return {
        (type_, id_): site.send("GET", f"/rag/records/{type_}/{id_}", role="writer").json()
        for type_, id_ in RECORDS
    }
