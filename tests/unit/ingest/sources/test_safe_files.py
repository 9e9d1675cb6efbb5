"""A permission error fails a listing, but only rejects a document."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import DocumentRejected, ListingFailed
from rag_assets.ingest.sources.files import FilesConfig, FilesSource


def source(root: Path, **options: Any) -> FilesSource:
    return FilesSource(FilesConfig(name="docs", root=root, **options))


def paths(root: Path, **options: Any) -> list[str]:
    return [document.path for document in source(root, **options).list()]


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()


def test_a_file_without_permission_is_rejected(
    open_folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    (open_folder / "locked.md").touch(mode=0)
    with unprivileged(), pytest.raises(DocumentRejected, match="no permission"):
        source(open_folder).read("locked.md", max_bytes=100)


def test_a_folder_without_permission_fails_the_listing(
    open_folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    write(open_folder, "a.md", "locked/b.md", "unsearchable/c.md")
    (open_folder / "locked").chmod(0o000)
    (open_folder / "unsearchable").chmod(0o444)
    with unprivileged():
        with pytest.raises(ListingFailed, match=r"no permission to list the folder 'locked'"):
            paths(open_folder)
        with pytest.raises(ListingFailed, match=r"no permission to list the folder 'unsearchable"):
            paths(open_folder, exclude=("locked",))
        with pytest.raises(ListingFailed, match=r"no permission to list 'unsearchable/c\.md'"):
            paths(open_folder, exclude=("locked",), gitignore=False)
        assert paths(open_folder, exclude=("locked", "unsearchable")) == ["a.md"]


def test_an_unreadable_gitignore_fails_the_listing(
    open_folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    write(open_folder, "a.md")
    (open_folder / ".gitignore").touch(mode=0)
    with unprivileged(), pytest.raises(ListingFailed, match="no permission"):
        paths(open_folder, include=("*.md",))


def test_passing_through_a_folder_takes_no_permission_to_list_it(
    open_folder: Path, unprivileged: Callable[[], AbstractContextManager[None]]
) -> None:
    write(open_folder, "above/root/a.md")
    (open_folder / "above").chmod(0o711)
    with unprivileged():
        assert paths(open_folder / "above/root") == ["a.md"]
