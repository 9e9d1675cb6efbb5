"""Roots: links that are refused or followed, and the identity of a root's folder."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError, DocumentRejected, ListingFailed
from rag_assets.ingest.sources.disk import (
    FolderIdentity,
    decode_folders,
    encode_folders,
    find_owner_home,
    resolve_system_link,
)
from rag_assets.ingest.sources.files import FILES, FilesConfig
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.model import DocumentSource, FolderSource
from rag_assets.systems.agent_docs.globs import GLOBS, GlobsConfig
from rag_assets.systems.code_memory.sources.git import GIT, GitConfig
from tests.mounts import Mounts, with_mounts
from tests.repositories import MadeRepository
from tests.unit.ingest.sources.conftest import open_folder, unprivileged

__all__ = ["open_folder", "unprivileged"]  # fixtures

KINDS = ("files", "git", "git HEAD", "globs", "globs elsewhere")


def make(root: Path, name: str = "a.md") -> None:
    """Create a folder from which every kind of source reads one file."""
    MadeRepository(root).commit({name: "# A page\n"})


def source(kind: str, root: Path, allowed: tuple[Path, ...] = (), **fields: Any) -> DocumentSource:
    context = SourceContext(Path("/"), allowed_roots=allowed)
    if kind == "files":
        return FILES.build(FilesConfig(name="docs", root=root, **fields), context)
    if kind.startswith("git"):
        ref = kind.partition(" ")[2] or "worktree"
        return GIT.build(GitConfig(name="docs", root=root, ref=ref, **fields), context)
    base, pattern = (root, "*.md") if kind == "globs" else (Path("/usr"), f"{root}/*.md")
    config = GlobsConfig(name="docs", base=base, patterns=(pattern,), **fields)
    return GLOBS.build(config, context)


def names(of: DocumentSource) -> list[str]:
    return [document.path.rpartition("/")[2] for document in of.list()]


def refusal(of: DocumentSource) -> ListingFailed:
    with pytest.raises(ListingFailed) as refused:
        list(of.list())
    return refused.value


@pytest.mark.parametrize("kind", KINDS)
def test_a_root_that_is_a_link_is_refused_and_the_folder_named(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    refused = refusal(source(kind, tmp_path / "link"))
    assert repr(str(tmp_path / "link")) in refused.message
    assert repr(str(tmp_path / "real")) in refused.message
    assert "follow_root_link: true" in (refused.hint or "")
    assert names(source(kind, tmp_path / "real")) == ["a.md"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_above_a_root_is_refused(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "real/docs")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert str(tmp_path / "real/docs") in refusal(source(kind, tmp_path / "link/docs")).message


@pytest.mark.parametrize("kind", KINDS)
def test_a_root_that_is_replaced_by_a_link_is_refused(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "docs")
    make(tmp_path / "foreign")
    opened = source(kind, tmp_path / "docs")
    [document] = opened.list()
    (tmp_path / "docs").rename(tmp_path / "former")
    (tmp_path / "docs").symlink_to(tmp_path / "foreign")
    for again in (opened, source(kind, tmp_path / "docs")):
        assert "leads to" in refusal(again).message
        with pytest.raises(DocumentRejected):
            again.read(document.path, max_bytes=100)


@pytest.mark.parametrize("kind", KINDS)
def test_links_between_allowed_roots_are_followed(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "allowed/real")
    make(tmp_path / "outside")
    link = tmp_path / "allowed/link"
    link.symlink_to(tmp_path / "allowed/real")
    allowed = (tmp_path / "allowed",)
    assert names(source(kind, link, allowed)) == ["a.md"]
    link.unlink()
    link.symlink_to(tmp_path / "outside")
    with pytest.raises(ConfigurationError, match="none of the allowed roots"):
        source(kind, link, allowed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_link_is_followed_to_each_release_on_request(kind: str, tmp_path: Path) -> None:
    for release in ("one", "two"):
        make(tmp_path / release, f"{release}.md")
    link = tmp_path / "link"
    known = []
    for release in ("one", "two"):
        link.unlink(missing_ok=True)
        link.symlink_to(tmp_path / release)
        opened = source(kind, link, follow_root_link=True)
        [document] = opened.list()
        assert document.path.endswith(f"{release}.md")
        assert opened.read(document.path, max_bytes=100) == b"# A page\n"
        assert isinstance(opened, FolderSource)
        known.append(dict(opened.folders))
    # Releases of one file system count as one folder: what a release lacks is deleted.
    assert known[0] == known[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("closed", ["docs", "."])
def test_a_root_that_cannot_be_opened_fails_its_listing_and_nothing_else(
    kind: str,
    closed: str,
    open_folder: Path,
    unprivileged: Callable[[], AbstractContextManager[None]],
) -> None:
    make(open_folder / "closed/docs")
    opened = source(kind, open_folder / "closed/docs")
    (open_folder / "closed" / closed).chmod(0)
    try:
        with unprivileged():
            refused = refusal(opened)
            assert "docs" in refused.message
            refusal(source(kind, open_folder / "closed/docs"))
    finally:
        (open_folder / "closed").chmod(0o755)


def test_links_in_the_topmost_folder_belong_to_the_system(tmp_path: Path) -> None:
    links = [link for link in Path("/").iterdir() if link.is_symlink() and link.is_dir()]
    if not links:
        pytest.skip("there is no link in /")
    real = Path(os.path.realpath(links[0]))
    assert resolve_system_link(links[0] / "docs/../files") == real / "files"
    assert resolve_system_link(links[0]) == links[0], "a root of its own is no system's folder"
    assert resolve_system_link(tmp_path / "docs") == tmp_path / "docs"


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_recognized_and_distinguished_from_another(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "docs")

    def root() -> FolderIdentity:
        opened = source(kind, tmp_path / "docs")
        names(opened)
        assert isinstance(opened, FolderSource)
        [(path, identity)] = decode_folders(encode_folders(opened.folders)).items()
        assert opened.locate_folder(path) == tmp_path / "docs"
        return identity

    first = root()
    (tmp_path / "docs/b.md").write_text("# B\n")
    assert root().is_same(first)
    (tmp_path / "docs").rename(tmp_path / "former")
    make(tmp_path / "docs")
    assert not root().is_same(first)


@pytest.mark.parametrize("kind", ["files", "git", "globs"])
def test_mount_points_below_a_root_are_listed(kind: str, tmp_path: Path) -> None:
    make(tmp_path / "docs")

    def work(mounts: Mounts) -> None:
        disk = tmp_path / "docs/sub/\udce9"
        mounts.mount(disk)
        (disk / "in").mkdir()
        (disk / "in/b.md").write_text("# B\n")
        opened = source(kind, tmp_path / "docs")
        if kind == "globs":
            config = GlobsConfig(name="docs", base=tmp_path / "docs", patterns=("**/*.md",))
            opened = GLOBS.build(config, SourceContext(Path("/")))
        assert names(opened) == ["a.md", "b.md"]
        assert isinstance(opened, FolderSource)
        folders = decode_folders(encode_folders(opened.folders))
        assert folders.keys() == {"", "sub/\udce9"}
        assert opened.locate_folder("sub/\udce9") == disk
        assert folders["sub/\udce9"] == FolderIdentity.from_path(disk)

    with_mounts(work)


def test_unknown_parts_of_a_folders_identity_distinguish_nothing() -> None:
    folder = FolderIdentity(2, 7)
    for same in (folder, FolderIdentity(2, 0), FolderIdentity(0, 7), FolderIdentity(0, 0)):
        assert folder.is_same(same)
        assert same.is_same(folder)
    for other in (FolderIdentity(3, 7), FolderIdentity(2, 8), FolderIdentity(0, 8)):
        assert not folder.is_same(other)
        assert not other.is_same(folder)
    assert FolderIdentity(2, 0).as_file_system() == FolderIdentity(2, 0)


def test_the_home_folder_is_that_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere/else")
    assert find_owner_home() == Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    monkeypatch.setattr(os, "getuid", lambda: 987_654_321)
    with pytest.raises(ConfigurationError, match="987654321 is not in the user database"):
        find_owner_home()
