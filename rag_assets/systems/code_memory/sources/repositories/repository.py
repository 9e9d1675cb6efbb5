"""A Git repository: its name, the commit of a ref, and the files of the commit and worktree."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.kinds import OriginDescription
from rag_assets.systems.code_memory.sources.repositories.attributes import (
    GITATTRIBUTES,
    MAX_ATTRIBUTES_BYTES,
    Attributes,
)
from rag_assets.systems.code_memory.sources.repositories.configuration import is_true
from rag_assets.systems.code_memory.sources.repositories.folders import locate, read_configuration
from rag_assets.systems.code_memory.sources.repositories.index_file import Index, read_index
from rag_assets.systems.code_memory.sources.repositories.objects import Objects
from rag_assets.systems.code_memory.sources.repositories.refs import Head, Refs
from rag_assets.systems.code_memory.sources.repositories.trees import (
    REGULAR,
    TreeFile,
    file_at,
    files_of,
)
from rag_assets.systems.code_memory.sources.repositories.worktree import (
    StoredContents,
    Worktree,
    read_info_attributes,
    read_unchanged,
    worktree_attributes,
)

WORKTREE, HEAD = "worktree", "HEAD"
_EMPTY: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Id of the empty tree, which a repository need not contain."""
_MAX_COMPARED_BYTES = 64 << 20


class Repository:
    """An opened repository.

    Args:
        root: the top folder of its worktree, or the folder of a bare repository; absolute and
            resolved.

    Raises:
        ListingFailed: the repository is missing or cannot be read.
    """

    def __init__(self, root: Path) -> None:
        self.folders = locate(root)
        self._settings = read_configuration(self.folders.common)
        self._require_readable()
        self.objects = Objects(self.folders)
        self.refs = Refs(self.folders)

    @property
    def name(self) -> str:
        """Return the name of its folder; for a linked worktree, the name of its repository."""
        common = self.folders.common
        folder = common.parent if common.name == ".git" else common
        return folder.name.removesuffix(".git") or "repository"

    @property
    def autocrlf(self) -> str:
        """Return how line endings are converted for files without such an attribute."""
        return self._settings.get("core.autocrlf", "").lower()

    def commit(self, ref: str) -> str | None:
        """Return the commit that a ref resolves to; None before the first commit.

        Raises:
            ListingFailed: the ref does not exist, or the ref is `worktree` and the repository is
                bare.
        """
        if ref == WORKTREE and self.folders.bare:
            raise ListingFailed(
                f"the repository in {str(self.folders.root)!r} is bare: it has no worktree",
                hint="set `ref: HEAD`, or set ref to a branch",
            )
        if ref in (WORKTREE, HEAD):
            commit = self.refs.head().commit
            return None if commit is None else self.objects.commit(commit)
        return self.refs.resolve(ref, self.objects)

    def tree(self, commit: str | None) -> str:
        """Return the id of a commit's tree; without a commit, the id of the empty tree."""
        return _EMPTY if commit is None else self.objects.tree(commit)

    def files(self, tree: str) -> dict[str, TreeFile]:
        """Return the files of a tree by path."""
        return {} if tree == _EMPTY else files_of(self.objects, tree)

    def file_at(self, tree: str, path: str) -> TreeFile | None:
        """Return one file of a tree; None if the tree lacks it."""
        return None if tree == _EMPTY else file_at(self.objects, tree, path)

    def attributes(self, files: Mapping[str, TreeFile]) -> Attributes:
        """Return the attributes that the .gitattributes files of a commit define."""

        def read(folder: str) -> bytes | None:
            found = files.get(folder + GITATTRIBUTES)
            if found is None or found.mode not in REGULAR:
                return None
            if self.objects.size(found.oid, "blob") > MAX_ATTRIBUTES_BYTES:
                raise ListingFailed(
                    f"{folder + GITATTRIBUTES!r} is too large", hint="shorten the file"
                )
            return self.objects.read(found.oid, "blob")

        return Attributes(read, read_info_attributes(self.folders))

    def worktree(self, tree: str) -> Worktree:
        """Return the worktree, compared with a tree."""
        return Worktree(self.folders, self.stored, self.files(tree))

    @cached_property
    def stored(self) -> StoredContents:
        """Return an object that compares worktree files with blobs."""
        links = is_true({"core.symlinks": "true", **self._settings}, "core.symlinks")
        attributes = worktree_attributes(self.folders)
        return StoredContents(self.objects, attributes, self.autocrlf, links=links)

    def moment(self) -> tuple[Head, tuple[int, int] | None]:
        """Return the checked-out head and the index file's identity; a checkout changes both."""
        try:
            index = (self.folders.own / "index").lstat()
        except OSError:
            return self.refs.head(), None
        return self.refs.head(), (index.st_ino, index.st_mtime_ns)

    def is_skipped(self, path: str) -> bool:
        """Return whether git leaves a file out of the worktree on purpose (skip-worktree)."""
        return self._index is not None and self._index.is_skipped(path)

    @cached_property
    def _index(self) -> Index | None:
        return read_index(self.folders.own)

    def describe(self, commit: str | None, paths: Collection[str]) -> OriginDescription:
        """Return the repository, the commit, and which of these files differ from the commit."""
        if self.folders.bare:
            return OriginDescription(self.name, commit, None)
        tree = self.tree(commit)
        differing = frozenset(path for path in paths if self._differs(tree, path))
        return OriginDescription(self.name, commit, differing)

    def _differs(self, tree: str, path: str) -> bool:
        committed = self.file_at(tree, path)
        content = read_unchanged(self.folders.root, path, None, _MAX_COMPARED_BYTES)
        if committed is None or content is None:
            return True
        return self.stored.of(path, content, committed).blob is None

    def _require_readable(self) -> None:
        kind = self._settings.get("extensions.objectformat", "sha1").lower()
        if kind != "sha1":
            raise ListingFailed(
                f"the repository in {str(self.folders.root)!r} uses {kind} object ids, but only"
                " SHA-1 ids are supported",
                hint="use a copy of the repository that was created with --object-format=sha1",
            )
        storage = self._settings.get("extensions.refstorage", "files").lower()
        if storage != "files":
            raise ListingFailed(
                f"the repository in {str(self.folders.root)!r} stores its refs in the format"
                f" {storage}, which is not supported",
                hint="run `git refs migrate --ref-format=files` in the repository",
            )
