"""Invalid input: each invalid line is refused separately, and no valid one is."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from rag_assets.search.model import MAX_PAGES
from tests.installation import Installation
from tests.integration.systems.workspace.site import LINES, Site, workspace
from tests.integration.systems.workspace.test_secrets import SECRETS

GOOD = b'{"op": "put", "type": "comment", "id": "good", "page_uuid": "p", "text": "A whimbrel."}'
PUT = b'{"op": "put", "type": "template", "id": "t", "name": "n", "payload": %s}'
DELETE = b'{"op": "delete", "type": "block", "id": "b", "page_uuid": %s}'
ODD = {
    "no UTF-8": GOOD.replace(b"good", b"\xff"),
    "half a character in an id": GOOD.replace(b"good", rb"\ud800"),
    "half a character in a text": GOOD.replace(b"whimbrel", rb"\udfff"),
    "half a character in an id to delete": rb'{"op":"delete","type":"comment","id":"\ud800"}',
    "half a character in the page of a block": DELETE % rb'"\ud800"',
    "a number for a page": DELETE % b"5",
    "an object for a page": DELETE % b'{"a": 1}',
    "a page that no tree can have": DELETE % b'"a b"',
    "nothing for a page": DELETE % b"null",
    "NUL in an id": GOOD.replace(b"good", rb"\u0000"),
    "NUL in a text": GOOD.replace(b"whimbrel", rb"\u0000"),
    "no number": PUT % b"NaN",
    "a number beyond all": PUT % b"1e999",
    "too many digits": PUT % (b"9" * 5_000),
    "nested for ever": PUT % (b"[" * 5_000 + b"]" * 5_000),
    "nested deeply": PUT % (b"[" * 300 + b"]" * 300),
    "two objects": GOOD + b" " + GOOD,
    "a return between objects": GOOD + b"\r" + GOOD,
    "no object": b"null",
    "values of other types": b'{"op": {}, "type": [], "id": {}}',
    "no date": GOOD.replace(b'"text"', b'"resolved_at": "0000-01-01T00:00:00Z", "text"'),
}


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "odd") as made:
        made.grant("p")
        yield made


def posted(site: Site, path: str, content: bytes) -> Any:
    headers = {**site.headers(), "Content-Type": LINES}
    return site.client.post(path, content=content, headers=headers)


@pytest.mark.parametrize("what", ODD)
def test_an_odd_line_stops_no_other(site: Site, what: str) -> None:
    site.send("DELETE", "/rag/records/comment/good")
    answer = posted(site, "/rag/records", ODD[what] + b"\r\n\r\n" + GOOD)
    assert answer.status_code == 200, answer.text
    odd, good = answer.json()["lines"]
    assert (odd["outcome"], odd["document_id"], good["outcome"]) == ("invalid", None, "queued")
    [problem] = odd["errors"] if "values" not in what else odd["errors"][:1]
    assert problem["problem"]
    assert len(problem["field"]) < 100
    assert "cyclic" not in problem["problem"]


def test_a_line_is_told_by_its_number_in_what_was_sent(site: Site) -> None:
    sent = b"\n" + GOOD + b"\n\r\n" + b"{" + b"\n" + GOOD + b"\n"
    lines = posted(site, "/rag/records", sent).json()["lines"]
    assert [line["line"] for line in lines] == [2, 4, 5]
    assert lines[1]["errors"] == [{"field": "body", "problem": "it is not JSON"}]


def test_an_id_may_end_as_the_address_of_a_content_does(site: Site) -> None:
    body = {"page_uuid": "p", "name": "first.txt"}
    site.put("file", "a", body)
    assert site.put_content("a", b"What the first file says.").status_code == 202
    assert site.put("file", "a%2Fcontent", {**body, "name": "second.txt"}) == "queued"
    second = site.put_content("a%2Fcontent", b"What the second file says.")
    assert second.status_code == 202, second.text
    site.sync()
    for id_, said in (("a", "first"), ("a%2Fcontent", "second")):
        [chunk] = site.send("GET", f"/rag/records/file/{id_}").json()["chunks"]
        assert chunk["text"] == f"What the {said} file says."


def test_a_record_without_a_text_is_left_out_and_is_called_no_file(site: Site) -> None:
    site.put("db_row", "bare", {"database_uuid": "p", "values": []})
    site.sync()
    row = site.send("GET", "/rag/records/db_row/bare").json()
    assert (row["status"], row["reason"]) == ("excluded", "It has no visible text.")


def test_a_body_that_is_no_json_is_told_how_it_is_sent(site: Site) -> None:
    refused = site.client.put("/rag/tree/q", content=b"{}", headers=site.headers())
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["field"] == "body"
    assert error["problem"].endswith("sent with Content-Type: application/json")


def test_a_mark_of_byte_order_is_no_text(site: Site) -> None:
    site.send("DELETE", "/rag/records/comment/good")
    [line] = posted(site, "/rag/records", b"\xef\xbb\xbf" + GOOD).json()["lines"]
    assert line["outcome"] == "queued"


@pytest.mark.parametrize(
    "line",
    [b"null", b"[1]", b"\xff", b'{"type": "page"', b'{"type": "page", "id": "x' + b"x" * 70_000],
)
def test_a_manifest_is_refused_where_a_line_is_no_object(site: Site, line: bytes) -> None:
    named = b'{"type": "comment", "id": "good"}\n'
    refused = posted(site, "/rag/reconcile?apply=true", named + line)
    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["field"] == "body"
    assert error["problem"] == "line 2: it must be a JSON object of at most 64 KiB"


def test_a_block_is_not_deleted_from_a_page_that_no_tree_can_have(site: Site) -> None:
    for page in ("%00", "", "%FF", "a%20b", "x" * 129):
        refused = site.send("DELETE", f"/rag/records/block/b?page_uuid={page}")
        assert refused.status_code == 422, page
        assert refused.json()["errors"][0]["field"] == "page_uuid"


@pytest.mark.parametrize("rule", sorted({*SECRETS} - {"described-rsa"}))
def test_no_page_is_named_or_read_by_a_credential(site: Site, rule: str) -> None:
    secret = SECRETS[rule]
    for uuid, said in ((secret, {}), ("q", {"parent": secret}), ("q", {"read": [f"x {secret}"]})):
        refused = site.send("PUT", f"/rag/tree/{uuid}", said)
        assert refused.status_code == 422, refused.text
        assert "credential" in refused.json()["detail"]
        assert secret not in refused.text
    assert site.catalog.pages.find_kind(site.id, "q") is None


def test_the_name_of_a_reader_is_no_longer_than_an_index_takes(site: Site) -> None:
    drawn = random.Random(7)
    long = "".join(chr(drawn.randrange(0x4E00, 0x9FA5)) for _ in range(1_000))
    refused = site.send("PUT", "/rag/tree/q", {"read": [long]})
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["field"] == "read.0"
    fits = site.send("PUT", "/rag/tree/q", {"read": [long[:660]]})
    assert fits.status_code == 200, fits.text


def test_a_search_names_as_many_pages_as_it_may_reach(site: Site) -> None:
    site.put("comment", "good", {"page_uuid": "p", "text": "A whimbrel."})
    site.sync()
    others = [f"unknown-{number}" for number in range(MAX_PAGES)]
    body = {"query": "whimbrel", "mode": "text"}
    found = site.send("POST", "/rag/query", {**body, "filters": {"within": [*others[1:], "p"]}})
    assert found.status_code == 200, found.text
    assert [hit["source_id"] for hit in found.json()["hits"]] == ["good"]
    for named in ([*others, "p"], [*others, *others, "p"][:15_000]):
        refused = site.send("POST", "/rag/query", {**body, "filters": {"within": named}})
        assert refused.status_code == 422, refused.text
        assert refused.json()["errors"][0]["field"] == "filters.within"
