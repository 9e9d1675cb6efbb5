"""Folders of sources: which tenants are watched, and what happens if a folder cannot be."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_assets.runtime import watched_folders as module
from rag_assets.runtime.watched_folders import ChangedTenants, Mounts, SourceFolders, TenantSources


@dataclass
class Folders:
    """The watched folders of two tenants."""

    path: Path
    folders: SourceFolders
    log: list[str] = field(default_factory=list)

    def sources(self, *names: str) -> dict[str, TenantSources]:
        for name in names:
            (self.path / name).mkdir(exist_ok=True)
        return {name: TenantSources((str(self.path / name),), is_reported=True) for name in names}

    def changed(self) -> ChangedTenants:
        """Look for folders, and return the changes so far."""
        self.folders._next_update = 0.0
        return self.folders.wait_for_changes(0)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Folders]:
    log: list[str] = []
    watched = Folders(tmp_path, SourceFolders(tmp_path / ".local", log.append), log)
    watched.folders.watch_sources(watched.sources("a", "b"))
    assert watched.changed() == ChangedTenants(), "the sensor lists what was there before"
    assert watched.folders.watched == {"a", "b"}
    yield watched
    watched.folders.close()


def test_a_tenant_is_told_of_by_what_is_saved_in_its_folders(watched: Folders) -> None:
    (watched.path / "a" / "page.md").write_text("text")
    assert watched.changed() == ChangedTenants(saved=frozenset("a"))
    with (watched.path / "b" / "page.md").open("w") as file:
        file.write("text")
        file.flush()
        assert watched.changed() == ChangedTenants(written=frozenset("b"))
    assert watched.changed() == ChangedTenants(saved=frozenset("b"))


def test_a_new_tenant_is_told_of_once_it_is_watched(watched: Folders) -> None:
    watched.folders.watch_sources(watched.sources("a", "b", "c"))
    assert watched.changed() == ChangedTenants(saved=frozenset("c"))
    assert watched.folders.watched == {"a", "b", "c"}
    watched.folders.watch_sources(watched.sources("a"))
    assert watched.changed() == ChangedTenants()
    (watched.path / "b" / "page.md").write_text("text")
    assert watched.changed() == ChangedTenants()


def test_the_first_tenants_are_not_told_of_though_they_come_in_the_middle_of_a_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Folders(tmp_path, SourceFolders(tmp_path / ".local", print))

    class SlowMounts(Mounts):
        def __init__(self) -> None:
            watched.folders.watch_sources(watched.sources("a"))
            super().__init__()

    monkeypatch.setattr(module, "Mounts", SlowMounts)
    watched.changed()
    assert watched.changed() == ChangedTenants(), "the sensor lists what was there before"
    assert watched.folders.watched == {"a"}
    watched.folders.close()


def test_who_reads_what_nobody_tells_of_is_not_watched(watched: Folders) -> None:
    partly = TenantSources(
        (str(watched.path / "a"), str(watched.path / "missing")), is_reported=True
    )
    other = TenantSources((str(watched.path / "a"),), is_reported=False)
    watched.folders.watch_sources({**watched.sources("a"), "partly": partly, "other": other})
    watched.changed()
    assert watched.folders.watched == {"a"}
    (watched.path / "a" / "page.md").write_text("text")
    assert watched.changed().saved == {"a", "partly", "other"}
    (watched.path / "missing").mkdir()
    assert watched.changed().saved == {"partly"}
    assert watched.folders.watched == {"a", "partly"}


def test_a_folder_in_anothers_is_watched_with_it(watched: Folders) -> None:
    inner = TenantSources((str(watched.path / "a" / "inner"),), is_reported=True)
    (watched.path / "a" / "inner").mkdir()
    watched.changed()
    watched.folders.watch_sources({**watched.sources("a", "b"), "inner": inner})
    watched.changed()
    assert watched.folders.watched == {"a", "b", "inner"}
    (watched.path / "a" / "inner" / "page.md").write_text("text")
    assert watched.changed().saved == {"a", "inner"}
    watched.folders.watch_sources({"inner": inner})
    watched.changed()
    (watched.path / "a" / "page.md").write_text("text")
    (watched.path / "a" / "inner" / "page.md").write_text("more")
    assert watched.changed().saved == {"inner"}


def test_after_lost_events_all_is_left_to_the_sensor_and_watched_anew(watched: Folders) -> None:
    names = [str(watched.path / "a" / name) for name in ("a.md", "b.md")]
    Path(names[0]).write_text("text")
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(queue // 2):  # two events each
        os.rename(names[number % 2], names[1 - number % 2])  # noqa: PTH104
    (watched.path / "b" / "lost").mkdir()
    watched.changed()
    assert watched.folders.watched == frozenset()
    assert len(watched.log) == 1
    assert watched.changed().saved == {"a", "b"}, "whatever has happened meanwhile"
    assert watched.folders.watched == {"a", "b"}
    (watched.path / "b" / "lost" / "page.md").write_text("text")
    assert watched.changed().saved == {"b"}
    watched.folders._handle_overflow()
    assert watched.changed().saved == frozenset(), "it is not done over and over"
    assert watched.folders.watched == frozenset()
    assert len(watched.log) == 1


def test_a_folder_with_too_many_folders_is_left_to_the_sensor(
    watched: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = watched.folders._trees
    assert trees is not None
    add = trees._inotify.add_watch

    def limited(path: str, mask: int) -> Any:
        if "large" in path:
            raise OSError(errno.ENOSPC, "No space left on device")
        return add(path, mask)

    monkeypatch.setattr(trees._inotify, "add_watch", limited)
    watched.folders.watch_sources(watched.sources("a", "large"))
    for _ in range(3):
        watched.changed()
        assert watched.folders.watched == {"a"}
    assert len(watched.log) == 1
    assert "max_user_watches" in watched.log[0]
    monkeypatch.setattr(trees._inotify, "add_watch", add)
    watched.changed()
    assert watched.folders.watched == {"a"}, "it is not tried all the time"
    monkeypatch.setattr(module, "_REFUSED_SECONDS", 0.0)
    watched.folders._refused = dict.fromkeys(watched.folders._refused, 0.0)
    assert watched.changed().saved == {"large"}
    assert watched.folders.watched == {"a", "large"}
