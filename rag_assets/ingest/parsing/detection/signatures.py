"""Signatures of formats that no parser reads.

This project has its own table for two reasons. Libraries that detect hundreds of formats return a
media type where a person needs words. And a change to such a library would change what is indexed.
"""

from __future__ import annotations

from typing import NamedTuple


class Mark(NamedTuple):
    """Bytes at an offset, and the name of the format that they identify, with its article."""

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
_MARKS = (
    Mark(0, b"\x89PNG\r\n\x1a\n", "a PNG picture"),
    Mark(0, b"\xff\xd8\xff", "a JPEG picture"),
    Mark(0, b"GIF87a", "a GIF picture"),
    Mark(0, b"GIF89a", "a GIF picture"),
    Mark(0, b"II*\0", "a TIFF picture"),
    Mark(0, b"MM\0*", "a TIFF picture"),
    Mark(0, b"BM", "a bitmap picture"),
    Mark(8, b"WEBP", "a WebP picture"),
    Mark(4, b"ftypavif", "an AVIF picture"),
    Mark(4, b"ftyphei", "a HEIC picture"),
    Mark(0, b"8BPS", "a Photoshop picture"),
    Mark(0, b"\0\0\x01\0", "an icon (picture)"),
    Mark(0, b"\x1f\x8b", "a gzip archive"),
    Mark(0, b"BZh", "a bzip2 archive"),
    Mark(0, b"\xfd7zXZ\0", "an xz archive"),
    Mark(0, b"\x28\xb5\x2f\xfd", "a Zstandard archive"),
    Mark(0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    Mark(0, b"Rar!\x1a\x07", "a RAR archive"),
    Mark(0, b"MSCF", "a cabinet archive"),
    Mark(257, b"ustar", "a tar archive"),
    Mark(0x8001, b"CD001", "a disc image (archive)"),
    Mark(0, b"\x7fELF", "a program"),
    Mark(0, b"MZ", "a Windows program"),
    Mark(0, b"\xfe\xed\xfa", "a macOS program"),
    Mark(0, b"\xcf\xfa\xed\xfe", "a macOS program"),
    Mark(0, b"\xca\xfe\xba\xbe", "a Java class or a macOS program"),
    Mark(0, b"\0asm", "a WebAssembly program"),
    Mark(0, b"SQLite format 3\0", "an SQLite database"),
    Mark(0, b"PAR1", "a Parquet file"),
    Mark(0, b"ARROW1\0", "an Arrow file"),
    Mark(0, b"Obj\x01", "an Avro file"),
    Mark(0, b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    Mark(0, b"\x93NUMPY", "a NumPy array"),
    Mark(4, b"ftyp", "a video"),
    Mark(0, b"\x1aE\xdf\xa3", "a Matroska or WebM video"),
    Mark(8, b"AVI ", "a video"),
    Mark(8, b"WAVE", "a sound recording"),
    Mark(0, b"ID3", "a sound recording"),
    Mark(0, b"OggS", "a sound recording or video"),
    Mark(0, b"fLaC", "a sound recording"),
    Mark(0, b"wOFF", "a font"),
    Mark(0, b"wOF2", "a font"),
    Mark(0, b"OTTO\0", "a font"),
    Mark(0, b"\0\x01\0\0\0", "a font"),
    Mark(0, b"AT&TFORM", "a DjVu document"),
    Mark(60, b"BOOKMOBI", "a Kindle book"),
)
_TEXT_MARKS = (
    Mark(0, b"{\\rtf", "a rich text document (RTF)"),
    Mark(0, b"%!PS", "a PostScript document"),
    Mark(0, b"AC10", "an AutoCAD drawing"),
    Mark(0, b"-----BEGIN PGP MESSAGE-----", "an encrypted message (PGP)"),
)


def meaning_of(data: bytes, *, is_text: bool) -> str | None:
    """Name the format of bytes that no parser reads, as in "a PNG picture"; None if unknown.

    Args:
        data: the document.
        is_text: whether it decodes as text; then only text formats are considered.
    """
    marks = _TEXT_MARKS if is_text else (*_MARKS, *_TEXT_MARKS)
    return next((m.meaning for m in marks if data.startswith(m.mark, m.offset)), None)


def hint_for(meaning: str) -> str | None:
    """Return what a person can do about a format that no parser reads; None if unknown."""
    for word, hint in (
        ("picture", _PICTURE_HINT),
        ("archive", ARCHIVE_HINT),
        ("RTF", _RTF_HINT),
        ("PostScript", "save it as PDF"),
    ):
        if word in meaning:
            return hint
    return None
