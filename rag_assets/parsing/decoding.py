"""Bytes of a text document → its characters."""

from __future__ import annotations

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.limits import ParseLimits

_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ARCHIVE_MARK = b"PK\x03\x04"


def decoded(data: bytes, limits: ParseLimits) -> str:
    """The text without its byte order mark: it is no part of the text, and nobody can cite it.

    Raises:
        DocumentRejected: it is no UTF-8 text, empty, or too long.
    """
    if data.startswith(_ARCHIVE_MARK):
        raise DocumentRejected("it is not text but a ZIP archive or an Office document")
    if data.startswith(_UTF16_MARKS):
        raise DocumentRejected("it is not UTF-8 text but UTF-16", hint="save it as UTF-8")
    nul = data.find(b"\0")
    if nul >= 0:
        raise DocumentRejected(f"it is not text: NUL byte at offset {nul:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start does not count the mark that utf-8-sig took off.
        at = error.start + (len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0)
        raise DocumentRejected(
            f"it is not UTF-8 text: invalid byte at offset {at:,}", hint="save it as UTF-8"
        ) from None
    if not text.strip():
        raise DocumentRejected("it is empty")
    limits.check_characters(len(text))
    return text
