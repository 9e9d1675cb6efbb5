"""The index of a worktree: the tracked files, and their state when git last looked at them."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from rag_assets.common.errors import ListingFailed
from rag_assets.systems.code_memory.sources.repositories.folders import read_small

_MAX_BYTES = 512 << 20
_FACTS: Final = struct.Struct(">10I20sH")
_EXTENDED, _SKIP_WORKTREE, _INTENT_TO_ADD = 0x4000, 0x4000, 0x2000
_FOLDER: Final = 0o040000
_WORD = 0xFFFFFFFF
_HINT = "delete the file `index` in that folder, then run `git reset` in the worktree"


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A tracked file.

    Attributes:
        mode, oid: as in a Git tree; the content of a file with intent to add is unknown.
        skipped: whether it is left out of the worktree on purpose (a sparse checkout).
        mtime, ctime: seconds and nanoseconds, as git stores them.
        settled: whether git knows its content, because it is not in conflict and not merely added
            by intent.
    """

    mode: int
    oid: str
    skipped: bool
    settled: bool
    mtime: tuple[int, int]
    ctime: tuple[int, int]
    inode: int
    size: int

    def describes(self, facts: os.stat_result, written: tuple[int, int]) -> bool:
        """Return whether a file is certainly unchanged since git last looked at it.

        Args:
            facts: the current facts of the file.
            written: when the index was written; a file that is as new as the index, or newer, may
                have changed unnoticed.
        """
        return (
            self.settled
            and self.mtime == _time(facts.st_mtime_ns)
            and self.ctime == _time(facts.st_ctime_ns)
            and self.inode == facts.st_ino & _WORD
            and self.size == facts.st_size & _WORD
            and self.mtime < written
        )


@dataclass(frozen=True, slots=True)
class Index:
    """The tracked files.

    Attributes:
        entries: the entries, by path.
        written: when the index was written, in seconds and nanoseconds.
        skipped_folders: paths, with a final slash, of folders left out of the worktree entirely.
    """

    entries: Mapping[str, IndexEntry] = field(default_factory=dict)
    written: tuple[int, int] = (0, 0)
    skipped_folders: tuple[str, ...] = ()

    def is_skipped(self, path: str) -> bool:
        """Return whether a file is left out of the worktree on purpose."""
        entry = self.entries.get(path)
        if entry is not None:
            return entry.skipped
        return bool(self.skipped_folders) and path.startswith(self.skipped_folders)


def read_index(own: Path) -> Index | None:
    """Return the index of a worktree.

    Args:
        own: the folder that contains the index.

    Returns:
        None if it is missing, or split over several files: then the state of files is unknown.

    Raises:
        ListingFailed: it is damaged.
    """
    try:
        # Take the time before reading: if the file is replaced now, fewer entries count as
        # unchanged.
        written = _time((own / "index").lstat().st_mtime_ns)
    except FileNotFoundError:
        return None
    content = read_small(own, ["index"], _MAX_BYTES)
    if content is None:
        return None
    try:
        return _parse_index(content, written)
    except (struct.error, IndexError, ValueError) as error:
        raise ListingFailed(f"the git index in {str(own)!r} is damaged", hint=_HINT) from error


def _parse_index(content: bytes, written: tuple[int, int]) -> Index | None:
    signature, version, count = struct.unpack_from(">4sII", content)
    if signature != b"DIRC" or version not in (2, 3, 4):
        raise ValueError
    at, path = 12, b""
    entries: dict[str, IndexEntry] = {}
    skipped = []
    for _ in range(count):
        facts = _FACTS.unpack_from(content, at)
        flags = facts[-1]
        more = 0
        end = at + _FACTS.size
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
        if facts[6] == _FOLDER:
            skipped.append(name)
        else:
            entries[name] = _entry(facts, flags, more)
    return None if _is_split(content, at) else Index(entries, written, tuple(skipped))


def _entry(facts: tuple[Any, ...], flags: int, more: int) -> IndexEntry:
    return IndexEntry(
        mode=facts[6],
        oid=facts[10].hex(),
        skipped=bool(more & _SKIP_WORKTREE),
        settled=not flags & 0x3000 and not more & _INTENT_TO_ADD,
        mtime=(facts[2], facts[3]),
        ctime=(facts[0], facts[1]),
        inode=facts[5],
        size=facts[9],
    )


def _is_split(content: bytes, at: int) -> bool:
    """Return whether an extension refers to entries in a different file."""
    while at + 8 <= len(content) - 20:
        signature, size = struct.unpack_from(">4sI", content, at)
        if signature == b"link":
            return True
        at += 8 + size
    return False


def _read_number(content: bytes, at: int) -> tuple[int, int]:
    """Return a number that is stored in a variable number of bytes, and the position after it."""
    byte = content[at]
    value = byte & 0x7F
    while byte & 0x80:
        at += 1
        byte = content[at]
        value = ((value + 1) << 7) | (byte & 0x7F)
    return value, at + 1


def _time(nanoseconds: int) -> tuple[int, int]:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return seconds & _WORD, rest
