"""Trees: the files of a commit, by path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.code_memory.sources.repositories.objects import Objects

REGULAR: Final = frozenset({0o100644, 0o100755, 0o100664})
LINK: Final = 0o120000
SUBMODULE: Final = 0o160000
_FOLDER: Final = 0o040000
MAX_PATH_BYTES = 4_096
_MAX_FILES = 2_000_000
_MAX_NAME_BYTES = 512 << 20
"""Maximum size in bytes of all paths of a tree together."""
_Entry: TypeAlias = tuple[int, bytes, str]
"""Mode, name and id."""
_UNUSABLE: Final = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file, link or submodule of a tree.

    Attributes:
        mode: git's mode, which shows whether it is a file, a link or a submodule.
        oid: id of its blob; for a submodule, id of the other repository's commit.
    """

    mode: int
    oid: str


def files_of(objects: Objects, tree: str) -> dict[str, TreeFile]:
    """Return all files in a tree by path; leave out files that a worktree must not contain.

    Args:
        tree: id of the tree.

    Raises:
        ListingFailed: a tree is missing or damaged, or there are more files than any project has.
    """
    trees = _read_trees(objects, tree)
    found: dict[str, TreeFile] = {}
    waiting = [(b"", tree)]
    while waiting:
        folder, oid = waiting.pop()
        for mode, name, entry in trees[oid]:
            path = folder + name
            if len(path) > MAX_PATH_BYTES:
                continue
            if mode == _FOLDER:
                waiting.append((path + b"/", entry))
            else:
                found[path.decode("utf-8", "surrogateescape")] = TreeFile(mode, entry)
    return found


def _read_trees(objects: Objects, tree: str) -> dict[str, list[_Entry]]:
    """Return the usable entries of a tree and all trees below it, by id; each tree is read once.

    The number of paths is computed before any path is built: ten trees, each of which contains the
    next one ten times, have ten billion paths.

    Raises:
        ListingFailed: see files_of.
    """
    trees: dict[str, list[_Entry]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    waiting, entries = [tree], 0
    while waiting:
        oid = waiting[-1]
        if oid in trees:
            waiting.pop()
            sizes[oid] = _paths_of(trees[oid], sizes)
        else:
            trees[oid] = [
                one for one in _parse_entries(objects.read(oid, "tree"), oid) if _is_usable(one)
            ]
            entries += len(trees[oid])
            below = {entry for mode, _, entry in trees[oid] if mode == _FOLDER}
            if any(entry in trees and entry not in sizes for entry in below):
                raise ListingFailed(
                    f"the tree {oid} is damaged", hint="run `git fsck` to list damaged objects"
                )
            waiting += [entry for entry in below if entry not in sizes]
        paths, name_bytes = sizes.get(oid, (entries, 0))
        if paths > _MAX_FILES or name_bytes > _MAX_NAME_BYTES:
            raise ListingFailed(
                f"the tree {tree} contains more than {_MAX_FILES:,} files and folders, or its paths"
                f" have more than {_MAX_NAME_BYTES >> 20} MiB in total",
                hint="set ref to a commit with fewer files",
            )
    return trees


def _paths_of(entries: list[_Entry], sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the number of paths in a tree, and the total number of bytes in them."""
    paths = name_bytes = 0
    for mode, name, oid in entries:
        below, bytes_below = sizes[oid] if mode == _FOLDER else (0, 0)
        paths += 1 + below
        name_bytes += (len(name) + 1) * (1 + below) + bytes_below
    return paths, name_bytes


def _is_usable(entry: _Entry) -> bool:
    """Return whether a worktree may have the name of an entry."""
    name = entry[1]
    return name not in _UNUSABLE and b"/" not in name and name.lower() != b".git"


def file_at(objects: Objects, tree: str, path: str) -> TreeFile | None:
    """Return one file of a tree, without reading other parts of the tree."""
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
    for mode, found, oid in _parse_entries(objects.read(tree, "tree"), tree):
        if found == name:
            return TreeFile(mode, oid)
    return None


def _parse_entries(content: bytes, tree: str) -> Iterator[_Entry]:
    at = 0
    while at < len(content):
        blank = content.find(b" ", at)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise ListingFailed(
                f"the tree {tree} is damaged", hint="run `git fsck` to list damaged objects"
            )
        try:
            mode = int(content[at:blank], 8)
        except ValueError:
            raise ListingFailed(
                f"the tree {tree} is damaged", hint="run `git fsck` to list damaged objects"
            ) from None
        yield mode, content[blank + 1 : end], content[end + 1 : end + 21].hex()
        at = end + 21
