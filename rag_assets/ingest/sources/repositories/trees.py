"""Trees: the files of a commit by path."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.repositories.objects import Objects

REGULAR: Final = frozenset({0o100644, 0o100755, 0o100664})
LINK: Final = 0o120000
SUBMODULE: Final = 0o160000
_FOLDER: Final = 0o040000
MAX_PATH_BYTES = 4_096
_MAX_FILES = 2_000_000
_MAX_TREES = 1_000_000
_UNUSABLE: Final = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file, link or submodule of a tree.

    Attributes:
        mode: git's, which says which of them it is.
        oid: of its blob; of a submodule, of the other repository's commit.
    """

    mode: int
    oid: str


def files_of(objects: Objects, tree: str) -> dict[str, TreeFile]:
    """Everything in a tree by path; names that no worktree may have are left out.

    Args:
        objects: where trees are.
        tree: id of the tree.

    Raises:
        ListingFailed: a tree is missing or damaged, or there are more files than any project has.
    """
    found: dict[str, TreeFile] = {}
    waiting = [(b"", tree)]
    trees = 0
    while waiting:
        folder, oid = waiting.pop()
        trees += 1
        for mode, name, entry in _entries(objects.read(oid, "tree"), oid):
            path = folder + name
            if name in _UNUSABLE or b"/" in name or name.lower() == b".git":
                continue
            if len(path) > MAX_PATH_BYTES:
                continue
            if mode == _FOLDER:
                waiting.append((path + b"/", entry))
            else:
                found[path.decode("utf-8", "surrogateescape")] = TreeFile(mode, entry)
        if len(found) > _MAX_FILES or trees > _MAX_TREES:
            raise ListingFailed(f"the tree {tree} holds more than {_MAX_FILES} files")
    return found


def file_at(objects: Objects, tree: str, path: str) -> TreeFile | None:
    """One file of a tree, without reading the rest of it."""
    *folders, name = path.encode("utf-8", "surrogateescape").split(b"/")
    oid = tree
    for folder in folders:
        below = _entry(objects, oid, folder)
        if below is None or below.mode != _FOLDER:
            return None
        oid = below.oid
    found = _entry(objects, oid, name)
    return None if found is None or found.mode == _FOLDER else found


def _entry(objects: Objects, tree: str, name: bytes) -> TreeFile | None:
    for mode, found, oid in _entries(objects.read(tree, "tree"), tree):
        if found == name:
            return TreeFile(mode, oid)
    return None


def _entries(content: bytes, tree: str) -> Iterator[tuple[int, bytes, str]]:
    at = 0
    while at < len(content):
        blank = content.find(b" ", at)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise ListingFailed(f"the tree {tree} is damaged", hint="`git fsck` says more")
        try:
            mode = int(content[at:blank], 8)
        except ValueError:
            raise ListingFailed(
                f"the tree {tree} is damaged", hint="`git fsck` says more"
            ) from None
        yield mode, content[blank + 1 : end], content[end + 1 : end + 21].hex()
        at = end + 21
