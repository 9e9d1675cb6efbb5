"""Limits of a workspace's writes: large files, encrypted ones, and the records of a token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from rag_assets.api.rate_limits import Rate
from rag_assets.api.record_streams import MAX_LINES, MOST_BYTES
from rag_assets.ingest.sources.records import MAX_FILE_BYTES
from rag_assets.storage.catalog.tables import source_records
from tests.dumps import is_blob
from tests.installation import Installation
from tests.integration.systems.workspace import site as workspace_site
from tests.integration.systems.workspace.site import LINES, Site, workspace
from tests.unit.ingest.parsing.pdfs import laid_out

CONTENT = "/rag/records/file/{}/content"
LINE = b"A line of a long file, as people write them.\n"
PIECE = LINE * 20_000
LOCKED = laid_out([[("body", "The dunlin sleeps.")]], password="of the user")


@pytest.fixture(scope="module")
def site(shared_installation: Installation) -> Iterator[Site]:
    with workspace(shared_installation, "limits") as made:
        made.grant("p")
        yield made


def test_a_file_over_fifty_mib_is_refused_and_nothing_of_it_is_kept(site: Site) -> None:
    site.put("file", "large", {"page_uuid": "p", "name": "notes.md"})
    assert site.put_content("large", b"# Notes\n\nThe dunlin runs.\n").status_code == 202
    site.sync()
    before = files_of(site)
    assert len(before) == 1

    def streamed(size: int) -> Iterator[bytes]:
        for _ in range(size // len(PIECE)):
            yield PIECE
        yield PIECE[: size % len(PIECE)]

    declared = {**site.headers(), "Content-Length": str(2 * MAX_FILE_BYTES)}
    path = CONTENT.format("large")
    for content, headers in (
        (b"x", declared),
        (streamed(MAX_FILE_BYTES + 1), site.headers()),
        (b"".join(streamed(MAX_FILE_BYTES + 1)), site.headers()),
    ):
        answer = site.client.put(path, content=content, headers=headers)
        assert answer.status_code == 413, answer.text
        assert "50 MiB" in answer.json()["detail"] + answer.json()["title"]
        assert files_of(site) == before
    assert site.sync()["parsed"] == 0
    [hit] = site.hits("dunlin")
    assert hit["source_id"] == "large"

    # A byte less is taken.
    assert (
        site.client.put(path, content=streamed(MAX_FILE_BYTES), headers=site.headers()).json()[
            "outcome"
        ]
        == "queued"
    )
    assert site.send("DELETE", "/rag/records/file/large").json()["outcome"] == "removed"
    assert files_of(site) == []


def files_of(site: Site) -> list[Path]:
    """Contents of the workspace that are stored, begun ones included."""
    root = Path(site.driver.session.settings.blobs_url) / site.id
    return sorted(path for path in root.rglob("*") if is_blob(path))


def test_an_encrypted_file_is_left_out_with_the_reason(site: Site) -> None:
    site.put("file", "locked", {"page_uuid": "p", "name": "locked.pdf"})
    assert site.put_content("locked", LOCKED).status_code == 202
    assert site.sync()["embedded"] == 0
    found = site.send("GET", "/rag/records/file/locked").json()
    assert (found["status"], found["chunks"]) == ("excluded", [])
    assert "password" in found["reason"]
    assert site.status()["queue_depth"] == 0
    assert site.sync()["failed"] == 0, "it is not tried again"
    opened = laid_out([[("body", "The sanderling runs.")]])
    assert site.put_content("locked", opened).json()["outcome"] == "queued"
    site.sync()
    found = site.send("GET", "/rag/records/file/locked").json()
    assert (found["status"], found["reason"]) == ("indexed", None)


def test_lines_are_taken_up_to_their_limits(site: Site) -> None:
    def lines(count: int, words: str) -> bytes:
        comment = {"op": "put", "type": "comment", "page_uuid": "p", "text": words}
        rows = ({**comment, "id": f"line-{number}"} for number in range(count))
        return "".join(f"{json.dumps(row)}\n" for row in rows).encode()

    before = site.status()["queue_depth"]
    answer = posted(site, lines(MAX_LINES + 1, "A stint."))
    assert (answer.status_code, site.status()["queue_depth"]) == (413, before)
    assert "1,000 lines" in answer.text
    answer = posted(site, lines(MAX_LINES, "A stint."))
    assert (answer.status_code, len(answer.json()["lines"])) == (200, MAX_LINES)
    assert site.status()["queue_depth"] == before + MAX_LINES

    # Sixteen records of nearly a MiB, and empty lines: as large as may be, and a byte larger.
    large = lines(16, "x" * 1_048_000)
    whole = large + b"\n" * (MOST_BYTES - len(large))
    for refused in (whole + b"\n", streamed_in_pieces(whole + b"\n")):
        answer = posted(site, refused)
        assert (answer.status_code, str(MOST_BYTES) in answer.text) == (413, True), answer.text
    assert large_records(site) == 0
    answer = posted(site, streamed_in_pieces(whole))
    assert {one["outcome"] for one in answer.json()["lines"]} == {"queued"}
    assert large_records(site) == 16
    # Nothing of it is to be indexed here.
    rows = [{"op": "delete", "type": "comment", "id": f"line-{n}"} for n in range(MAX_LINES)]
    assert {line["outcome"] for line in site.lines(rows)} == {"removed"}
    assert site.status()["queue_depth"] == before


def streamed_in_pieces(content: bytes) -> Iterator[bytes]:
    """Content whose length is not told."""
    for at in range(0, len(content), 1 << 20):
        yield content[at : at + (1 << 20)]


def large_records(site: Site) -> int:
    with site.catalog.database.begin() as connection:
        large = select(func.count()).where(
            source_records.c.tenant == site.id, source_records.c.size > 1_000_000
        )
        return int(connection.scalar(large) or 0)


def test_a_tokens_records_are_limited_lines_as_well(
    shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = replace(workspace_site.SETTINGS, write_rate=Rate.parse("5/minute"))
    monkeypatch.setattr(workspace_site, "SETTINGS", few)
    with workspace(shared_installation, "limited") as site:
        comment = {"page_uuid": "p", "text": "A knot."}
        lines = [{"op": "put", "type": "comment", "id": f"c{n}", **comment} for n in range(3)]
        assert {line["outcome"] for line in site.lines(lines)} == {"queued"}
        assert site.put("comment", "c3", comment) == "queued"
        assert site.send("DELETE", "/rag/records/comment/c3").status_code == 202
        for refused in (
            site.send("PUT", "/rag/records/comment/c4", comment),
            site.send("DELETE", "/rag/records/comment/c0"),
            posted(site, b'{"op": "put", "type": "page", "id": "x", "title": "X"}'),
        ):
            assert refused.status_code == 429, refused.text
            assert refused.json()["type"].endswith("too-many-requests")
            assert 0 < int(refused.headers["Retry-After"]) <= 60
        assert site.status()["queue_depth"] == 3, "nothing of them was stored"
        other = site.headers(subject="bob")
        answer = site.client.put("/rag/records/comment/c4", json=comment, headers=other)
        assert answer.status_code == 202, "another token writes on"


def posted(site: Site, content: bytes | Iterator[bytes]) -> Any:
    headers = {**site.headers(), "Content-Type": LINES}
    return site.client.post("/rag/records", content=content, headers=headers)
