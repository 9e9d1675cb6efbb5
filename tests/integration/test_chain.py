"""The chain on real servers: what a sync does, and what it does not repeat."""

from __future__ import annotations

from tests.installation import FAST, Installation

DOCUMENT = """# Rollbacks

Roll back with the previous tag. No approval is needed.

## Afterwards

Write down what happened within a day.
"""


def test_a_folder_becomes_searchable(installation: Installation) -> None:
    folder = installation.add_tenant("team")
    (folder / "rollback.md").write_text(DOCUMENT)
    counts = installation.synced("team")
    assert counts["raw_documents"]["added"] == 1
    assert counts["search_index"]["upserted"] == counts["chunks"]["chunks"] >= 1
    hit = installation.search("team", "how do I undo a deployment?")[0]
    assert hit.uri == "files/rollback.md"
    assert DOCUMENT[hit.start : hit.end] == hit.text
    assert hit.heading_path[0] == "Rollbacks"


def test_nothing_is_done_twice(installation: Installation) -> None:
    folder = installation.add_tenant("team", **FAST)
    (folder / "a.md").write_text(DOCUMENT)
    installation.synced("team")
    before = installation.entries("team")
    again = installation.synced("team")
    assert again["embeddings"]["embedded"] == 0
    assert again["search_index"]["upserted"] == 0
    assert installation.entries("team") == before
