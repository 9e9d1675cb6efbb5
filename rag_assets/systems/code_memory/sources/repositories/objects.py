"""The objects of a repository: commits, trees and blobs, by id, and the files of trees by path.

libgit2's object database is opened with the folder of packs, not with a repository. It therefore
reads only packs, verifies each object by its id, and ignores configuration and alternates. Loose
objects are read here, because libgit2 never stops reading a truncated file.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, Literal, TypeAlias, TypeVar

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    open_below,
    read_small,
)

if TYPE_CHECKING:
    from pygit2 import Odb

ObjectKind: TypeAlias = Literal["commit", "tree", "blob", "tag"]

_HEADER: Final = re.compile(rb"(commit|tree|blob|tag) (\d{1,18})\0")
_KINDS: Final[dict[int, ObjectKind]] = {1: "commit", 2: "tree", 3: "blob", 4: "tag"}
_LOOSE_KINDS: Final = {kind.encode(): kind for kind in _KINDS.values()}
_HEADER_BYTES = 64
_PIECE_BYTES = 64 * 1024
_FOLDER_NAME: Final = re.compile(r"[0-9a-f]{2}")


class LooseObjectDamaged(Exception):
    """The bytes of a loose object are not a valid object with the id in its file name."""


class LooseObjects:
    """The loose objects in a folder, which is absolute and resolved.

    Attributes:
        ids: the ids of the objects that existed at the last scan.

    Raises:
        ListingFailed: the folder contains a link, or cannot be listed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ids = self._list_ids()

    def scan(self) -> None:
        """Scan again for objects written since the last scan."""
        self.ids = self._list_ids()

    def read_header(self, oid: str) -> tuple[ObjectKind, int]:
        """Return an object's kind and its size in bytes.

        Raises:
            LooseObjectDamaged, OSError: the content does not match its name, or no longer exists.
        """
        with self._open(oid) as file:
            kind, size, _ = _read_header(zlib.decompressobj(), file)
        return kind, size

    def read(self, oid: str) -> bytes:
        """Return an object's content, verified by its id; errors as in read_header()."""
        with self._open(oid) as file:
            stream = zlib.decompressobj()
            kind, size, first = _read_header(stream, file)
            content = bytearray(first)
            pending = stream.unconsumed_tail
            while len(content) <= size and not stream.eof:
                pending = pending or file.read(_PIECE_BYTES)
                if not pending:
                    break
                content += _inflate(stream, pending, size + 1 - len(content))
                pending = stream.unconsumed_tail
        header = b"%s %d\0" % (kind.encode(), size)
        if hashlib.sha1(header + content, usedforsecurity=False).hexdigest() != oid:
            raise LooseObjectDamaged
        return bytes(content)

    def _open(self, oid: str) -> BinaryIO:
        file = open_below(self._folder, [oid[:2], oid[2:]])
        if file is None:
            raise LooseObjectDamaged
        return file

    def _list_ids(self) -> set[str]:
        ids = set()
        waiting = [(self._folder, "")]
        if self._folder.is_symlink():
            raise self._build_link_error()
        while waiting:
            folder, name = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            raise self._build_link_error()
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((folder / entry.name, entry.name))
                        elif _FOLDER_NAME.fullmatch(name) and len(entry.name) == 38:  # noqa: PLR2004
                            ids.add(name + entry.name)
            except FileNotFoundError:
                continue  # `git gc` removed the folder in the meantime.
            except OSError as error:
                raise ListingFailed(
                    f"{str(self._folder)!r} cannot be listed: {error.strerror}"
                ) from error
        return ids

    def _build_link_error(self) -> ListingFailed:
        return ListingFailed(
            f"a link is among the objects in {str(self._folder)!r}",
            hint="replace the link with a copy of the file or folder that it points to",
        )


def _read_header(stream: zlib._Decompress, file: BinaryIO) -> tuple[ObjectKind, int, bytes]:
    """Return an object's kind, its size in bytes, and the first bytes of its content."""
    head = _inflate(stream, file.read(_PIECE_BYTES), _HEADER_BYTES)
    match = _HEADER.match(head)
    if match is None:
        raise LooseObjectDamaged
    return _LOOSE_KINDS[match[1]], int(match[2]), head[match.end() :]


def _inflate(stream: zlib._Decompress, packed: bytes, most: int) -> bytes:
    try:
        return stream.decompress(packed, most)
    except zlib.error as error:
        raise LooseObjectDamaged from error


_Read = TypeVar("_Read")
_MAX_META_BYTES = 64 << 20
_MAX_ALTERNATES_BYTES = 64 * 1024
_MAX_TAGS = 10
_HINT = "run `git fsck` to list damaged objects, and `git fetch --refetch` to fetch them again"


class Objects:
    """The objects in a repository, which must not borrow objects from other repositories.

    Methods raise ListingFailed if an object is missing, damaged, too large or of a different kind.
    """

    def __init__(self, folders: RepositoryFolders) -> None:
        self._folder = folders.common / "objects"
        self._packs: Odb | None = None
        # Other people may read the objects that a repository borrows.
        if read_small(folders.common, ["objects", "info", "alternates"], _MAX_ALTERNATES_BYTES):
            raise ListingFailed(
                f"the repository in {str(folders.common)!r} borrows objects from a different"
                " repository (alternates), which is not supported",
                hint="run `git repack -a -d`, then delete objects/info/alternates",
            )
        self._loose = LooseObjects(self._folder)

    def read_size(self, oid: str, kind: ObjectKind) -> int:
        """Return the size of an object in bytes, without unpacking the object."""
        found_kind, size = self._read_object_header(oid, kind)
        if found_kind != kind:
            raise ListingFailed(f"the object {oid} is not a {kind}", hint=_HINT)
        return size

    def read(self, oid: str, kind: ObjectKind) -> bytes:
        """Return the content of an object, verified by its id."""
        size = self.read_size(oid, kind)
        if kind != "blob" and size > _MAX_META_BYTES:
            raise ListingFailed(
                f"the {kind} {oid} is larger than the limit of {_MAX_META_BYTES:,} bytes"
            )
        return self.read_sized(oid, kind)

    def read_sized(self, oid: str, kind: ObjectKind) -> bytes:
        """Return the content of an object after read_size() has verified its kind and size."""

        def read_content() -> bytes:
            if oid in self._loose.ids:
                return self._loose.read(oid)
            return self._open_packs().read(oid)[1]

        return self._read_with_retry(oid, kind, read_content)

    def resolve_commit(self, oid: str) -> str:
        """Return the id of a commit from its own id, or from the id of a tag."""
        for _ in range(_MAX_TAGS):
            kind = self._read_object_header(oid, "commit")[0]
            if kind == "commit":
                return oid
            if kind != "tag":
                break
            oid = _read_header_line(self.read(oid, "tag"), b"object")
        raise ListingFailed(
            f"the object {oid} is not a commit", hint="set ref to a branch, a tag or a commit"
        )

    def read_tree_id(self, commit: str) -> str:
        """Return the id of a commit's tree."""
        return _read_header_line(self.read(commit, "commit"), b"tree")

    def expand_id(self, prefix: str) -> str | None:
        """Return the id with this prefix; None if no id or more than one id has it."""
        ids = {oid for oid in self._loose.ids if oid.startswith(prefix)}
        for backend in self._open_packs().backends:
            try:
                ids.add(str(backend.exists_prefix(prefix)))
            except KeyError:
                continue
            except ValueError:
                return None
        return ids.pop() if len(ids) == 1 else None

    def _read_object_header(self, oid: str, kind: ObjectKind) -> tuple[ObjectKind | None, int]:
        """Return an object's kind, or None for an unknown kind, and its size in bytes."""

        def read_header() -> tuple[ObjectKind | None, int]:
            if oid in self._loose.ids:
                return self._loose.read_header(oid)
            kind_number, size = self._open_packs().read_header(oid)
            return _KINDS.get(int(kind_number)), int(size)

        return self._read_with_retry(oid, kind, read_header)

    def _read_with_retry(
        self, oid: str, kind: ObjectKind, read: Callable[[], _Read], *, is_retry: bool = False
    ) -> _Read:
        """Return the result of a read; read again if the object was being written or packed."""
        try:
            return read()
        except Exception as error:
            is_missing = isinstance(error, (KeyError, FileNotFoundError))
            if is_retry or not is_missing:
                reason = "missing" if is_missing else "damaged"
                raise ListingFailed(f"the {kind} {oid} is {reason}", hint=_HINT) from error
        self._loose.scan()
        return self._read_with_retry(oid, kind, read, is_retry=True)

    def _open_packs(self) -> Odb:
        if self._packs is None:
            import pygit2

            packs = pygit2.Odb()
            packs.add_backend(pygit2.OdbBackendPack(str(self._folder)), 1)
            self._packs = packs
        return self._packs


def _read_header_line(content: bytes, name: bytes) -> str:
    for line in content.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key == name:
            return value.decode("ascii", "replace")
        if not line:
            break
    raise ListingFailed(f"a commit or tag has no line {name.decode()!r}", hint=_HINT)


REGULAR: Final = frozenset({0o100644, 0o100755, 0o100664})
LINK: Final = 0o120000
SUBMODULE: Final = 0o160000
_FOLDER_MODE: Final = 0o040000
MAX_PATH_BYTES = 4_096
_MAX_FILES = 2_000_000
_MAX_NAME_BYTES = 512 << 20
"""Maximum size in bytes of all paths of a tree together."""
_Entry: TypeAlias = tuple[int, bytes, str]
"""Mode, name and id."""
_UNUSABLE: Final = frozenset({b"", b".", b".."})


@dataclass(frozen=True, slots=True)
class TreeFile:
    """A file, link or submodule (see its mode) in a tree, with the id of its blob or commit."""

    mode: int
    oid: str


def list_files(objects: Objects, tree: str) -> dict[str, TreeFile]:
    """Return all files in a tree by path, without names that a worktree must not contain.

    Raises:
        ListingFailed: a tree is missing or damaged, or there are more files than any project has.
    """
    trees = _read_trees(objects, tree)
    files: dict[str, TreeFile] = {}
    waiting = [(b"", tree)]
    while waiting:
        folder, oid = waiting.pop()
        for mode, name, entry in trees[oid]:
            path = folder + name
            if len(path) > MAX_PATH_BYTES:
                continue
            if mode == _FOLDER_MODE:
                waiting.append((path + b"/", entry))
            else:
                files[path.decode("utf-8", "surrogateescape")] = TreeFile(mode, entry)
    return files


def _read_trees(objects: Objects, tree: str) -> dict[str, list[_Entry]]:
    """Return the usable entries of a tree and of all trees below it, by tree id.

    Each tree is read once. The paths are counted before any is built: if ten trees each contain the
    next one ten times, they have ten billion paths.
    """
    trees: dict[str, list[_Entry]] = {}
    sizes: dict[str, tuple[int, int]] = {}
    waiting, entries = [tree], 0
    while waiting:
        oid = waiting[-1]
        if oid in trees:
            waiting.pop()
            sizes[oid] = _count_paths(trees[oid], sizes)
        else:
            trees[oid] = [*filter(_is_usable, _parse_entries(objects.read(oid, "tree"), oid))]
            entries += len(trees[oid])
            below = {entry for mode, _, entry in trees[oid] if mode == _FOLDER_MODE}
            if any(entry in trees and entry not in sizes for entry in below):
                raise _build_damaged_tree_error(oid)
            waiting += [entry for entry in below if entry not in sizes]
        paths, name_bytes = sizes.get(oid, (entries, 0))
        if paths > _MAX_FILES or name_bytes > _MAX_NAME_BYTES:
            raise ListingFailed(
                f"the tree {tree} contains more than {_MAX_FILES:,} files and folders, or its paths"
                f" have more than {_MAX_NAME_BYTES >> 20} MiB in total",
                hint="set ref to a commit with fewer files",
            )
    return trees


def _build_damaged_tree_error(tree: str) -> ListingFailed:
    return ListingFailed(
        f"the tree {tree} is damaged", hint="run `git fsck` to list damaged objects"
    )


def _count_paths(entries: list[_Entry], sizes: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Return the number and the total length of the paths below a tree.

    Args:
        sizes: the result for each subtree, by its id.
    """
    paths = name_bytes = 0
    for mode, name, oid in entries:
        below, bytes_below = sizes[oid] if mode == _FOLDER_MODE else (0, 0)
        paths += 1 + below
        name_bytes += (len(name) + 1) * (1 + below) + bytes_below
    return paths, name_bytes


def _is_usable(entry: _Entry) -> bool:
    """Return whether a worktree may contain a file with the name of an entry."""
    name = entry[1]
    return name not in _UNUSABLE and b"/" not in name and name.lower() != b".git"


def find_file(objects: Objects, tree: str, path: str) -> TreeFile | None:
    """Return one file of a tree, reading only the trees on its path; None if it is missing."""
    entry: TreeFile | None = TreeFile(_FOLDER_MODE, tree)
    for part in path.encode("utf-8", "surrogateescape").split(b"/"):
        if entry is None or entry.mode != _FOLDER_MODE:
            return None
        entries = _parse_entries(objects.read(entry.oid, "tree"), entry.oid)
        entry = next((TreeFile(mode, oid) for mode, name, oid in entries if name == part), None)
    return None if entry is None or entry.mode == _FOLDER_MODE else entry


def _parse_entries(content: bytes, tree: str) -> Iterator[_Entry]:
    at = 0
    while at < len(content):
        blank = content.find(b" ", at)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise _build_damaged_tree_error(tree)
        try:
            mode = int(content[at:blank], 8)
        except ValueError:
            raise _build_damaged_tree_error(tree) from None
        yield mode, content[blank + 1 : end], content[end + 1 : end + 21].hex()
        at = end + 21
