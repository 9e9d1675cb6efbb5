"""Detect Office documents among ZIP archives and OLE2 files.

Detection runs before a document's limits are set, so its cost must be bounded for any file.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from rag_assets.common.errors import (
    DocumentEncrypted,
    DocumentRejected,
    DocumentTooCostly,
    DocumentUnsupported,
)
from rag_assets.ingest.parsing.detection.signatures import ARCHIVE_HINT
from rag_assets.ingest.parsing.media_types import DOCX, OOXML, PPTX, XLSX

ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
OLE2_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_CENTRAL_ENTRY = b"PK\x01\x02"
_MOST_ENTRIES = 20_000
_MOST_BYTES = 1 << 20
_PIECE_BYTES = 1 << 17
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 1  # a flag of an entry in the archive
_MAIN_PART = re.compile(rb"application/vnd\.([\w.-]{1,80})\.main(?:\+xml)?[\"']", re.IGNORECASE)
_XLSB = b"ms-excel.sheet.binary"
_FAMILIES = {  # formats by a part of the main part's content type
    b"wordprocessingml": DOCX,
    b"ms-word": DOCX,
    b"presentationml": PPTX,
    b"ms-powerpoint": PPTX,
    b"spreadsheetml": XLSX,
    b"ms-excel": XLSX,
}
_MIME_TYPES = {  # formats by the start of the entry "mimetype"
    b"application/vnd.oasis.opendocument.text": "an OpenDocument text",
    b"application/vnd.oasis.opendocument.spreadsheet": "an OpenDocument spreadsheet",
    b"application/vnd.oasis.opendocument.presentation": "an OpenDocument presentation",
    b"application/vnd.oasis.opendocument": "an OpenDocument file",
    b"application/epub+zip": "an e-book (EPUB)",
}
_ENTRIES = {  # formats by an entry that no other kind of archive has
    "AndroidManifest.xml": "an Android program",
    "META-INF/MANIFEST.MF": "a Java archive",
    "Index/Document.iwa": "a Pages, Numbers or Keynote document",
    "visio/document.xml": "a Visio drawing",
}
_SAVE_AS = "save the document as DOCX, PPTX, XLSX or PDF"
_STREAMS = {  # formats by a stream that no other kind of OLE2 file has
    "__properties_version1.0": ("an Outlook message (.msg)", "save the message as EML"),
    "WordDocument": ("a Word document of the format before 2007", "save the document as DOCX"),
    "PowerPoint Document": (
        "a PowerPoint file of the format before 2007",
        "save the document as PPTX",
    ),
    "Workbook": ("an Excel workbook of the format before 2007", "save the workbook as XLSX"),
    "Book": ("an Excel workbook of the format before 2007", "save the workbook as XLSX"),
    "VisioDocument": ("a Visio drawing", "save the drawing as PDF"),
}


def pieces_of(file: BinaryIO) -> Iterator[bytes]:
    """Yield the content of a file from its start."""
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece


def type_of_zip(file: BinaryIO, media_type: str | None) -> str:
    """Return the Office format of a ZIP archive, by the content type of its main part.

    Args:
        file: the archive.
        media_type: the type that the document's source declares; it decides if there are
            several main parts.

    Raises:
        DocumentRejected: it is not an Office document, or is damaged.
    """
    if _count(file, _CENTRAL_ENTRY) > _MOST_ENTRIES:
        raise DocumentTooCostly(
            f"the archive has more than {_MOST_ENTRIES:,} entries", hint=ARCHIVE_HINT
        )
    try:
        with zipfile.ZipFile(file) as archive:
            kinds = list(_main_parts(archive))
            if not kinds:
                raise _no_document(archive)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError):
        raise DocumentRejected(
            "the ZIP archive or Office document is damaged or truncated",
            hint="copy the file again",
        ) from None
    return media_type if media_type is not None and media_type in kinds else kinds[0]


def type_of_ole2(file: BinaryIO, media_type: str | None) -> str:
    """Return the Office format of an encrypted OLE2 file, as the document's source declares it.

    Raises:
        DocumentRejected: the file has a format from before 2007, or its name does not show its
            format.
    """
    if _has_stream(file, "EncryptedPackage"):
        if media_type is not None and media_type in OOXML:
            return media_type
        raise DocumentEncrypted(
            "the encrypted Office document has a name that does not show its format",
            hint="rename the document so that it ends in .docx, .pptx or .xlsx",
        )
    for stream, (meaning, hint) in _STREAMS.items():
        if _has_stream(file, stream):
            raise DocumentUnsupported(f"unsupported format: {meaning}", hint=hint)
    raise DocumentUnsupported("unsupported format: an OLE2 file of an unknown kind", hint=_SAVE_AS)


def _main_parts(archive: zipfile.ZipFile) -> Iterator[str]:
    # Without its NUL bytes, UTF-16 can be read like ASCII.
    content_types = _beginning(archive, "[Content_Types].xml").replace(b"\0", b"")
    for found in _MAIN_PART.finditer(content_types):
        name = found[1].lower()
        if _XLSB in name:
            raise DocumentUnsupported(
                "unsupported format: a binary Excel workbook (.xlsb)",
                hint="save the workbook as XLSX",
            )
        yield from (kind for mark, kind in _FAMILIES.items() if mark in name)


def _no_document(archive: zipfile.ZipFile) -> DocumentRejected:
    mime_type = _beginning(archive, "mimetype")
    meanings = [
        *(meaning for mark, meaning in _MIME_TYPES.items() if mime_type.startswith(mark)),
        *(meaning for name, meaning in _ENTRIES.items() if name in archive.NameToInfo),
    ]
    if meanings:
        return DocumentUnsupported(f"unsupported format: {meanings[0]}", hint=_SAVE_AS)
    return DocumentUnsupported("unsupported format: a ZIP archive", hint=ARCHIVE_HINT)


def _beginning(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the first megabyte of an entry; b"" if it is missing, encrypted or not deflated."""
    entry = archive.NameToInfo.get(name)
    if entry is None or entry.flag_bits & _ENCRYPTED or entry.compress_type not in _READABLE:
        return b""
    with archive.open(entry) as stream:
        return stream.read(_MOST_BYTES)


def _has_stream(file: BinaryIO, name: str) -> bool:
    """Return whether an OLE2 file lists a stream: its name, padded to 64 bytes, and its length."""
    raw = name.encode("utf-16-le")
    return _count(file, raw.ljust(64, b"\0") + struct.pack("<H", len(raw) + 2)) > 0


def _count(file: BinaryIO, mark: bytes) -> int:
    """Return how often a byte mark, which cannot overlap itself, occurs in a file."""
    count, before = 0, b""
    for piece in pieces_of(file):
        joined = before + piece
        count += joined.count(mark)
        # Keep less than the whole mark, so that no mark is counted twice.
        before = joined[-(len(mark) - 1) :]
    return count
