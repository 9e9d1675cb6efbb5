import errno
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rag_assets.runtime import watched_folders as module
from rag_assets.runtime.watched_folders import (
    ChangedTenants,
    Changes,
    FolderTrees,
    Mounts,
    SourceFolders,
    TenantSources,
    TooManyWatches,
    find_sources,
    find_tenants,
    map_readers,
    select_outermost,
)
from rag_assets.storage.catalog.tenants.table import TenantRecord


def record(id_: str, *roots: Path | str, **fields: Any) -> TenantRecord:
    sources = [
        {"name": f"s{n}", "type": "files", "root": str(root)} for n, root in enumerate(roots)
    ]
    config = {"id": id_, "profile": "documents", "sources": sources, **fields}
    return TenantRecord(id_, 1, "ACTIVE", "file", config)


def test_the_folders_of_a_tenant_and_whether_all_its_changes_are_told_of(tmp_path: Path) -> None:
    both = record("a", tmp_path / "one", "two")
    expected = TenantSources((str(tmp_path / "one"), str(tmp_path / "two")), is_reported=True)
    assert find_sources(both, tmp_path) == expected
    pushed = record("b", sources=[{"name": "pages", "type": "records"}])
    assert find_sources(pushed, tmp_path) == TenantSources((), is_reported=True)
    broken = record("c", tmp_path / "one", chunker={"max_tokens": "many"})
    assert find_sources(broken, tmp_path) == TenantSources((), is_reported=False)


def test_tenants_share_folders_by_whatever_path(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "shared")
    shared, link, one = (str(tmp_path / name) for name in ("shared", "link", "one"))
    readers = map_readers({"a": TenantSources((shared, one)), "b": TenantSources((link,))})
    assert readers == {shared: frozenset("ab"), one: frozenset("a")}


def test_a_path_belongs_to_every_tenant_above_it() -> None:
    folders = {"/srv": frozenset({"all"}), "/srv/docs": frozenset({"docs"})}
    assert find_tenants(["/srv/docs/a/b.md"], folders) == {"all", "docs"}
    assert find_tenants(["/srv/other.md"], folders) == {"all"}
    assert find_tenants(["/srv/docs"], folders) == {"all", "docs"}, "the folder itself"
    assert find_tenants(["/elsewhere.md", "/"], folders) == set()
    assert find_tenants(["/srv/docs2/a.md"], folders) == {"all"}
    assert find_tenants(["/any"], {"/": frozenset({"root"})}) == {"root"}


def test_what_lies_in_a_watched_folder_is_not_watched_twice() -> None:
    folders = ["/r/b/c", "/r/a", "/r/b", "/r/b2", "/r/b-c", "/r/b/c/d"]
    assert sorted(select_outermost(folders)) == ["/r/a", "/r/b", "/r/b-c", "/r/b2"]
    assert select_outermost(["/r", "/"]) == ["/"]


LISTED = r"""
21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
22 21 0:5 / /proc rw - proc proc rw
23 21 0:40 / /srv/net rw,relatime shared:2 master:1 - nfs4 server:/export rw
24 21 0:41 / /srv/with\040space rw - xfs /dev/vdb rw
25 23 0:42 / /srv/net/disk rw - ext4 /dev/vdc rw
26 21 0:43 / /home/a/drive rw - fuse.sshfs a@b: rw
27 21 0:44 / /mnt rw - cifs //server/share rw
28 21 0:45 / /mnt rw - btrfs /dev/vdd rw
""".strip()


def test_only_what_this_machine_alone_writes_to_tells_of_changes() -> None:
    mounts = Mounts(LISTED)
    assert mounts.reports_every_change("/var/docs")
    assert mounts.reports_every_change("/srv/with space/docs")
    assert mounts.reports_every_change("/srv/net/disk/docs"), "a local disk, wherever it is mounted"
    assert mounts.reports_every_change("/srv/network"), "only its name begins alike"
    assert mounts.reports_every_change("/mnt/docs"), "what was mounted last counts"
    assert not mounts.reports_every_change("/srv/net")
    assert not mounts.reports_every_change("/srv/net/docs/a")
    assert not mounts.reports_every_change("/srv"), "a part of it is on another machine"
    assert not mounts.reports_every_change("/home/a")


def test_this_machine_has_mounts_and_where_none_are_known_none_tells() -> None:
    assert Mounts().reports_every_change("/proc") is False
    assert Mounts("").reports_every_change("/") is False


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
    roots = (str(watched.path / "a"), str(watched.path / "missing"))
    partly = TenantSources(roots, is_reported=True)
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


def lose_events(folder: Path) -> None:
    """Rename a file until the kernel's queue of events is full."""
    names = str(folder / "a.md"), str(folder / "b.md")
    Path(names[0]).write_text("text")
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(queue // 2):  # two events each
        os.rename(names[number % 2], names[1 - number % 2])  # noqa: PTH104


def test_after_lost_events_all_is_left_to_the_sensor_and_watched_anew(watched: Folders) -> None:
    lose_events(watched.path / "a")
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


def test_too_many_folders_go_unwatched(watched: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "sub" / "deep").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def trees(root: Path) -> Iterator[FolderTrees]:
    trees = FolderTrees(lambda path: os.path.basename(path) == ".git")  # noqa: PTH119
    trees.add(str(root))
    yield trees
    trees.close()


def test_saved_files_are_told_of_and_open_ones_apart(trees: FolderTrees, root: Path) -> None:
    assert trees.read(0) == Changes()
    with (root / "a.md").open("w") as file:
        file.write("text")
        file.flush()
        assert trees.read(0) == Changes(written={str(root)})
    assert trees.read(0) == Changes(saved={str(root)})
    os.replace(root / "a.md", root / "sub" / "b.md")  # noqa: PTH105
    assert trees.read(0).saved == {str(root), str(root / "sub")}
    os.utime(root / "sub" / "b.md")
    assert trees.read(0).saved == {str(root / "sub")}
    (root / "sub" / "b.md").unlink()
    assert trees.read(0).saved == {str(root / "sub")}
    (root / "sub" / "deep" / os.fsdecode(b"not-utf8-\xff.md")).write_text("text")
    assert trees.read(0).saved == {str(root / "sub" / "deep")}


def test_reading_is_told_of_by_nothing(trees: FolderTrees, root: Path) -> None:
    (root / "a.md").write_text("text")
    trees.read(0)
    assert (root / "a.md").read_text() == "text"
    assert list(root.rglob("*"))
    assert trees.read(0) == Changes()


def test_folders_that_appear_are_watched_with_all_in_them(trees: FolderTrees, root: Path) -> None:
    (root / "new" / "inner").mkdir(parents=True)
    (root / "new" / "inner" / "a.md").write_text("before it is watched")
    assert str(root) in trees.read(0).saved
    (root / "new" / "inner" / "a.md").write_text("afterwards")
    assert trees.read(0).saved == {str(root / "new" / "inner")}
    (root / "new").rename(root / "sub" / "moved")
    assert trees.read(0).saved >= {str(root), str(root / "sub")}
    (root / "sub" / "moved" / "inner" / "a.md").write_text("elsewhere")
    assert trees.read(0).saved == {str(root / "sub" / "moved" / "inner")}


def test_what_leaves_the_tree_is_unwatched(trees: FolderTrees, root: Path, tmp_path: Path) -> None:
    (root / "sub").rename(tmp_path / "outside")
    assert trees.read(0).saved >= {str(root)}
    (tmp_path / "outside" / "deep" / "a.md").write_text("text")
    assert trees.read(0) == Changes()
    trees.remove(str(root))
    (root / "a.md").write_text("text")
    assert trees.read(0) == Changes()
    assert trees.roots == set()


def test_git_is_not_watched(trees: FolderTrees, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "index").write_text("objects")
    assert trees.read(0) == Changes()
    (root / "sub" / ".git").mkdir()
    trees.add(str(root))
    (root / "sub" / ".git" / "index").write_text("objects")
    assert trees.read(0) == Changes()


def test_a_replaced_root_is_no_root_anymore(trees: FolderTrees, root: Path, tmp_path: Path) -> None:
    assert trees.roots == {str(root)}
    root.rename(tmp_path / "former")
    root.mkdir()
    assert trees.roots == set()
    assert trees.read(0).gone == {str(root)}
    trees.add(str(root))
    assert trees.roots == {str(root)}
    (root / "a.md").write_text("text")
    (tmp_path / "former" / "b.md").write_text("text")
    assert trees.read(0) == Changes(saved={str(root)})


def test_links_and_files_are_not_watched(trees: FolderTrees, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    assert trees.read(0) == Changes(written={str(root)})
    (tmp_path / "outside" / "a.md").write_text("text")
    assert trees.read(0) == Changes()
    for missing in (tmp_path / "missing", root / "link"):
        with pytest.raises(OSError, match=r"."):
            trees.add(str(missing))


def test_reading_waits_for_a_change_and_can_be_woken(trees: FolderTrees, root: Path) -> None:
    started = time.monotonic()
    trees.wake()
    assert trees.read(30) == Changes()
    (root / "a.md").write_text("text")
    assert trees.read(30).saved == {str(root)}
    assert time.monotonic() - started < 15


def test_lost_events_are_noticed(trees: FolderTrees, root: Path) -> None:
    lose_events(root)
    assert trees.read(0).overflowed
    (root / "c.md").write_text("text")
    assert trees.read(0) == Changes(saved={str(root)})


def test_a_tree_with_too_many_folders_is_not_watched_at_all(
    trees: FolderTrees, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (tmp_path / "large" / str(number)).mkdir(parents=True)
    limit = Limit(trees._inotify.add_watch, 4)
    monkeypatch.setattr(trees._inotify, "add_watch", limit)
    with pytest.raises(TooManyWatches, match=r"max_user_watches"):
        trees.add(str(tmp_path / "large"))
    (tmp_path / "large" / "0" / "a.md").write_text("text")
    assert trees.read(0) == Changes(), "nothing of it is left"
    limit.left = 0
    (root / "one-more").mkdir()
    found = trees.read(0)
    assert found.refused == {str(root)}
    assert trees.roots == set()


class Limit:
    """Simulates the kernel's limit of watches."""

    def __init__(self, add: Any, left: int) -> None:
        self.add, self.left = add, left

    def __call__(self, path: str, mask: int) -> int:
        if self.left == 0:
            raise OSError(module.errno.ENOSPC, "No space left on device")
        self.left -= 1
        return int(self.add(path, mask))
