"""Single pushes come before bulk lines, in listings and slices, and no record is left out."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import pytest
from sqlalchemy import text

from rag_assets.pipeline import listing
from rag_assets.pipeline.context import SliceLimits
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

LINES = 10


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    with workspace(shared_installation, f"lanes-{zlib.crc32(request.node.name.encode())}") as made:
        made.grant("p", "edited")
        yield made


@pytest.fixture
def hasty(shared_installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Return a driver that lists three lines in a run."""
    monkeypatch.setattr(listing, "_BULK_BATCH", 3)
    return Driver(shared_installation, SliceLimits(list_seconds=0))


def push_lines(site: Site) -> None:
    comment = {"op": "put", "type": "comment", "page_uuid": "p"}
    lines = [
        {**comment, "id": f"c-{number}", "text": f"Dotterel {number} flies."}
        for number in range(LINES)
    ]
    assert Counter(line["outcome"] for line in site.lines(lines)) == {"queued": LINES}


def edit(site: Site) -> None:
    site.put(
        "page",
        "edited",
        {
            "title": "Edited",
            "blocks": [{"block_id": "b", "type": "paragraph", "text": "The ruff displays."}],
        },
    )


def test_an_edit_waits_for_no_listing_of_all_lines(site: Site, hasty: Driver) -> None:
    edit(site)
    site.sync()
    push_lines(site)
    assert hasty.run_once(site.id)["pending"] > 0
    site.put(
        "page",
        "edited",
        {
            "title": "Edited",
            "blocks": [{"block_id": "b", "type": "paragraph", "text": "The ruff has gone."}],
        },
    )
    depth = [site.status()["queue_depth"]]
    for _ in range(LINES):
        run = hasty.run_once(site.id)
        depth.append(site.status()["queue_depth"])
        if len(depth) == 2:
            [hit] = site.hits("ruff")
            assert "gone" in hit["text"]
        if not run["pending"]:
            break
    # The first three were found before; then the edit, and three in each run.
    assert depth == [8, 4, 1, 0]
    assert len(site.hits("dotterel", top_k=20)) == LINES
    assert hasty.run_once(site.id)["added"] == 0


def test_a_build_answers_once_all_lines_are_listed(site: Site, hasty: Driver) -> None:
    edit(site)
    push_lines(site)
    site.send("PATCH", "/rag/settings", {"enabled": True})
    runs = 0
    while hasty.run_once(site.id)["pending"]:
        runs += 1
    assert runs == LINES // 3
    assert site.catalog.generations.serving(site.id) is not None
    assert site.status()["queue_depth"] == 0
    assert len(site.hits("dotterel", top_k=20)) == LINES


def test_what_is_listed_and_not_indexed_ends_no_sync(site: Site, hasty: Driver) -> None:
    """Lines of an archived database are listed, and need no other work."""
    site.send("PUT", "/rag/tree/db", {"kind": "database", "archived": True})
    row = {"op": "put", "type": "db_row", "database_uuid": "db", "values": []}
    assert len(site.lines([{**row, "id": f"r-{number}"} for number in range(LINES)])) == LINES
    done = hasty.sync(site.id)
    assert done["added"] == LINES
    assert site.status()["queue_depth"] == 0


def lanes_of(site: Site) -> dict[str, tuple[int, int | None]]:
    """Return the lane of each record by id, and the lane of its document if it is listed."""
    query = (
        "SELECT r.source_id, r.lane, d.lane FROM rag_catalog.source_records r"
        " LEFT JOIN rag_catalog.documents d USING (tenant, document_id) WHERE r.tenant = :t"
    )
    with site.catalog.database.begin() as connection:
        return {row[0]: (row[1], row[2]) for row in connection.execute(text(query), {"t": site.id})}


def comment(words: str) -> dict[str, str]:
    return {"page_uuid": "p", "text": words}


def as_line(id_: str, body: dict[str, str], kind: str = "comment") -> dict[str, str]:
    return {"op": "put", "type": kind, "id": id_, **body}


def test_the_content_of_a_file_is_waited_for_though_a_line_announced_it(site: Site) -> None:
    site.lines([as_line("f", {"page_uuid": "p", "name": "notes.md"}, "file")])
    assert lanes_of(site)["f"][0] == 1
    assert site.put_content("f", b"# Notes").status_code == 202
    assert lanes_of(site)["f"][0] == 0


def test_a_line_that_touches_a_waiting_edit_keeps_its_lane(site: Site) -> None:
    site.put("comment", "c", comment("One."))
    assert [line["outcome"] for line in site.lines([as_line("c", comment("Two."))])] == ["queued"]
    assert lanes_of(site)["c"] == (0, None)
    site.sync()
    site.lines([as_line("c", comment("Three."))])
    assert lanes_of(site)["c"][0] == 1, "nobody waits for it any more"


def test_an_edit_that_is_equal_to_a_waiting_line_goes_ahead_of_others(
    site: Site, hasty: Driver
) -> None:
    push_lines(site)
    hasty.run_once(site.id)
    before = {hit["source_id"] for hit in site.hits("dotterel", top_k=20)}
    assert len(before) == 3
    last = sorted({f"c-{number}" for number in range(LINES)} - before)[-1]
    assert site.put("comment", last, comment(f"Dotterel {last[2:]} flies.")) == "unchanged"
    hasty.run_once(site.id)
    assert last in {hit["source_id"] for hit in site.hits("dotterel", top_k=20)}
    assert lanes_of(site)[last] == (0, 0)


def test_an_edit_hastens_what_was_listed_and_not_indexed_yet(site: Site) -> None:
    site.send("PUT", "/rag/tree/p", {"archived": True})
    site.lines([as_line("c", comment("One.")), as_line("d", comment("Two."))])
    site.sync()
    assert lanes_of(site) == {"c": (1, 1), "d": (1, 1)}
    assert site.put("comment", "c", comment("One.")) == "unchanged"
    assert lanes_of(site) == {"c": (0, 0), "d": (1, 1)}
