"""The watcher with real folders and a real catalog: which tenants it syncs, and when."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import pytest

from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.runtime.sync_lanes import QUIET_SECONDS
from rag_assets.runtime.watch_report import (
    NO_WATCHER,
    WatchReport,
    WatchReportFile,
    get_hooked_folder,
)
from rag_assets.runtime.watcher import Watcher
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.installation import FAST, Installation
from tests.records import put_record, remove_record

pytestmark = pytest.mark.long

SECONDS = 40.0


@dataclass
class Watched:
    """A running watcher, and the tenants that it has synced.

    Attributes:
        again: the results of the next syncs.
    """

    installation: Installation
    synced: list[str] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    available: Event = field(default_factory=Event)
    failures: list[Exception] = field(default_factory=list)
    again: list[float] = field(default_factory=list)
    opened: int = 0

    def open(self) -> Watched | None:
        """Return a process for syncs, if one is available."""
        self.opened += self.available.is_set()
        return self if self.available.is_set() else None

    def follow(self, tenant_id: str, *, is_changed: bool) -> float | None:
        """Record the sync."""
        if self.failures:
            raise self.failures.pop()
        self.synced.append(tenant_id)
        return self.again.pop() if self.again else None

    def close(self) -> None:
        """Do nothing."""

    @property
    def report(self) -> WatchReport:
        return WatchReportFile(Settings.from_environment()).read()

    def count(self, tenant_id: str) -> int:
        return self.synced.count(tenant_id)

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not condition():
            assert time.monotonic() < deadline, (self.synced, self.log)
            time.sleep(0.02)


@pytest.fixture
def watched(installation: Installation) -> Iterator[Watched]:
    with watching(installation) as watched:
        yield watched


@contextmanager
def watching(installation: Installation, quiet: float = QUIET_SECONDS) -> Iterator[Watched]:
    """Watch the folder of one tenant within the block."""
    watched = Watched(installation)
    watched.available.set()
    (installation.add_tenant("team", **FAST) / "a.md").write_text("# A\n")
    catalog = installation.session().catalog
    settings = Settings.from_environment()
    watcher = Watcher(catalog, settings, watched.open, watched.log.append, quiet=quiet)
    thread = Thread(target=watcher.run)
    thread.start()
    try:
        watched.wait_for(lambda: "team" in watched.report.watched)
        yield watched
    finally:
        watcher.stop()
        thread.join(SECONDS)
        assert not thread.is_alive()
        assert watched.report is NO_WATCHER


def folder_of(watched: Watched, tenant_id: str) -> Path:
    return watched.installation.home.parent / "sources" / tenant_id


def test_one_save_of_an_editor_is_one_sync(installation: Installation) -> None:
    with watching(installation, quiet=2.0) as watched:  # a slow machine may pause between steps
        folder = folder_of(watched, "team")
        draft = folder / ".a.md.swp"
        draft.write_text("draft")
        (folder / "a.md~").write_text("backup")
        draft.write_text("# A\n\nNew.\n")
        os.replace(draft, folder / "a.md")  # noqa: PTH105
        (folder / "a.md~").unlink()
        watched.wait_for(lambda: watched.count("team") == 1)
        time.sleep(3.5)
        assert watched.synced == ["team"]


def test_a_new_tenant_and_a_changed_one_are_synced_at_once(watched: Watched) -> None:
    (watched.installation.add_tenant("late", **FAST) / "b.md").write_text("# B\n")
    watched.installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    watched.wait_for(lambda: watched.count("late") == 1)
    time.sleep(1.5)
    (folder_of(watched, "late") / "sub").mkdir()
    (folder_of(watched, "late") / "sub" / "c.md").write_text("# C\n")
    watched.wait_for(lambda: watched.count("late") >= 2)
    watched.wait_for(lambda: "late" in watched.report.watched)
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
    assert put_record(catalog.records, ref, record, scope="public")
    watched.wait_for(lambda: watched.count("team") == 1)
    time.sleep(1.5)
    assert not put_record(catalog.records, ref, record, scope="public"), "nothing has changed"
    time.sleep(1)
    assert watched.count("team") == 1
    assert remove_record(catalog.records, ref, record.document_id, "a test")
    watched.wait_for(lambda: watched.count("team") == 2)


def test_a_change_waits_for_a_fork_server_that_is_unavailable(watched: Watched) -> None:
    watched.available.clear()
    (folder_of(watched, "team") / "a.md").write_text("# A\n\nMeanwhile.\n")
    watched.wait_for(lambda: watched.report is NO_WATCHER)
    watched.available.set()
    watched.wait_for(lambda: watched.count("team") == 1)
    watched.wait_for(lambda: "team" in watched.report.watched)


def test_a_sync_that_raises_ends_no_lane(watched: Watched) -> None:
    watched.failures += [OSError("no process"), ValueError("whatever")]
    (folder_of(watched, "team") / "a.md").write_text("# A\n\nAfter failures.\n")
    watched.wait_for(lambda: watched.count("team") == 1)
    assert [line for line in watched.log if "ValueError" in line]
    assert watched.opened == 3, "a process that fails is not asked again"


def test_a_busy_tenant_keeps_its_mark(watched: Watched) -> None:
    watched.again += [0.1, 0.2, 2.5]
    (folder_of(watched, "team") / "a.md").write_text("# A\n\nWhile another run is under way.\n")
    watched.wait_for(lambda: watched.count("team") == 1)
    watched.wait_for(lambda: "team" in watched.report.marked)
    watched.wait_for(lambda: watched.count("team") == 4)
    time.sleep(1.5)
    assert watched.count("team") == 4
    watched.wait_for(lambda: not watched.report.marked)


def test_only_tenants_of_whose_changes_it_is_told_are_watched(
    watched: Watched, tmp_path: Path
) -> None:
    installation = watched.installation
    installation.add_tenant("pushed", sources=[{"name": "pages", "type": "records"}], **FAST)
    missing = tmp_path / "missing"
    installation.add_tenant("missing", root=missing, **FAST)
    missing.rmdir()
    installation.session().catalog  # noqa: B018 - reads tenants.yaml again
    watched.wait_for(lambda: watched.report.watched == {"team", "pushed"})
    missing.mkdir()
    watched.wait_for(lambda: "missing" in watched.report.watched)
    watched.wait_for(lambda: watched.count("missing") >= 1)
    root = folder_of(watched, "team")
    root.rename(tmp_path / "moved")
    watched.wait_for(lambda: "team" not in watched.report.watched)
    root.mkdir()
    before = watched.count("team")
    watched.wait_for(lambda: "team" in watched.report.watched and watched.count("team") > before)


def test_what_a_hook_of_git_tells_is_synced_at_once(watched: Watched) -> None:
    folder = get_hooked_folder(watched.installation.home / ".local")
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(2):
        before = watched.count("team")
        (folder / "no-such-tenant").touch()
        (folder / "team").touch()
        watched.wait_for(lambda before=before: watched.count("team") > before)  # type: ignore[misc]
        assert list(folder.iterdir()) == []
    assert "no-such-tenant" not in watched.synced
