import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pydantic import ValidationError

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentRejected,
    DocumentTooLarge,
    DocumentVanished,
    ListingFailed,
)
from rag_assets.ingest.sources.disk import PIECE_BYTES
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from tests.unit.ingest.sources.conftest import paths, source, write


def bytes_read() -> int:
    """Return the bytes that this process has read, as counted by the kernel."""
    return int(Path("/proc/self/io").read_text().split()[1])


def test_reads_exactly_what_is_there(tmp_path: Path) -> None:
    content = os.urandom(PIECE_BYTES * 2 + 17)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/a.pdf").write_bytes(content)
    files = source(tmp_path)
    assert files.read("sub/a.pdf", max_bytes=len(content)) == content
    assert max(map(len, files.stream("sub/a.pdf", max_bytes=len(content)))) <= PIECE_BYTES
    with pytest.raises(DocumentTooLarge):
        files.read("sub/a.pdf", max_bytes=len(content) - 1)


def test_an_oversized_file_is_listed_and_refused_unread(tmp_path: Path) -> None:
    with (tmp_path / "sparse.pdf").open("wb") as file:
        file.truncate(1 << 40)
    files = source(tmp_path)
    (document,) = files.list()
    assert document.size == 1 << 40
    before = bytes_read()
    with pytest.raises(DocumentTooLarge, match="over the limit of 50 MiB") as refused:
        files.read(document.path, max_bytes=files.max_bytes)
    assert "sparse.pdf" in refused.value.message
    assert bytes_read() - before < PIECE_BYTES


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "growing.md"
    path.write_bytes(b"x" * 1000)
    pieces = source(tmp_path).stream("growing.md", max_bytes=5000)
    assert len(next(pieces)) == 1000
    with path.open("ab") as file:
        file.write(b"y" * 10_000)
    with pytest.raises(DocumentTooLarge, match="5000 bytes"):
        list(pieces)


def test_a_vanished_file_is_distinct_from_a_rejected_one(tmp_path: Path) -> None:
    for root, path in (("", "gone.md"), ("", "gone/a.md"), ("unmounted", "a.md")):
        with pytest.raises(DocumentVanished):
            source(tmp_path / root).read(path, max_bytes=1)


@pytest.mark.parametrize(
    "path",
    [
        *("../secret.md", "sub/../../secret.md", "/etc/passwd", "", ".", "sub//a.md", "a\0.md"),
        "\ud800",
    ],
)
def test_a_path_that_leaves_the_source_is_rejected(tmp_path: Path, path: str) -> None:
    (tmp_path / "secret.md").write_text("secret")
    (tmp_path / "root/sub").mkdir(parents=True)
    with pytest.raises(DocumentRejected) as rejected:
        source(tmp_path / "root").read(path, max_bytes=100)
    assert not isinstance(rejected.value, DocumentVanished)
    assert rejected.value.message.isprintable()


def test_links_swapped_in_after_the_listing_are_rejected(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder in (root / "sub", outside):
        folder.mkdir(parents=True)
        (folder / "a.md").write_text(str(folder))
    (root / "b.md").write_text("b")
    files = source(root)
    assert [document.path for document in files.list()] == ["b.md", "sub/a.md"]
    (root / "b.md").unlink()
    (root / "b.md").symlink_to(outside / "a.md")
    (root / "sub").rename(tmp_path / "moved")
    (root / "sub").symlink_to(outside)
    for path in ("b.md", "sub/a.md"):
        with pytest.raises(DocumentRejected) as rejected:
            files.read(path, max_bytes=100)
        assert not isinstance(rejected.value, DocumentVanished)
    root.rename(tmp_path / "old")
    root.symlink_to(outside)
    with pytest.raises(DocumentRejected):
        files.read("a.md", max_bytes=100)


@pytest.mark.slow
def test_swapping_in_a_tight_loop_never_leaks(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "sub/a.md").write_text("inside")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/a.md").write_text("outside")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            (root / "sub").rename(tmp_path / "parked")
            (tmp_path / "link").rename(root / "sub")
            (root / "sub").rename(tmp_path / "link")
            (tmp_path / "parked").rename(root / "sub")

    swapper = threading.Thread(target=swap)
    swapper.start()
    seen: dict[str, int] = {}
    try:
        for _ in range(1_000):
            try:
                content = source(root).read("sub/a.md", max_bytes=100).decode()
            except DocumentRejected as rejected:
                content = type(rejected).__name__
            seen[content] = seen.get(content, 0) + 1
    finally:
        stop.set()
        swapper.join()
    assert "outside" not in seen
    assert seen["inside"] > 0


def test_special_files_are_rejected_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.md")
    (tmp_path / "folder.md").mkdir()
    for name in ("fifo.md", "folder.md"):
        with pytest.raises(DocumentRejected, match="not a regular file"):
            source(tmp_path).read(name, max_bytes=100)


def test_the_projects_own_state_is_no_source(tmp_path: Path) -> None:
    state = tmp_path / "home/.local"
    state.mkdir(parents=True)
    (tmp_path / "home/examples").mkdir()
    (tmp_path / "alias").symlink_to(state)
    for root in (state, state / "lake", tmp_path / "home", Path("/"), tmp_path / "alias"):
        with pytest.raises(ConfigurationError, match="its own data") as refused:
            FilesSource(FilesConfig(name="docs", root=root), forbidden_roots=[state])
        assert refused.value.hint
    FilesSource(FilesConfig(name="docs", root=tmp_path / "home/examples"), forbidden_roots=[state])


def test_roots_come_from_the_allowlist(tmp_path: Path) -> None:
    allowed = tmp_path / "allowed"
    (allowed / "sub").mkdir(parents=True)
    (tmp_path / "allowed-not").mkdir()
    (allowed / "way-out").symlink_to(tmp_path / "allowed-not")
    FilesSource(FilesConfig(name="docs", root=allowed), allowed_roots=[allowed])
    FilesSource(FilesConfig(name="docs", root=allowed / "sub"), allowed_roots=[allowed])
    for root in (tmp_path, tmp_path / "allowed-not", allowed / "way-out", allowed / "../other"):
        with pytest.raises(ConfigurationError, match="allowed roots"):
            FilesSource(FilesConfig(name="docs", root=root), allowed_roots=[allowed])


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Has Space"},
        {"name": "a/b"},
        {"include": ()},
        {"include": ("docs/[a",)},
        {"exclude": ("",)},
        {"max_bytes": 0},
        {"follow_links": True},
        {"includes": ("*.md",)},
    ],
)
def test_a_wrong_configuration_is_refused(tmp_path: Path, wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FilesConfig.model_validate({"name": "docs", "root": tmp_path} | wrong)


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
