"""ZIP archives of Office documents, read part by part within limits.

Only requested parts are inflated, into memory. Nothing is unpacked to disk, and other parts
(pictures, macros, embedded files, archives) are not read.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Self

from rag_assets.common.errors import DocumentEncrypted, DocumentRejected, DocumentTooCostly
from rag_assets.ingest.parsing.limits import ParseLimits

_MOST_PARTS = 20_000
_ENCRYPTED = 1  # a flag of an entry in the archive
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Repetitive sheets reach a ratio of 1:50, a ZIP bomb of zeros 1:1,030.
_HIGHEST_RATIO = 200
_RATIO_COUNTS_FROM = 16 * 1024**2
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


class Archive:
    """The parts of one archive; at most the declared size of each is read.

    Args:
        data: the archive.
        limits: bound the inflated size.

    Raises:
        DocumentRejected: the archive is damaged, encrypted, or too large when inflated.
    """

    def __init__(self, data: bytes, limits: ParseLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGE:
            raise _build_damage_error() from None
        self._limit = self._left = limits.expanded_bytes
        if len(self._zip.NameToInfo) > _MOST_PARTS:
            raise DocumentTooCostly(f"the document consists of more than {_MOST_PARTS:,} parts")
        # Some writers use different upper and lower case for a name; the format treats such names
        # as equal.
        self._names = {name.lower(): name for name in self._zip.NameToInfo}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._zip.close()

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def read(self, name: str) -> bytes:
        """Read one part; return no bytes if it is missing.

        Raises:
            DocumentRejected: the part is damaged, encrypted, or its compression ratio is too
                high.
        """
        entry = self._zip.NameToInfo.get(self._names.get(name.lower(), ""))
        if entry is None:
            return b""
        if entry.flag_bits & _ENCRYPTED:
            raise DocumentEncrypted(
                "a part of the document is encrypted", hint="store a copy without a password"
            )
        if entry.compress_type not in _READABLE:
            raise DocumentRejected("the document has a compression method that Office never uses")
        self._check_size(entry)
        try:
            # For any data, zipfile returns at most the size that was checked.
            return self._zip.read(entry)
        except _DAMAGE:
            raise _build_damage_error() from None

    def _check_size(self, entry: zipfile.ZipInfo) -> None:
        self._left -= entry.file_size
        if self._left < 0:
            raise DocumentTooCostly(
                f"the unpacked document is larger than the limit of {self._limit:,} bytes",
                hint="split the document",
            )
        if entry.file_size > max(_RATIO_COUNTS_FROM, _HIGHEST_RATIO * entry.compress_size):
            raise DocumentTooCostly("the document is packed like a ZIP bomb")


def _build_damage_error() -> DocumentRejected:
    return DocumentRejected(
        "the document is damaged or truncated: a part cannot be unpacked",
        hint="copy the file again",
    )
