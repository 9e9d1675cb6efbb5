"""Single pushes go ahead of lines, in listings as in slices, and nothing is left out by that."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator

import pytest

from rag_assets.pipeline import listing
from rag_assets.pipeline.context import SliceLimits
from tests.driving import Driver
from tests.installation import Installation
from tests.integration.systems.workspace_site import Site, workspace

LINES = 10


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    with workspace(shared_installation, f"lanes-{zlib.crc32(request.node.name.encode())}") as made:
        made.grant("p", "edited")
        yield made


@pytest.fixture
def hasty(shared_installation: Installation, monkeypatch: pytest.MonkeyPatch) -> Driver:
    """Lists three lines in a run."""
    monkeypatch.setattr(listing, "_LINES", 3)
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
    # The first three were found before; the edit, and three in each run.
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
    """Lines of an archived database are listed, and there is nothing else to be done with them."""
    site.send("PUT", "/rag/tree/db", {"kind": "database", "archived": True})
    row = {"op": "put", "type": "db_row", "database_uuid": "db", "values": []}
    assert len(site.lines([{**row, "id": f"r-{number}"} for number in range(LINES)])) == LINES
    done = hasty.sync(site.id)
    assert done["added"] == LINES
    assert site.status()["queue_depth"] == 0
