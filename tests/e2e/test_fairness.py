"""Edits are found during a first import with a slow embedder, by the change watcher."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import pytest

from tests.e2e.running import Daemon, running_daemon
from tests.installation import Installation

pytestmark = pytest.mark.timeout(600)
SLOW = {"embedder": {"provider": "deterministic", "seconds_per_text": 0.1}}
"""Forty texts a second in four calls: a model on a few cores."""
DOCUMENTS, LARGE_PARTS, EDITS = 4_000, 1_000, 4
"""All of it takes the embedder two minutes."""


@pytest.fixture(scope="module")
def daemon(shared_installation: Installation) -> Iterator[Daemon]:
    with running_daemon(shared_installation, watched=True) as running:
        yield running


def test_edits_are_found_before_the_rest_of_a_first_import(daemon: Daemon) -> None:
    folder = daemon.installation.add_tenant("imports", **SLOW)
    (folder / "first.md").write_text("# First\n\nThe first page.\n")
    daemon.searchable("imports", "The first page")
    parts = (f"## Part {n}\n\n" + f"Words of part {n} follow. " * 60 for n in range(LARGE_PARTS))
    (folder / "large.md").write_text("\n\n".join(parts))
    for number in range(DOCUMENTS):
        (folder / f"{number:05d}.md").write_text(f"# Page {number}\n\nWords of page {number}.\n")
    chance = random.Random(5)
    for number in range(EDITS):
        time.sleep(chance.uniform(1.0, 6.0))
        word = "".join(chance.choices("bcdfghklmnprst", k=12))
        (folder / f"edit-{number}.md").write_text(f"# Edit\n\nAbout {word}.\n")
        daemon.searchable("imports", word)
    assert daemon.catalog.documents.counts("imports")["PROCESSING"] > 0, "the import goes on"
