"""The watcher over real folders and a real catalog: which tenants it has synced, and when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.storage.catalog.records import PushedRecord
from rag_assets.watch.watcher import Watcher
from tests.installation import FAST, Installation

SECONDS = 40.0


@dataclass
class Watched:
    """A running watcher, and the tenants that it had synced."""

    installation: Installation
    synced: list[tuple[str, ...]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    available: Event = field(default_factory=Event)
    failures: list[Exception] = field(default_factory=list)

    def sync(self, tenants: Sequence[str]) -> bool:
        """Take note; there is nothing to sync with unless available."""
        if self.failures:
            raise self.failures.pop()
        if self.available.is_set():
            self.synced.append(tuple(tenants))
        return self.available.is_set()

    def count(self, tenant_id: str) -> int:
        return sum(tenant_id in tenants for tenants in self.synced)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, (self.synced, self.log)
            time.sleep(0.02)


@pytest.fixture
def watched(installation: Installation) -> Iterator[Watched]:
    watched = Watched(installation)
    watched.available.set()
    (installation.add_tenant("team", **FAST) / "a.md").write_text("# A\n")
    catalog = installation.session().catalog
    settings = Settings.from_environment()
    watcher = Watcher(catalog, settings, watched.sync, watched.log.append)
    thread = Thread(target=watcher.run)
    thread.start()
    try:
        # Until the folders are watched.
        page = installation.home.parent / "sources" / "team" / "begun.md"
        watched.wait_for(lambda: bool(page.write_text(f"{time.time()}")) and bool(watched.synced))
        time.sleep(2)
        watched.synced.clear()
        yield watched
    finally:
        watcher.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()


def folder_of(watched: Watched, tenant_id: str) -> Path:
    return watched.installation.home.parent / "sources" / tenant_id


def test_one_save_of_an_editor_is_one_sync(watched: Watched) -> None:
    folder = folder_of(watched, "team")
    draft = folder / ".a.md.swp"
    draft.write_text("draft")
    (folder / "a.md~").write_text("backup")
    draft.write_text("# A\n\nNew.\n")
    os.replace(draft, folder / "a.md")  # noqa: PTH105
    (folder / "a.md~").unlink()
    watched.wait_for(lambda: watched.count("team") == 1)
    time.sleep(2.5)
    assert watched.synced == [("team",)]


def test_a_new_tenant_and_a_changed_one_are_synced_at_once(watched: Watched) -> None:
    (watched.installation.add_tenant("late", **FAST) / "b.md").write_text("# B\n")
    watched.installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    watched.wait_for(lambda: watched.count("late") == 1)
    time.sleep(1.5)
    (folder_of(watched, "late") / "sub").mkdir()
    (folder_of(watched, "late") / "sub" / "c.md").write_text("# C\n")
    watched.wait_for(lambda: watched.count("late") >= 2)
    before = watched.count("team")
    watched.installation.configure("team", retention_days=9)
    watched.installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    watched.wait_for(lambda: watched.count("team") > before)


def test_pushed_and_removed_records_are_synced_at_once(watched: Watched) -> None:
    source = {"name": "pages", "type": "records"}
    watched.installation.configure("team", sources=[source])
    catalog = watched.installation.session().catalog
    ref = catalog.tenants.get("team").ref
    watched.wait_for(lambda: watched.count("team") >= 1)
    time.sleep(1.5)
    watched.synced.clear()
    record = PushedRecord("pages", "page", "1", "# Page\n", "text/markdown", SourceMetadata())
    assert catalog.records.put(ref, record, scope="public")
    watched.wait_for(lambda: watched.count("team") == 1)
    time.sleep(1.5)
    assert not catalog.records.put(ref, record, scope="public"), "nothing has changed"
    time.sleep(1)
    assert watched.count("team") == 1
    assert catalog.records.remove(ref, record.document_id, "a test")
    watched.wait_for(lambda: watched.count("team") == 2)


def test_a_change_waits_for_a_fork_server_that_is_unavailable(watched: Watched) -> None:
    watched.available.clear()
    (folder_of(watched, "team") / "a.md").write_text("# A\n\nMeanwhile.\n")
    time.sleep(1)
    watched.available.set()
    watched.wait_for(lambda: watched.count("team") == 1)


def test_a_sync_that_raises_ends_no_lane(watched: Watched) -> None:
    watched.failures += [OSError("no process"), ValueError("whatever"), RuntimeError("a third")]
    (folder_of(watched, "team") / "a.md").write_text("# A\n\nAfter failures.\n")
    watched.wait_for(lambda: watched.count("team") == 1)
    assert [line for line in watched.log if "OSError" in line]
