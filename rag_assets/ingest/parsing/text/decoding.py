"""Decode the bytes of a text document."""

from __future__ import annotations

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits

UTF8_MARK = b"\xef\xbb\xbf"
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_LATIN_1 = {0xDC00 + byte: chr(byte) for byte in range(0x80, 0x100)}
"""Maps the surrogates that surrogateescape creates for non-UTF-8 bytes to characters of Latin-1."""
_MOST_FOREIGN = 10
"""If more than one in this many characters is not UTF-8, the text is in another encoding."""


def decoded(data: bytes, limits: ParseLimits) -> str:
    """Decode a text, without its byte order mark.

    Raises:
        DocumentRejected: the text is neither UTF-8 nor UTF-16 with a byte order mark, or is
            empty or too long.
    """
    text = _utf16(data) if data.startswith(UTF16_MARKS) else _utf8(data)
    if not text.strip():
        raise DocumentEmpty("the document is empty")
    limits.check_characters(len(text))
    return text


def decoded_source(data: bytes, limits: ParseLimits) -> tuple[str, int]:
    """Decode a file of source code; single bytes that are not UTF-8 are read as Latin-1.

    Returns:
        The text, and the number of bytes read as Latin-1.

    Raises:
        DocumentRejected: as raised by decoded(), or more than a tenth of the file is in another
            encoding.
    """
    try:
        return decoded(data, limits), 0
    except DocumentRejected:
        if data.startswith(UTF16_MARKS) or b"\0" in data:
            raise
        text = data.decode("utf-8-sig", "surrogateescape")
        replaced = sum("\udc80" <= character <= "\udcff" for character in text)
        if not replaced or replaced * _MOST_FOREIGN > len(text):
            raise
    limits.check_characters(len(text))
    return text.translate(_LATIN_1), replaced


def _utf8(data: bytes) -> str:
    nul = data.find(b"\0")
    if nul >= 0:
        raise DocumentRejected(f"the document is not text: NUL byte at offset {nul:,}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start does not count the byte order mark that utf-8-sig removed.
        at = error.start + (len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0)
        raise DocumentRejected(
            f"the document is not UTF-8 text: invalid byte at offset {at:,}",
            hint="save the document as UTF-8",
        ) from None


def _utf16(data: bytes) -> str:
    """Decode UTF-16 with a byte order mark, the "Unicode text" of spreadsheets and old editors."""
    try:
        text = data.decode("utf-16")
    except UnicodeDecodeError as error:
        raise DocumentRejected(
            "the document is not UTF-16 text, although its byte order mark says so: error at offset"
            f" {error.start:,}",
            hint="save the document as UTF-8",
        ) from None
    if "\0" in text:
        raise DocumentRejected(
            "the document is not text: NUL character, although its byte order mark says UTF-16"
        )
    return text
