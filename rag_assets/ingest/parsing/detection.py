"""Detect the type of a document, from its content first, and then from its declared type.

Detection runs before a document's limits are set, so its cost must be bounded for any file.
The table of signatures is this project's own for two reasons. Libraries that detect hundreds of
formats return a media type, while an error message needs words. And an update of such a library
could change which documents are indexed.
"""

from __future__ import annotations

import codecs
import io
import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from rag_assets.common.errors import (
    DocumentEmpty,
    DocumentEncrypted,
    DocumentRejected,
    DocumentTooCostly,
    DocumentUnsupported,
)
from rag_assets.ingest.parsing.markdown import find_fence_opening, is_table_rule, parse_atx_heading
from rag_assets.ingest.parsing.media_types import (
    BINARY,
    DOCX,
    EML,
    HTML,
    MARKDOWN,
    OOXML,
    PDF,
    PICTURES,
    PLAIN,
    PPTX,
    SOURCE_CODE,
    SUFFIXES,
    TYPED_RECORD,
    XLSX,
    detect_picture_type,
)
from rag_assets.ingest.parsing.text import UTF8_MARK, UTF16_MARKS, split_lines


class Signature(NamedTuple):
    """Bytes at an offset, and the format that they identify, such as "a PNG picture"."""

    offset: int
    mark: bytes
    meaning: str


_PICTURE_HINT = (
    "save the picture as a PDF with recognized text; or ask the operator to set parser.ocr for the"
    " tenant, so that scanned PDFs are read, and in workspaces PNG, JPEG, TIFF and WebP pictures"
)
ARCHIVE_HINT = "unpack the archive: documents inside archives are not read"
_RTF_HINT = "save the document as DOCX or PDF"

# A mark that could also start a text counts only if the bytes are not text.
_SIGNATURES = (
    Signature(0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    Signature(0, b"\xff\xd8\xff", "a JPEG picture"),
    Signature(0, b"GIF87a", "a GIF picture"),
    Signature(0, b"GIF89a", "a GIF picture"),
    Signature(0, b"II*\0", "a TIFF picture"),
    Signature(0, b"MM\0*", "a TIFF picture"),
    Signature(0, b"BM", "a bitmap picture"),
    Signature(8, b"WEBP", "a WebP picture"),
    Signature(4, b"ftypavif", "an AVIF picture"),
    Signature(4, b"ftyphei", "a HEIC picture"),
    Signature(0, b"8BPS", "a Photoshop picture"),
    Signature(0, b"\0\0\x01\0", "an icon (picture)"),
    Signature(0, b"\x1f\x8b", "a gzip archive"),
    Signature(0, b"BZh", "a bzip2 archive"),
    Signature(0, b"\xfd7zXZ\0", "an xz archive"),
    Signature(0, b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    Signature(0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    Signature(0, b"Rar!\x1a\x07", "a RAR archive"),
    Signature(0, b"MSCF", "a cabinet archive"),
    Signature(257, b"ustar", "a tar archive"),
    Signature(0x8001, b"CD001", "a disc image (archive)"),
    Signature(0, b"\x7fELF", "a program"),
    Signature(0, b"MZ", "a Windows program"),
    Signature(0, b"\xfe\xed\xfa", "a macOS program"),
    Signature(0, b"\xcf\xfa\xed\xfe", "a macOS program"),
    Signature(0, b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    Signature(0, b"\0asm", "a WebAssembly program"),
    Signature(0, b"SQLite format 3\0", "an SQLite database"),
    Signature(0, b"PAR1", "a Parquet file"),
    Signature(0, b"ARROW1\0", "an Arrow file"),
    Signature(0, b"Obj\x01", "an Avro file"),
    Signature(0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    Signature(0, b"\x93NUMPY", "a NumPy array"),
    Signature(4, b"ftyp", "a video"),
    Signature(0, b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    Signature(8, b"AVI ", "a video"),
    Signature(8, b"WAVE", "a sound recording"),
    Signature(0, b"ID3", "a sound recording"),
    Signature(0, b"OggS", "a sound recording or video"),
    Signature(0, b"fLaC", "a sound recording"),
    Signature(0, b"wOFF", "a font"),
    Signature(0, b"wOF2", "a font"),
    Signature(0, b"OTTO\0", "a font"),
    Signature(0, b"\0\x01\0\0\0", "a font"),
    Signature(0, b"AT&TFORM", "a DjVu document"),
    Signature(60, b"BOOKMOBI", "a Kindle book"),
)
_TEXT_SIGNATURES = (
    Signature(0, b"{\\rtf", "a rich text document (RTF)"),
    Signature(0, b"%!PS", "a PostScript document"),
    Signature(0, b"AC10", "an AutoCAD drawing"),
    Signature(0, b"-----BEGIN PGP MESSAGE-----", "an encrypted message (PGP)"),
)


def detect_unsupported_format(data: bytes, *, is_text: bool) -> str | None:
    """Return the name of a format that no parser reads, such as "a PNG picture"; else None."""
    marks = _TEXT_SIGNATURES if is_text else (*_SIGNATURES, *_TEXT_SIGNATURES)
    return next((m.meaning for m in marks if data.startswith(m.mark, m.offset)), None)


def find_hint(meaning: str) -> str | None:
    """Return the remedy for a document in a format that no parser reads; None if unknown."""
    for word, hint in (
        ("picture", _PICTURE_HINT),
        ("archive", ARCHIVE_HINT),
        ("RTF", _RTF_HINT),
        ("PostScript", "save it as PDF"),
    ):
        if word in meaning:
            return hint
    return None


ZIP_MARKS = (b"PK\x03\x04", b"PK\x05\x06")
OLE2_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_CENTRAL_ENTRY = b"PK\x01\x02"
_MAX_ENTRIES = 20_000
_MAX_BYTES = 1 << 20
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


def iter_file_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield the bytes of a file from its start, piece by piece."""
    file.seek(0)
    while piece := file.read(_PIECE_BYTES):
        yield piece


def detect_zip_type(file: BinaryIO, media_type: str | None) -> str:
    """Return the media type of the main part of the Office document in a ZIP archive."""
    if _count_occurrences(file, _CENTRAL_ENTRY) > _MAX_ENTRIES:
        raise DocumentTooCostly(
            f"the archive has more than {_MAX_ENTRIES:,} entries", hint=ARCHIVE_HINT
        )
    try:
        with zipfile.ZipFile(file) as archive:
            kinds = list(_iter_main_types(archive))
            if not kinds:
                raise _build_unsupported_error(archive)
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, RuntimeError):
        raise DocumentRejected(
            "the ZIP archive or Office document is damaged or truncated",
            hint="copy the file again",
        ) from None
    return media_type if media_type is not None and media_type in kinds else kinds[0]


def detect_ole2_type(file: BinaryIO, media_type: str | None) -> str:
    """Return the Office format of an encrypted OLE2 file, as the document's source declares it."""
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


def _iter_main_types(archive: zipfile.ZipFile) -> Iterator[str]:
    # Without its NUL bytes, UTF-16 can be read like ASCII.
    content_types = _read_beginning(archive, "[Content_Types].xml").replace(b"\0", b"")
    for match in _MAIN_PART.finditer(content_types):
        name = match[1].lower()
        if _XLSB in name:
            raise DocumentUnsupported(
                "unsupported format: a binary Excel workbook (.xlsb)",
                hint="save the workbook as XLSX",
            )
        yield from (kind for mark, kind in _FAMILIES.items() if mark in name)


def _build_unsupported_error(archive: zipfile.ZipFile) -> DocumentRejected:
    mime_type = _read_beginning(archive, "mimetype")
    meanings = [
        *(meaning for mark, meaning in _MIME_TYPES.items() if mime_type.startswith(mark)),
        *(meaning for name, meaning in _ENTRIES.items() if name in archive.NameToInfo),
    ]
    if meanings:
        return DocumentUnsupported(f"unsupported format: {meanings[0]}", hint=_SAVE_AS)
    return DocumentUnsupported("unsupported format: a ZIP archive", hint=ARCHIVE_HINT)


def _read_beginning(archive: zipfile.ZipFile, name: str) -> bytes:
    """Return the first megabyte of an entry; b"" if it is missing, encrypted or not deflated."""
    entry = archive.NameToInfo.get(name)
    if entry is None or entry.flag_bits & _ENCRYPTED or entry.compress_type not in _READABLE:
        return b""
    with archive.open(entry) as stream:
        return stream.read(_MAX_BYTES)


def _has_stream(file: BinaryIO, name: str) -> bool:
    """Return whether an OLE2 file lists a stream of this name."""
    raw = name.encode("utf-16-le")
    return _count_occurrences(file, raw.ljust(64, b"\0") + struct.pack("<H", len(raw) + 2)) > 0


def _count_occurrences(file: BinaryIO, mark: bytes) -> int:
    """Return how often a byte sequence, which cannot overlap itself, occurs in a file."""
    count, before = 0, b""
    for piece in iter_file_pieces(file):
        joined = before + piece
        count += joined.count(mark)
        # Keep less than the whole mark, so that no mark is counted twice.
        before = joined[-(len(mark) - 1) :]
    return count


_TEXT_HEAD_BYTES = 64 * 1024
_HTML = re.compile(rb"<(?:!doctype\s+html|html|head)[\s>]", re.IGNORECASE)
_MARKUP_BEFORE = ((b"<!--", b"-->"), (b"<?", b"?>"))
_MAX_MARKUP_BEFORE = 20
_HEADER = re.compile(rb"([A-Za-z][A-Za-z0-9-]{0,60}):|[ \t]")
_MAIL_NEEDS = (
    {b"from"},
    {b"date", b"subject", b"to"},
    # Only mail programs write these headers; a memo in a text file may have the others.
    {b"message-id", b"mime-version", b"received", b"return-path", b"delivered-to"},
)
_MARKDOWN_LINES = 500
_FRONT_MATTER = "---"
_LINK = re.compile(r"\]\((?:https?://|\.{0,2}/|#)")


def looks_like_html(data: bytes) -> bool:
    """Return whether a document starts like HTML, after comments and XML declarations."""
    text = _reduce_to_ascii(data).lstrip()
    for _ in range(_MAX_MARKUP_BEFORE):
        ends = next((end for begin, end in _MARKUP_BEFORE if text.startswith(begin)), None)
        if ends is None:
            break
        text = text.partition(ends)[2].lstrip()
    return _HTML.match(text) is not None


def looks_like_mail(data: bytes) -> bool:
    """Return whether a document starts with the headers that a mail program writes."""
    names = set()
    for line in _reduce_to_ascii(data).lstrip().splitlines():
        header = _HEADER.match(line)
        if header is None:
            break
        names.add((header[1] or b"").lower())
    return all(names & headers for headers in _MAIL_NEEDS)


def guess_text_type(data: bytes) -> str:
    """Return the type Markdown if one of the first lines has typical Markdown, else plain text."""
    encoding = "utf-16" if data.startswith(UTF16_MARKS) else "utf-8-sig"
    text = data[:_TEXT_HEAD_BYTES].decode(encoding, "replace")
    for number, line in zip(range(_MARKDOWN_LINES), split_lines(text), strict=False):
        if (
            (number == 0 and line.text.rstrip() == _FRONT_MATTER)
            or ((heading := parse_atx_heading(line.text)) is not None and heading[1])
            or find_fence_opening(line.text)
            or is_table_rule(line.text)
            or _LINK.search(line.text)
        ):
            return MARKDOWN
    return PLAIN


def _reduce_to_ascii(data: bytes) -> bytes:
    """Return the start of a document with each ASCII character as one byte, even from UTF-16."""
    head = data[:_TEXT_HEAD_BYTES].removeprefix(UTF8_MARK)
    if head.startswith(UTF16_MARKS):
        return head[2:].replace(b"\0", b"")
    return head


PDF_MARK = b"%PDF-"
_HEAD_BYTES = 1 << 20
_PDF_MARK_REACH_BYTES = 1024
_KNOWN_TYPES = frozenset({*SUFFIXES.values(), *SOURCE_CODE})


def detect(data: bytes, media_type: str | None = None) -> str:
    """Return the type of a document, which is a key of registry.PARSERS; see detect_file."""
    return detect_file(io.BytesIO(data), media_type)


def detect_file(file: BinaryIO, media_type: str | None = None) -> str:
    """Detect the type of a document in constant memory; return it as a key of registry.PARSERS.

    The type that the document's source declares decides among text formats, unless the document
    clearly starts as HTML or mail.

    Raises:
        DocumentRejected: the document is empty, or has a type that no parser reads; the message
            names the type.
    """
    if not any(piece.strip() for piece in iter_file_pieces(file)):
        raise DocumentEmpty("the document is empty")
    file.seek(0)
    data = file.read(_HEAD_BYTES)
    if declared_type := _find_type_of_record_or_picture(data, media_type):
        return declared_type
    declared = _normalize_declared_type(media_type)
    # The bytes before the mark tell a PDF that starts with some junk from a text about PDFs.
    if data.removeprefix(UTF8_MARK).lstrip().startswith(PDF_MARK):
        return PDF
    if data.startswith(ZIP_MARKS):
        return detect_zip_type(file, declared)
    if data.startswith(OLE2_MARK):
        return detect_ole2_type(file, declared)
    is_text = data.startswith(UTF16_MARKS) or _is_utf8(file)
    if PDF_MARK in data[:_PDF_MARK_REACH_BYTES] and (declared == PDF or not is_text):
        return PDF
    if meaning := detect_unsupported_format(data, is_text=is_text):
        raise DocumentUnsupported(f"unsupported format: {meaning}", hint=find_hint(meaning))
    return _choose_text_type(data, declared)


def _find_type_of_record_or_picture(data: bytes, media_type: str | None) -> str | None:
    """Return the declared type of a typed record, or the detected type of a declared picture.

    Return None for any other document.
    """
    if media_type == TYPED_RECORD:
        return TYPED_RECORD  # this project wrote the record itself
    # The declaration of a picture was already checked against its content.
    return detect_picture_type(data) if media_type in PICTURES else None


def _normalize_declared_type(media_type: str | None) -> str | None:
    """Return the declared type in lower case, without parameters; None if it is unknown."""
    bare = (media_type or "").partition(";")[0].strip().lower()
    return bare if bare in _KNOWN_TYPES else None


def _choose_text_type(data: bytes, declared: str | None) -> str:
    """Return the type of a document in a text format."""
    if declared in SOURCE_CODE and declared is not None:
        return declared
    if looks_like_html(data):
        return HTML
    if looks_like_mail(data):
        return EML
    if declared in BINARY and declared is not None:
        raise DocumentRejected(f"the document is not {BINARY[declared]}, although its name says so")
    return declared or guess_text_type(data)


def _is_utf8(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in iter_file_pieces(file):
            if b"\0" in piece:
                return False
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
