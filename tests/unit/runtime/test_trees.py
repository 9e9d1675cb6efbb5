"""Watched folder trees: which changes of real files are reported."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assets.runtime import watched_folders as module
from rag_assets.runtime.watched_folders import Changes, FolderTrees, TooManyWatches


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


def read_changes(trees: FolderTrees) -> Changes:
    """Return the changes reported so far."""
    return trees.read(0)


def test_saved_files_are_told_of_and_open_ones_apart(trees: FolderTrees, root: Path) -> None:
    assert read_changes(trees) == Changes()
    with (root / "a.md").open("w") as file:
        file.write("text")
        file.flush()
        assert read_changes(trees) == Changes(written={str(root)})
    assert read_changes(trees) == Changes(saved={str(root)})
    os.replace(root / "a.md", root / "sub" / "b.md")  # noqa: PTH105
    assert read_changes(trees).saved == {str(root), str(root / "sub")}
    os.utime(root / "sub" / "b.md")
    assert read_changes(trees).saved == {str(root / "sub")}
    (root / "sub" / "b.md").unlink()
    assert read_changes(trees).saved == {str(root / "sub")}
    (root / "sub" / "deep" / os.fsdecode(b"not-utf8-\xff.md")).write_text("text")
    assert read_changes(trees).saved == {str(root / "sub" / "deep")}


def test_reading_is_told_of_by_nothing(trees: FolderTrees, root: Path) -> None:
    (root / "a.md").write_text("text")
    read_changes(trees)
    assert (root / "a.md").read_text() == "text"
    assert list(root.rglob("*"))
    assert read_changes(trees) == Changes()


def test_folders_that_appear_are_watched_with_all_in_them(trees: FolderTrees, root: Path) -> None:
    (root / "new" / "inner").mkdir(parents=True)
    (root / "new" / "inner" / "a.md").write_text("before it is watched")
    assert str(root) in read_changes(trees).saved
    (root / "new" / "inner" / "a.md").write_text("afterwards")
    assert read_changes(trees).saved == {str(root / "new" / "inner")}
    (root / "new").rename(root / "sub" / "moved")
    assert read_changes(trees).saved >= {str(root), str(root / "sub")}
    (root / "sub" / "moved" / "inner" / "a.md").write_text("elsewhere")
    assert read_changes(trees).saved == {str(root / "sub" / "moved" / "inner")}


def test_what_leaves_the_tree_is_told_of_no_more(
    trees: FolderTrees, root: Path, tmp_path: Path
) -> None:
    (root / "sub").rename(tmp_path / "outside")
    assert read_changes(trees).saved >= {str(root)}
    (tmp_path / "outside" / "deep" / "a.md").write_text("text")
    assert read_changes(trees) == Changes()
    trees.remove(str(root))
    (root / "a.md").write_text("text")
    assert read_changes(trees) == Changes()
    assert trees.roots == set()


def test_git_is_not_watched(trees: FolderTrees, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git" / "index").write_text("objects")
    assert read_changes(trees) == Changes()
    (root / "sub" / ".git").mkdir()
    trees.add(str(root))
    (root / "sub" / ".git" / "index").write_text("objects")
    assert read_changes(trees) == Changes()


def test_a_root_that_is_replaced_is_no_root_any_more(
    trees: FolderTrees, root: Path, tmp_path: Path
) -> None:
    assert trees.roots == {str(root)}
    root.rename(tmp_path / "former")
    root.mkdir()
    assert trees.roots == set()
    assert read_changes(trees).gone == {str(root)}
    trees.add(str(root))
    assert trees.roots == {str(root)}
    (root / "a.md").write_text("text")
    (tmp_path / "former" / "b.md").write_text("text")
    assert read_changes(trees) == Changes(saved={str(root)})


def test_links_are_not_followed_and_files_are_no_roots(
    trees: FolderTrees, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (root / "link").symlink_to(tmp_path / "outside")
    assert read_changes(trees) == Changes(written={str(root)})
    (tmp_path / "outside" / "a.md").write_text("text")
    assert read_changes(trees) == Changes()
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
    names = str(root / "a.md"), str(root / "b.md")
    (root / "a.md").write_text("text")
    queue = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(queue // 2):  # two events each
        os.rename(names[number % 2], names[1 - number % 2])  # noqa: PTH104
    assert read_changes(trees).overflowed
    (root / "c.md").write_text("text")
    assert read_changes(trees) == Changes(saved={str(root)})


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
    assert read_changes(trees) == Changes(), "nothing of it is left"
    limit.left = 0
    (root / "one-more").mkdir()
    found = read_changes(trees)
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
