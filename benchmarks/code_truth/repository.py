"""List and read a repository's files and their facts, as a sync does."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pygit2

from rag_assets.systems.code_memory.reading import get_language_of_type, read_code
from rag_assets.systems.code_memory.sources.git import GitConfig, GitSource
from rag_assets.systems.code_memory.symbols.model import FileFacts

_WANTED = frozenset({"text/x-php", "text/x-sql", "text/x-json"})


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository with its facts.

    Attributes:
        root: the worktree.
        commit: the commit that is checked out.
        files: each file with its facts.
    """

    root: Path
    commit: str
    files: tuple[FileFacts, ...]


def read_checkout(root: Path) -> Checkout:
    """Read the checked-out files of a repository; run none of its code.

    Args:
        root: the worktree.
    """
    source = GitSource(GitConfig(name="repo", root=root))
    files = []
    for listed in source.list():
        if listed.media_type in _WANTED:
            content = source.read(listed.path, max_bytes=source.max_bytes)
            read = read_code(content.decode("utf-8", "replace"), listed.media_type)
            files.append(
                FileFacts(listed.path, get_language_of_type(listed.media_type), read.facts)
            )
    return Checkout(root, read_commit(root), tuple(files))


def read_commit(root: Path) -> str:
    """Return the commit that is checked out.

    Args:
        root: the worktree.
    """
    return str(pygit2.Repository(str(root)).head.target)
