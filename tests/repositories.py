"""Git repositories for tests, created by libgit2, so that the command git need not be installed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pygit2

from rag_assets.ingest.sources.disk import Roots
from rag_assets.ingest.sources.model import ListedDocument
from rag_assets.systems.code_memory.sources.git import GitConfig, GitSource

WHO = pygit2.Signature("Ada", "ada@example.org", 1_700_000_000, 0)
OLD = 1_600_000_000
"""A time of writing that no listing takes for a recent one."""


class MadeRepository:
    """A repository with or without a worktree."""

    def __init__(self, root: Path, *, bare: bool = False) -> None:
        self.root = root
        self.git = pygit2.init_repository(str(root), bare=bare, initial_head="main")
        self.folder = Path(self.git.path)

    def write(self, files: Mapping[str, str | bytes], *, at: int | None = OLD) -> None:
        """Write files of the worktree, by default with an old modification time."""
        for path, content in files.items():
            file = self.root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content.encode() if isinstance(content, str) else content)
            if at is not None:
                os.utime(file, (at, at))

    def commit(self, files: Mapping[str, str | bytes] | None = None, message: str = "one") -> str:
        """Write files, add all that are not ignored, and commit; return the commit's id."""
        self.write(files or {})
        self.git.index.read()
        self.git.index.add_all()
        self.git.index.write()
        return self.commit_index(message)

    def commit_index(self, message: str = "one") -> str:
        """Commit the index; return the commit's id."""
        tree = self.git.index.write_tree()
        parents = [] if self.git.head_is_unborn else [self.git.head.target]
        return str(self.git.create_commit("HEAD", WHO, WHO, message, tree, parents))

    def commit_tree(self, entries: Mapping[bytes, tuple[int, pygit2.Oid]], ref: str) -> str:
        """Commit a tree of these names, modes and ids, even if no worktree could contain it."""
        tree = self.tree(entries)
        return str(self.git.create_commit(ref, WHO, WHO, "tree", tree, []))

    def tree(self, entries: Mapping[bytes, tuple[int, pygit2.Oid]]) -> pygit2.Oid:
        """Write a tree; return its id."""
        raw = b"".join(
            b"%o %s\0" % (mode, name) + oid.raw for name, (mode, oid) in sorted(entries.items())
        )
        return self.git.odb.write(pygit2.enums.ObjectType.TREE, raw)

    def blob(self, content: bytes) -> pygit2.Oid:
        """Write a blob; return its id."""
        return self.git.create_blob(content)

    def source(self, ref: str = "worktree", **settings: object) -> GitSource:
        """Return a source of this repository."""
        return source_of(self.root, ref, **settings)


def source_of(
    root: Path, ref: str = "worktree", roots: Roots | None = None, **settings: object
) -> GitSource:
    """Return a source of a repository."""
    config = GitConfig.model_validate({"name": "code", "root": root, "ref": ref, **settings})
    return GitSource(config, roots)


def listed(source: GitSource) -> dict[str, ListedDocument]:
    """Return the documents that a source lists, by path."""
    return {document.path: document for document in source.list()}


def contents(source: GitSource) -> dict[str, str]:
    """Return the contents of the documents that a source lists, by path."""
    return {
        path: source.read(path, max_bytes=source.max_bytes).decode("utf-8", "surrogateescape")
        for path in listed(source)
    }
