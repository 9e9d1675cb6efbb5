"""The worktree of a repository: its index, the files that may be indexed, and their content."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.disk import FolderIdentity, open_subfolder
from rag_assets.ingest.sources.globs import MAX_GITIGNORE_BYTES, compile_gitignore
from rag_assets.ingest.sources.walk import Selection, walk_root
from rag_assets.systems.code_memory.sources.repositories.attributes import (
    MAX_ATTRIBUTES_BYTES,
    Attributes,
    compute_blob_id,
    convert_content,
)
from rag_assets.systems.code_memory.sources.repositories.folders import (
    RepositoryFolders,
    open_below,
    read_small,
)
from rag_assets.systems.code_memory.sources.repositories.objects import (
    LINK,
    REGULAR,
    Objects,
    TreeFile,
)

_MAX_BYTES = 512 << 20
_ENTRY_STRUCT: Final = struct.Struct(">10I20sH")
_EXTENDED, _SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x4000, 0x2000
_FOLDER_MODE: Final = 0o040000
_WORD_MASK = 0xFFFFFFFF
_HINT = "delete the file `index` in that folder, then run `git reset` in the worktree"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A tracked file in git's index, with its mode and id as in a Git tree.

    Attributes:
        skipped: whether it is left out of the worktree on purpose (a sparse checkout).
        mtime, ctime: seconds and nanoseconds, as git stores them.
        settled: whether git knows its content: not if the file is in conflict or only marked with
            intent to add.
    """

    mode: int
    oid: str
    skipped: bool
    settled: bool
    mtime: tuple[int, int]
    ctime: tuple[int, int]
    inode: int
    size: int

    def is_unchanged(self, file_stat: os.stat_result, written_at: tuple[int, int]) -> bool:
        """Return whether a file with this metadata is unchanged since git last looked at it.

        A file that is as new as the index, which was written at `written_at`, may have changed
        unnoticed.
        """
        return (
            self.settled
            and self.mtime == _split_time(file_stat.st_mtime_ns)
            and self.ctime == _split_time(file_stat.st_ctime_ns)
            and self.inode == file_stat.st_ino & _WORD_MASK
            and self.size == file_stat.st_size & _WORD_MASK
            and self.mtime < written_at
        )


@dataclass(frozen=True, slots=True)
class GitIndex:
    """The index of a worktree: its tracked files by path.

    Attributes:
        written: when the index was written, in seconds and nanoseconds.
        skipped_folders: paths, with a final slash, of folders left out of the worktree entirely.
    """

    entries: Mapping[str, IndexEntry]
    written: tuple[int, int]
    skipped_folders: tuple[str, ...]

    def is_skipped(self, path: str) -> bool:
        """Return whether a sparse checkout leaves a file out of the worktree."""
        entry = self.entries.get(path)
        if entry is not None:
            return entry.skipped
        return bool(self.skipped_folders) and path.startswith(self.skipped_folders)


def read_index(own: Path) -> GitIndex | None:
    """Return git's index in a folder; None if it is missing or split over several files."""
    try:
        # Take the time before reading: if the file is replaced now, fewer entries count as
        # unchanged.
        written_at = _split_time((own / "index").lstat().st_mtime_ns)
    except FileNotFoundError:
        return None
    content = read_small(own, ["index"], _MAX_BYTES)
    if content is None:
        return None
    try:
        return _parse_index(content, written_at)
    except (struct.error, IndexError, ValueError) as error:
        raise ListingFailed(f"the git index in {str(own)!r} is damaged", hint=_HINT) from error


def _parse_index(content: bytes, written_at: tuple[int, int]) -> GitIndex | None:
    signature, version, count = struct.unpack_from(">4sII", content)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError
    at, path = 12, b""
    entries: dict[str, IndexEntry] = {}
    skipped = []
    for _ in range(count):
        fields = _ENTRY_STRUCT.unpack_from(content, at)
        flags = fields[-1]
        more = 0
        end = at + _ENTRY_STRUCT.size
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", content, end)
            end += 2
        if version == 4:  # noqa: PLR2004
            stripped, end = _read_number(content, end)
            stop = content.index(b"\0", end)
            path = path[: len(path) - stripped] + content[end:stop]
            at = stop + 1
        else:
            stop = content.index(b"\0", end)
            path = content[end:stop]
            at += (stop - at + 8) // 8 * 8
        name = path.decode("utf-8", "surrogateescape")
        if fields[6] == _FOLDER_MODE:
            skipped.append(name)
        else:
            entries[name] = IndexEntry(
                mode=fields[6],
                oid=fields[10].hex(),
                skipped=bool(more & _SKIP_WORKTREE),
                settled=not flags & 0x3000 and not more & _INTENT_TO_ADD,
                mtime=(fields[2], fields[3]),
                ctime=(fields[0], fields[1]),
                inode=fields[5],
                size=fields[9],
            )
    return None if _is_split(content, at) else GitIndex(entries, written_at, tuple(skipped))


def _is_split(content: bytes, at: int) -> bool:
    """Return whether the index is split, so that another file contains some of its entries."""
    while at + 8 <= len(content) - 20:
        signature, size = struct.unpack_from(">4sI", content, at)
        if signature == b"link":
            return True
        at += 8 + size
    return False


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number with a variable number of bytes, and the offset after it."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _split_time(nanoseconds: int) -> tuple[int, int]:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return seconds & _WORD_MASK, rest


_NEW_FILE_MODE = 0o100644


@dataclass(frozen=True, slots=True)
class WorktreeFile:
    """A file of the worktree that may be indexed.

    Attributes:
        mode: the file mode, as in a Git tree.
        file_stat: its metadata; None for links, submodules, and files that a sparse checkout omits.
        committed: the file at this path in the commit, if any.
        tracked: its entry in the index of git, if it is tracked.
    """

    path: str
    mode: int
    file_stat: os.stat_result | None
    committed: TreeFile | None
    tracked: IndexEntry | None


@dataclass(frozen=True, slots=True)
class StoredContent:
    """The content of a file as git stores it.

    Attributes:
        blob: id of the commit's blob with this content; None if the commit has no such blob.
        is_certain: whether git itself guarantees that the file is unchanged.
    """

    content: bytes
    blob: str | None
    is_certain: bool


class StoredContents:
    """Converts worktree files as git does, and compares them with their committed content.

    Args:
        autocrlf: core.autocrlf, in lower case.
        links: core.symlinks: whether links are stored as links and not as files.
    """

    def __init__(
        self, objects: Objects, attributes: Attributes, autocrlf: str, *, links: bool
    ) -> None:
        self.links = links
        self.objects = objects
        self.attributes = attributes
        self._autocrlf = autocrlf

    def convert(self, path: str, content: bytes, committed: TreeFile | None) -> StoredContent:
        """Return a file's content as git would store it, and the commit's blob if it is equal."""
        oid = committed.oid if committed is not None and committed.mode in REGULAR else None
        if oid is not None and compute_blob_id(content) == oid:
            return StoredContent(content, oid, is_certain=False)

        def read_blob() -> bytes | None:
            return None if oid is None else self.objects.read(oid, "blob")

        attributes = self.attributes.get(path)
        converted = convert_content(content, attributes, self._autocrlf, read_blob)
        is_same_blob = (
            oid is not None and converted != content and compute_blob_id(converted) == oid
        )
        return StoredContent(converted, oid if is_same_blob else None, is_certain=False)


class Worktree:
    """A worktree as it was at one moment, compared with the files of the checked-out commit.

    Attributes:
        folders: the root and the mount points below it; see walk_root.
        files: the files that may be indexed, by path.

    Raises:
        ListingFailed: its files cannot be listed, or its index is damaged.
    """

    def __init__(
        self, folders: RepositoryFolders, stored: StoredContents, committed: Mapping[str, TreeFile]
    ) -> None:
        self._root = folders.root
        self._stored = stored
        self._objects = stored.objects
        self._index = read_index(folders.own)
        self.attributes = stored.attributes
        self.folders: dict[str, FolderIdentity] = {}
        self.files = dict(self._list(folders, committed))

    def read(self, file: WorktreeFile, max_bytes: int) -> StoredContent | None:
        """Return a file's content; None if it has changed since the listing, or is too large."""
        committed, file_stat = file.committed, file.file_stat
        if committed is not None and self._is_clean(file):
            content = self._objects.read(committed.oid, "blob")
            return StoredContent(content, committed.oid, is_certain=True)
        if file_stat is None:
            return None
        raw_content = read_unchanged(self._root, file.path, file_stat, max_bytes)
        return (
            None if raw_content is None else self._stored.convert(file.path, raw_content, committed)
        )

    def get_size(self, file: WorktreeFile) -> int:
        """Return the size in bytes of a file's content, without reading the file."""
        if file.committed is not None and self._is_clean(file):
            return self._objects.read_size(file.committed.oid, "blob")
        return 0 if file.file_stat is None else file.file_stat.st_size

    def _is_clean(self, file: WorktreeFile) -> bool:
        committed, tracked = file.committed, file.tracked
        if committed is None or committed.mode not in REGULAR:
            return False
        if file.file_stat is None:
            return True  # The file is left out of the worktree on purpose.
        return (
            tracked is not None
            and self._index is not None
            and tracked.oid == committed.oid
            and tracked.is_unchanged(file.file_stat, self._index.written)
        )

    def _list(
        self, folders: RepositoryFolders, committed: Mapping[str, TreeFile]
    ) -> Iterator[tuple[str, WorktreeFile]]:
        index = self._index
        tracked: Mapping[str, TreeFile | IndexEntry] = committed if index is None else index.entries
        stats_by_path = dict(walk_root(folders.root, _build_selection(folders), self.folders))
        stats_by_path.update(
            _iter_file_metadata(folders.root, tracked.keys() - stats_by_path.keys())
        )
        paths = {*stats_by_path, *tracked}
        if index is not None and index.skipped_folders:
            paths.update(path for path in committed if index.is_skipped(path))
        for path in sorted(paths):
            entry = None if index is None else index.entries.get(path)
            tracked_file = tracked.get(path)
            file_stat = stats_by_path.get(path)
            mode = _NEW_FILE_MODE if tracked_file is None else tracked_file.mode
            if file_stat is None and mode in REGULAR and not (index and index.is_skipped(path)):
                continue  # The file was deleted.
            if file_stat is not None and mode not in REGULAR:
                if mode == LINK and not self._stored.links:
                    file_stat = None  # A link that is stored as a file, on a system without links.
                else:
                    mode = _NEW_FILE_MODE
            yield path, WorktreeFile(path, mode, file_stat, committed.get(path), entry)


def read_info_attributes(folders: RepositoryFolders) -> bytes | None:
    """Return the content of the file info/attributes; None if it is missing."""
    return read_small(folders.common, ["info", "attributes"], MAX_ATTRIBUTES_BYTES)


def read_unchanged(
    root: Path, path: str, file_stat: os.stat_result | None, max_bytes: int
) -> bytes | None:
    """Return a file's content; None if it is gone, has changed since listing, or is too large.

    Args:
        root: the top folder of the worktree, absolute and resolved.
        file_stat: the metadata as listed; None to accept any state of the file.
    """
    try:
        file = open_below(root, path.split("/"))
    except PermissionError as error:
        raise ListingFailed(
            f"no permission to read {path!r}",
            hint="give the user of the service the permission to read the file",
        ) from error
    except OSError:
        return None  # It was deleted, or a link has replaced it or a folder above it.
    if file is None:
        return None
    identity = None if file_stat is None else get_file_identity(file_stat)
    with file:
        if identity not in {None, get_file_identity(os.fstat(file.fileno()))}:
            return None
        content = file.read(max_bytes + 1)
        if identity not in {None, get_file_identity(os.fstat(file.fileno()))}:
            return None
    return content if len(content) <= max_bytes else None


def get_file_identity(file_stat: os.stat_result) -> tuple[int, int, int, int]:
    """Return metadata that identify the version of a file: any change alters one of them."""
    return file_stat.st_size, file_stat.st_mtime_ns, file_stat.st_ctime_ns, file_stat.st_ino


def _build_selection(folders: RepositoryFolders) -> Selection:
    content = read_small(folders.common, ["info", "exclude"], MAX_GITIGNORE_BYTES)
    try:
        ignored = compile_gitignore(content) if content else None
    except ValueError as error:
        raise ListingFailed(
            f"the repository's file info/exclude cannot be used: {error}", hint="shorten the file"
        ) from error
    plain = Selection.from_globs(("*",), (), gitignore=True)
    return replace(plain, ignored=ignored, repositories=False)


def _iter_file_metadata(root: Path, paths: Iterable[str]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the paths that are regular files, with their metadata; links are not followed."""
    by_folder: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        by_folder.setdefault(folder, []).append(name)
    for folder, names in by_folder.items():
        try:
            opened = open_subfolder(None, [*root.parts, *filter(None, folder.split("/"))])
        except PermissionError as error:
            raise ListingFailed(
                f"no permission to list the folder {folder!r}",
                hint="give the user of the service the permission to list the folder",
            ) from error
        except OSError:
            continue  # It was deleted, or a link has replaced it.
        try:
            for name in names:
                with suppress(OSError):
                    file_stat = os.stat(name, dir_fd=opened, follow_symlinks=False)
                    if stat.S_ISREG(file_stat.st_mode):
                        yield f"{folder}/{name}" if folder else name, file_stat
        finally:
            os.close(opened)
