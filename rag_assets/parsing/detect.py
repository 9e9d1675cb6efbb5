"""What a document is: by its content first, by what its source says second."""

from __future__ import annotations

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.media_types import MARKDOWN, PDF

PDF_MARK = b"%PDF-"
_PDF_MARK_WITHIN = 1024
_UTF8_MARK = b"\xef\xbb\xbf"


def detect(data: bytes, media_type: str | None = None) -> str:
    """The type that a document's bytes really have, a key of registry.PARSERS.

    Args:
        data: the document.
        media_type: what its source says it is, mostly from its name.

    Raises:
        DocumentRejected: it is empty, or nothing that can be parsed.
    """
    if not data.strip():
        raise DocumentRejected("it is empty")
    # Only what stands before the mark tells a PDF after some junk from a text about PDFs.
    if data.removeprefix(_UTF8_MARK).lstrip().startswith(PDF_MARK):
        return PDF
    if PDF_MARK in data[:_PDF_MARK_WITHIN] and (media_type == PDF or not _is_text(data)):
        return PDF
    if media_type == PDF:
        raise DocumentRejected("it is not a PDF, although its name says so")
    return MARKDOWN


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data
