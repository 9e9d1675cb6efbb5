"""Files of documentation: what kind they are, and their bytes."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

from rag_assets.common.errors import DocumentRejected, DocumentTooLarge, DocumentUnsupported
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import PARSERS
from rag_assets.ingest.parsing.text.decoding import UTF8_MARK, UTF16_MARKS

MAX_BYTES: Final = 5 * 1024 * 1024
"""Of a file that is read in this process."""

_NUL_WITHIN: Final = 8_192


def read_bytes(file: Path) -> bytes:
    """The bytes of a regular file.

    Raises:
        DocumentRejected: it is too large, no regular file, or cannot be read.
    """
    try:
        # A pipe in its place must not make us wait.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise DocumentUnsupported("it is no regular file")
            data = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise DocumentRejected(f"it cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise DocumentTooLarge(
            f"it is larger than {MAX_BYTES:,} bytes", hint="split it, or index it with Dagster"
        )
    return data


def parsed_text(path: str, data: bytes) -> tuple[ParsedText, int]:
    """The text of a file with its blocks, and the bytes before the text: a byte order mark.

    Args:
        path: of the file; its suffix tells the format.
        data: its bytes.

    Raises:
        DocumentRejected: it is empty, no UTF-8, or of another format.
    """
    kind = media_types.media_type_of(path) or media_types.PLAIN
    if kind not in media_types.SOURCE_TEXTS:
        raise DocumentUnsupported(
            "its format is not read here", hint="index it with Dagster, as a tenant"
        )
    if data.startswith(UTF16_MARKS):
        raise DocumentRejected("it is UTF-16 text", hint="save it as UTF-8")
    if b"\0" in data[:_NUL_WITHIN]:
        raise DocumentUnsupported("it is no text, but binary")
    parsed = PARSERS[kind].function()(data, kind, ParseOptions(), ParseLimits())
    return parsed, len(UTF8_MARK) if data.startswith(UTF8_MARK) else 0
