"""Loose objects, each of which is stored in a separate file.

They are read here and not by libgit2, because libgit2 never stops reading a truncated file.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal, TypeAlias

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.disk import open_below, open_regular

ObjectKind: TypeAlias = Literal["commit", "tree", "blob", "tag"]

_HEADER: Final = re.compile(rb"(commit|tree|blob|tag) (\d{1,18})\0")
_KINDS: Final[dict[bytes, ObjectKind]] = {
    b"commit": "commit",
    b"tree": "tree",
    b"blob": "blob",
    b"tag": "tag",
}
_HEADER_BYTES = 64
_PIECE_BYTES = 64 * 1024
_FOLDER: Final = re.compile(r"[0-9a-f]{2}")


class LooseDamaged(Exception):
    """The content of a loose object does not match its name."""


@dataclass(frozen=True, slots=True)
class LooseObject:
    """A loose object.

    Attributes:
        content: the part of the content that was read.
        size: bytes of the whole content.
    """

    kind: ObjectKind
    size: int
    content: bytes


class LooseObjects:
    """The loose objects of a repository.

    Args:
        folder: the folder of its objects; absolute and resolved.

    Raises:
        ListingFailed: a link is among them, or they cannot be listed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ids = self._scan()

    def holds(self, oid: str) -> bool:
        """Return whether the object existed at the last scan of the folder."""
        return oid in self._ids

    def look_again(self) -> None:
        """Scan again for objects written since the last scan."""
        self._ids = self._scan()

    def beginning_with(self, prefix: str) -> list[str]:
        """Return the ids that start with this prefix."""
        return [oid for oid in self._ids if oid.startswith(prefix)]

    def header(self, oid: str) -> LooseObject:
        """Return an object's kind and size.

        Raises:
            LooseDamaged: it does not match its name.
            OSError: it is gone.
        """
        with self._open(oid) as file:
            return _read_header(zlib.decompressobj(), file)[0]

    def read(self, oid: str) -> LooseObject:
        """Return an object, verified by its id; errors as in header()."""
        with self._open(oid) as file:
            stream = zlib.decompressobj()
            found, pending = _read_header(stream, file)
            content = bytearray(found.content)
            while len(content) <= found.size and not stream.eof:
                pending = pending or file.read(_PIECE_BYTES)
                if not pending:
                    break
                content += _inflate(stream, pending, found.size + 1 - len(content))
                pending = stream.unconsumed_tail
        header = b"%s %d\0" % (found.kind.encode(), found.size)
        digest = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
        if digest != oid:
            raise LooseDamaged
        return LooseObject(found.kind, found.size, bytes(content))

    def _open(self, oid: str) -> BinaryIO:
        folder = open_below(None, [*self._folder.parts, oid[:2]])
        try:
            descriptor = open_regular(oid[2:], folder)
        finally:
            os.close(folder)
        if descriptor is None:
            raise LooseDamaged
        return os.fdopen(descriptor, "rb")

    def _scan(self) -> set[str]:
        found = set()
        waiting = [(self._folder, "")]
        if self._folder.is_symlink():
            raise self._link_error()
        while waiting:
            folder, name = waiting.pop()
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        if entry.is_symlink():
                            raise self._link_error()
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((folder / entry.name, entry.name))
                        elif _FOLDER.fullmatch(name) and len(entry.name) == 38:  # noqa: PLR2004
                            found.add(name + entry.name)
            except FileNotFoundError:
                continue  # `git gc` removed the folder in the meantime.
            except OSError as error:
                raise ListingFailed(
                    f"{str(self._folder)!r} cannot be listed: {error.strerror}"
                ) from error
        return found

    def _link_error(self) -> ListingFailed:
        return ListingFailed(
            f"a link is among the objects in {str(self._folder)!r}",
            hint="replace the link with a copy of the file or folder that it points to",
        )


def _read_header(stream: zlib._Decompress, file: BinaryIO) -> tuple[LooseObject, bytes]:
    """Return the header, with the content unpacked so far, and the packed data that remain."""
    begun = _inflate(stream, file.read(_PIECE_BYTES), _HEADER_BYTES)
    found = _HEADER.match(begun)
    if found is None:
        raise LooseDamaged
    rest = LooseObject(_KINDS[found[1]], int(found[2]), begun[found.end() :])
    return rest, stream.unconsumed_tail


def _inflate(stream: zlib._Decompress, packed: bytes, most: int) -> bytes:
    try:
        return stream.decompress(packed, most)
    except zlib.error as error:
        raise LooseDamaged from error
