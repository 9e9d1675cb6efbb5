"""A Git repository: its branches and tags, the commit of a ref, and the files of both."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterator, Mapping
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
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    is_true,
    locate_repository,
    read_configuration,
    read_small,
)
from rag_assets.systems.code_memory.sources.repositories.objects import (
    REGULAR,
    Objects,
    TreeFile,
    find_file,
    list_files,
)
from rag_assets.systems.code_memory.sources.repositories.worktree import (
    GitIndex,
    StoredContents,
    read_index,
    read_info_attributes,
    read_unchanged,
)

_ID: Final = re.compile(r"[0-9a-f]{40}")
_ABBREVIATED: Final = re.compile(r"[0-9a-f]{7,39}")
_MAX_REF_BYTES = 4_096
_MAX_PACKED_BYTES = 256 << 20
_MAX_DEPTH = 5
_MAX_NAMES = 20_000
_PREFIXES: Final = ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/")
"""Prefixes that git tries for a name, in its order; the first that exists is used."""


class Refs:
    """The refs of a repository, read again on every request; damaged refs raise ListingFailed."""

    def __init__(self, folders: RepositoryFolders) -> None:
        self._folders = folders

    def read_head(self) -> tuple[str | None, str | None]:
        """Return the checked-out commit, and the full name of the checked-out branch, if any."""
        content = read_small(self._folders.own, ["HEAD"], _MAX_REF_BYTES)
        if content is None:
            raise ListingFailed(
                f"the file HEAD is missing in {str(self._folders.own)!r}",
                hint="run `git symbolic-ref HEAD refs/heads/BRANCH`",
            )
        oid, target = _parse_ref("HEAD", content)
        return oid if target is None else self._follow(target), target

    def resolve_commit(self, name: str, objects: Objects) -> str:
        """Return the commit of a branch, a tag, or a full or abbreviated id."""
        if _ID.fullmatch(name):
            return objects.resolve_commit(name)
        if is_name(name):
            for prefix in _PREFIXES if name.startswith("refs/") else _PREFIXES[1:]:
                oid = self._follow(prefix + name)
                if oid is not None:
                    return objects.resolve_commit(oid)
        oid = objects.expand_id(name) if _ABBREVIATED.fullmatch(name) else None
        if oid is not None:
            return objects.resolve_commit(oid)
        raise ListingFailed(
            f"there is no branch, tag or commit {name!r}", hint=self._suggest_names(name)
        )

    def list_names(self) -> list[str]:
        """Return the short names of all branches and tags, sorted."""
        full = {*self._read_packed_refs(), *self._iter_loose_refs()}
        return sorted(
            name.removeprefix(prefix)
            for name in full
            for prefix in _PREFIXES[2:]
            if name.startswith(prefix)
        )

    def _suggest_names(self, name: str) -> str:
        names = self.list_names()[:_MAX_NAMES]
        near = difflib.get_close_matches(name[:200], names, n=5, cutoff=0.5) or names[:5]
        if not near:
            return "create a branch first"
        return f"choose an existing one, such as {', '.join(near)}"

    def _follow(self, name: str) -> str | None:
        for _ in range(_MAX_DEPTH):
            oid, target = self._read(name)
            if target is None:
                return oid
            name = target
        raise ListingFailed(
            f"the symbolic ref {name!r} leads back to itself, or over more than {_MAX_DEPTH} refs",
            hint="run `git symbolic-ref` to point it to a branch",
        )

    def _read(self, name: str) -> tuple[str | None, str | None]:
        """Return the id in a ref, and the name of the ref it points to; at least one is None."""
        if not is_name(name):
            raise ListingFailed(f"{name!r} is not a valid name of a ref")
        content = read_small(self._folders.common, name.split("/"), _MAX_REF_BYTES)
        if content is not None:
            return _parse_ref(name, content)
        return self._read_packed_refs().get(name), None

    def _read_packed_refs(self) -> dict[str, str]:
        content = read_small(self._folders.common, ["packed-refs"], _MAX_PACKED_BYTES)
        refs = {}
        for line in (content or b"").split(b"\n"):
            if not line or line[:1] in b"#^":
                continue
            oid, _, name = line.decode("utf-8", "surrogateescape").partition(" ")
            if not _ID.fullmatch(oid) or not name:
                raise ListingFailed(
                    "the file packed-refs of the repository is damaged",
                    hint="run `git pack-refs --all` to write it again",
                )
            refs[name] = oid
        return refs

    def _iter_loose_refs(self) -> Iterator[str]:
        waiting = [self._folders.common / "refs"]
        count = 0
        while waiting and count < _MAX_NAMES:
            folder = waiting.pop()
            try:
                with os.scandir(folder) as scanned:
                    entries = list(scanned)
            except OSError:
                continue
            for entry in entries:
                count += 1
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(folder / entry.name)
                elif entry.is_file(follow_symlinks=False):
                    yield (folder / entry.name).relative_to(self._folders.common).as_posix()


def is_name(name: str) -> bool:
    """Return whether a name is valid for a ref, and so safe as a path below the repository."""
    parts = name.split("/")
    return not any(
        part in ("", ".", "..") or part.endswith(".lock") or "\0" in part for part in parts
    )


def _parse_ref(name: str, content: bytes) -> tuple[str | None, str | None]:
    text = content.decode("utf-8", "surrogateescape").strip()
    if text.startswith("ref:"):
        return None, text.removeprefix("ref:").strip()
    if _ID.fullmatch(text):
        return text, None
    raise ListingFailed(f"the ref {name!r} is damaged", hint="set it with `git update-ref`")


WORKTREE, HEAD = "worktree", "HEAD"
_EMPTY: Final = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Id of the empty tree, which a repository need not contain."""
_MAX_COMPARED_BYTES = 64 << 20


class Repository:
    """An opened repository.

    Args:
        root: its worktree's top folder, or the folder of a bare repository; absolute and resolved.

    Raises:
        ListingFailed: the repository is missing or cannot be read.
    """

    def __init__(self, root: Path) -> None:
        self.folders = locate_repository(root)
        self._settings = read_configuration(self.folders.common)
        self._require_readable()
        self.objects = Objects(self.folders)
        self.refs = Refs(self.folders)

    @property
    def name(self) -> str:
        """Return the name of the repository's folder, also for a linked worktree."""
        common = self.folders.common
        folder = common.parent if common.name == ".git" else common
        return folder.name.removesuffix(".git") or "repository"

    @property
    def autocrlf(self) -> str:
        """Return `core.autocrlf` in lower case: how line ends are converted by default."""
        return self._settings.get("core.autocrlf", "").lower()

    def resolve_commit(self, ref: str) -> str | None:
        """Return the commit that a ref resolves to; None before the first commit."""
        if ref == WORKTREE and self.folders.bare:
            raise ListingFailed(
                f"the repository in {str(self.folders.root)!r} is bare: it has no worktree",
                hint="set `ref: HEAD`, or set ref to a branch",
            )
        if ref in (WORKTREE, HEAD):
            commit, _ = self.refs.read_head()
            return None if commit is None else self.objects.resolve_commit(commit)
        return self.refs.resolve_commit(ref, self.objects)

    def resolve_tree(self, ref: str) -> str:
        """Return the id of the tree of a ref's commit."""
        return self.get_tree(self.resolve_commit(ref))

    def get_tree(self, commit: str | None) -> str:
        """Return the id of a commit's tree; without a commit, the id of the empty tree."""
        return _EMPTY if commit is None else self.objects.read_tree_id(commit)

    def list_files(self, tree: str) -> dict[str, TreeFile]:
        """Return the files of a tree by path."""
        return {} if tree == _EMPTY else list_files(self.objects, tree)

    def find_tree_file(self, tree: str, path: str) -> TreeFile | None:
        """Return one file of a tree; None if the tree lacks it."""
        return None if tree == _EMPTY else find_file(self.objects, tree, path)

    def read_attributes(self, files: Mapping[str, TreeFile]) -> Attributes:
        """Return the attributes that the .gitattributes files of a commit define."""

        def read(folder: str) -> bytes | None:
            file = files.get(folder + GITATTRIBUTES)
            if file is None or file.mode not in REGULAR:
                return None
            if self.objects.read_size(file.oid, "blob") > MAX_ATTRIBUTES_BYTES:
                raise ListingFailed(
                    f"{folder + GITATTRIBUTES!r} is too large", hint="shorten the file"
                )
            return self.objects.read(file.oid, "blob")

        return Attributes(read, read_info_attributes(self.folders))

    @cached_property
    def stored(self) -> StoredContents:
        """Return the object that compares worktree files with blobs."""

        def read(folder: str) -> bytes | None:
            names = [*folder.split("/")[:-1], GITATTRIBUTES]
            return read_small(self.folders.root, names, MAX_ATTRIBUTES_BYTES)

        links = is_true({"core.symlinks": "true", **self._settings}, "core.symlinks")
        attributes = Attributes(read, read_info_attributes(self.folders))
        return StoredContents(self.objects, attributes, self.autocrlf, links=links)

    def read_checkout_state(self) -> tuple[object, ...]:
        """Return the checked-out head and the index file's identity; a checkout changes both."""
        try:
            index = (self.folders.own / "index").lstat()
        except OSError:
            return self.refs.read_head()
        return *self.refs.read_head(), index.st_ino, index.st_mtime_ns

    def is_skipped(self, path: str) -> bool:
        """Return whether git leaves a file out of the worktree on purpose (skip-worktree)."""
        return self._index is not None and self._index.is_skipped(path)

    @cached_property
    def _index(self) -> GitIndex | None:
        return read_index(self.folders.own)

    def describe(self, commit: str | None, paths: Collection[str]) -> OriginDescription:
        """Return the repository's name, its commit, and which of `paths` differ from the commit."""
        if self.folders.bare:
            return OriginDescription(self.name, commit, None)
        tree = self.get_tree(commit)
        differing = frozenset(path for path in paths if self._differs(tree, path))
        return OriginDescription(self.name, commit, differing)

    def _differs(self, tree: str, path: str) -> bool:
        committed = self.find_tree_file(tree, path)
        content = read_unchanged(self.folders.root, path, None, _MAX_COMPARED_BYTES)
        if committed is None or content is None:
            return True
        return self.stored.convert(path, content, committed).blob is None

    def _require_readable(self) -> None:
        root = str(self.folders.root)
        kind = self._settings.get("extensions.objectformat", "sha1").lower()
        if kind != "sha1":
            raise ListingFailed(
                f"the repository in {root!r} uses {kind} object ids, but only SHA-1 ids are"
                " supported",
                hint="use a copy of the repository that was created with --object-format=sha1",
            )
        storage = self._settings.get("extensions.refstorage", "files").lower()
        if storage != "files":
            raise ListingFailed(
                f"the repository in {root!r} stores its refs in the format {storage}, which is not"
                " supported",
                hint="run `git refs migrate --ref-format=files` in the repository",
            )
