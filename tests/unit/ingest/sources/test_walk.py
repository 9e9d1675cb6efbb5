import os
import socket
import subprocess
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources import disk
from rag_assets.ingest.sources.files import FilesConfig, FilesSource
from rag_assets.ingest.sources.globs import MAX_GITIGNORE_BYTES
from rag_assets.ingest.sources.model import ListedDocument, parse_path
from tests.unit.ingest.sources.conftest import paths, source, write


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture(autouse=True)
def _file_by_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test change the folder between two files."""
    monkeypatch.setattr(disk, "DOCUMENTS_AT_ONCE", 1)


@pytest.fixture(autouse=True)
def _no_descriptor_is_left_open() -> Iterator[None]:
    before = open_descriptors()
    yield
    # What tests before this one left may be collected meanwhile.
    assert open_descriptors() <= before


def test_any_file_name_is_listed_and_can_be_read(tmp_path: Path) -> None:
    names = [
        b"line\nbreak.md",
        b"tab\t\x01\x7f.md",
        "Ünïcode-日本-🚀.md".encode(),
        "é.md".encode(),
        "e\u0301.md".encode(),
        b"latin-\xe9.md",
        b"\xed\xb2\x80.md",
        b"%2e%2e.md",
        b" leading and trailing .md ",
        b"-rf.md",
        b"quote'\"\\.md",
        b"x" * 252 + b".md",
    ]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    documents = list(source(tmp_path).list())
    assert {os.fsencode(document.path) for document in documents} == set(names)
    assert len({document.document_id for document in documents}) == len(names)
    for document in documents:
        assert source(tmp_path).read(document.path, max_bytes=300) == os.fsencode(document.path)
        assert document.uri.isascii()
        assert document.uri.isprintable()
        assert " " not in document.uri
        assert parse_path(document.uri) == document.path


def test_a_listing_has_identity_and_facts(tmp_path: Path) -> None:
    write(tmp_path, "b/Guide.MD")
    (document,) = source(tmp_path).list()
    facts = (tmp_path / "b/Guide.MD").stat()
    assert document == ListedDocument(
        source="docs", path="b/Guide.MD", document_id=document.document_id, uri="docs/b/Guide.MD",
        media_type="text/markdown", size=10, mtime_ns=facts.st_mtime_ns, ctime_ns=facts.st_ctime_ns,
        inode=facts.st_ino,
    )  # fmt: skip


def test_identity_survives_a_move_of_the_root(tmp_path: Path) -> None:
    write(tmp_path, "here/a.md")
    before = [document.document_id for document in source(tmp_path / "here").list()]
    (tmp_path / "here").rename(tmp_path / "there")
    assert [document.document_id for document in source(tmp_path / "there").list()] == before


def test_order_is_stable(tmp_path: Path) -> None:
    write(tmp_path, "z.md", "a.md", "m/z.md", "m/a.md", "b/x/1.md", "b/2.md")
    assert paths(tmp_path) == ["a.md", "z.md", "b/2.md", "b/x/1.md", "m/a.md", "m/z.md"]


def test_links_and_special_files_are_never_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    root = tmp_path / "root"
    write(outside, "secret.md")
    write(root, "plain.md")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    (root / "loop").symlink_to(root)
    (root / "dangling.md").symlink_to("nowhere")
    os.mkfifo(root / "fifo.md")
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(root)  # a socket's path may be no longer than 107 bytes
        try:
            server.bind("socket.md")
        finally:
            os.chdir(here)
        assert [document.path for document in source(root).list()] == ["plain.md"]


def test_a_gitignore_that_is_no_file_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "rules").write_text("*.md\n")
    write(tmp_path, "link/a.md", "fifo/b.md", "folder/c.md")
    (tmp_path / "link/.gitignore").symlink_to("../rules")
    os.mkfifo(tmp_path / "fifo/.gitignore")
    (tmp_path / "folder/.gitignore").mkdir()
    assert paths(tmp_path, include=("*.md",)) == ["fifo/b.md", "folder/c.md", "link/a.md"]


def test_a_gitignore_that_cannot_be_used_fails_the_listing(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "sub/b.md")
    (tmp_path / "sub/.gitignore").write_bytes(b"#" * (MAX_GITIGNORE_BYTES + 1))
    with pytest.raises(ListingFailed, match=r"sub/\.gitignore"):
        paths(tmp_path)
    assert paths(tmp_path, gitignore=False, include=("*.md",)) == ["a.md", "sub/b.md"]


def test_include_and_exclude(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "A.PDF", "b.py", "drafts/c.md", "drafts/keep.md", "docs/x/d.json")
    write(tmp_path, ".git/e.md", "sub/.git/f.md", ".hidden/g.md", "docs/tmp.bak")
    default = FilesSource(FilesConfig(name="docs", root=tmp_path))
    found = [document.path for document in default.list()]
    assert found == ["A.PDF", "a.md", ".hidden/g.md", "drafts/c.md", "drafts/keep.md"]
    assert paths(tmp_path, include=("docs/",)) == ["docs/tmp.bak", "docs/x/d.json"]
    assert paths(tmp_path, include=("docs/", "!*.bak")) == ["docs/x/d.json"]
    assert paths(tmp_path, include=("*.md",), exclude=("drafts", ".hidden/")) == ["a.md"]
    kept = paths(tmp_path, include=("*.md",), exclude=("/*/*.md", "!keep.md"))
    assert kept == ["a.md", "drafts/keep.md"]


@pytest.fixture
def abyss(tmp_path: Path) -> Iterator[Path]:
    """Yield a folder for nesting that is too deep for shutil.rmtree and for pytest."""
    yield tmp_path
    subprocess.run(["rm", "-rf", tmp_path], check=True)


@pytest.mark.slow
def test_deep_nesting_neither_recurses_nor_exhausts_descriptors(abyss: Path) -> None:
    depth = 1000
    here = Path.cwd()
    os.chdir(abyss)
    try:
        for level in range(depth):
            Path("d").mkdir()
            if level % 50 == 0:  # a sub-folder to come back for
                Path("e").mkdir()
                Path("e/late.md").touch()
            os.chdir("d")
        Path("deep.md").touch()
    finally:
        os.chdir(here)
    before = open_descriptors()
    most = before
    found = []
    for document in source(abyss).list():
        most = max(most, open_descriptors())
        found.append(document.path)
    assert found[0] == "d/" * depth + "deep.md"
    assert len(found) == 1 + depth // 50
    assert len(set(found)) == len(found)
    assert most - before < 100
    assert source(abyss).read(found[0], max_bytes=1) == b""


@pytest.mark.slow
def test_the_files_of_a_large_folder_take_little_memory(open_folder: Path) -> None:
    count = 30_000
    folder = os.open(open_folder, os.O_RDONLY)
    os.close(os.open("0.md", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    for number in range(1, count):
        os.mknod(f"{number}.md", dir_fd=folder)
    os.close(folder)
    listing = source(open_folder).list()
    tracemalloc.start()
    try:
        next(listing)  # by now the folder's names are held, and never more
        names = tracemalloc.get_traced_memory()[1]
        for _ in range(2_000):
            next(listing)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sum(1 for _ in listing) == count - 2_001
    assert names < 150 * count
    assert peak - names < 100_000


def test_an_abandoned_listing_closes_what_it_opened(tmp_path: Path) -> None:
    write(tmp_path, "a/b/c/1.md", "a/b/c/2.md")
    listing = source(tmp_path).list()
    next(listing)
    listing.close()  # type: ignore[attr-defined]  # the fixture counts


def test_a_root_that_is_missing_or_no_folder_fails_the_listing(tmp_path: Path) -> None:
    with pytest.raises(ListingFailed, match="missing") as failed:
        paths(tmp_path / "nowhere")
    assert "docs" in failed.value.message
    assert failed.value.hint
    write(tmp_path, "file.md")
    with pytest.raises(ListingFailed, match="not a folder"):
        paths(tmp_path / "file.md")


def test_a_root_swapped_for_a_link_fails_the_listing(tmp_path: Path) -> None:
    write(tmp_path, "root/a.md", "outside/secret.md")
    files = source(tmp_path / "root")
    (tmp_path / "root").rename(tmp_path / "moved")
    (tmp_path / "root").symlink_to(tmp_path / "outside")
    with pytest.raises(ListingFailed):
        list(files.list())


def test_a_root_replaced_during_the_walk_fails_the_listing(tmp_path: Path) -> None:
    write(tmp_path, "root/a.md", "root/b.md")
    listing = source(tmp_path / "root").list()
    next(listing)
    (tmp_path / "root").rename(tmp_path / "moved")
    (tmp_path / "root").mkdir()
    with pytest.raises(ListingFailed, match="replaced"):
        list(listing)


def test_what_vanishes_during_the_walk_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md", "c.md", "gone/d.md", "stays/e.md")
    listing = source(tmp_path).list()
    assert next(listing).path == "a.md"
    (tmp_path / "b.md").unlink()
    (tmp_path / "gone/d.md").unlink()
    (tmp_path / "gone").rmdir()
    assert [document.path for document in listing] == ["c.md", "stays/e.md"]


def test_a_file_swapped_for_a_link_during_the_walk_is_skipped(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "b.md")
    listing = source(tmp_path).list()
    next(listing)
    (tmp_path / "b.md").unlink()
    (tmp_path / "b.md").symlink_to("/etc/passwd")
    assert list(listing) == []


@pytest.mark.parametrize("swap", ["link", "file"])
def test_a_folder_swapped_during_the_walk_fails_the_listing(tmp_path: Path, swap: str) -> None:
    write(tmp_path, "root/a.md", "root/sub/b.md", "outside/secret.md")
    listing = source(tmp_path / "root").list()
    assert next(listing).path == "a.md"
    folder = tmp_path / "root/sub"
    folder.rename(tmp_path / "moved")
    if swap == "link":
        folder.symlink_to(tmp_path / "outside")
    else:
        folder.touch()
    with pytest.raises(ListingFailed, match="'sub'"):
        list(listing)
