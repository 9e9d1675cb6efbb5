"""Detect the type of a document, from its content first, and then from its declared type."""

from __future__ import annotations

import codecs
import io
from typing import BinaryIO

from rag_assets.common.errors import DocumentEmpty, DocumentRejected, DocumentUnsupported
from rag_assets.ingest.parsing.detection.containers import (
    OLE2_MARK,
    ZIP_MARKS,
    pieces_of,
    type_of_ole2,
    type_of_zip,
)
from rag_assets.ingest.parsing.detection.signatures import hint_for, meaning_of
from rag_assets.ingest.parsing.detection.text_types import (
    guessed_type,
    looks_like_html,
    looks_like_mail,
)
from rag_assets.ingest.parsing.media_types import (
    BINARY,
    EML,
    HTML,
    PDF,
    PICTURES,
    SOURCE_CODE,
    SUFFIXES,
    TYPED_RECORD,
    picture_type,
)
from rag_assets.ingest.parsing.text.decoding import UTF16_MARKS

PDF_MARK = b"%PDF-"
_BEGINNING = 1 << 20
_PDF_MARK_WITHIN = 1024
_UTF8_MARK = b"\xef\xbb\xbf"
_KNOWN = frozenset({*SUFFIXES.values(), *SOURCE_CODE})


def detect(data: bytes, media_type: str | None = None) -> str:
    """Detect the type of a document, a key of registry.PARSERS; see detect_file."""
    return detect_file(io.BytesIO(data), media_type)


def detect_file(file: BinaryIO, media_type: str | None = None) -> str:
    """Detect the type of a document, a key of registry.PARSERS, in constant memory.

    Args:
        file: the document, seekable, at its start.
        media_type: the type that the document's source declares, mostly by the file name. It
            decides among text formats, unless the document clearly starts as HTML or mail.

    Raises:
        DocumentRejected: the document is empty, or has a type that no parser reads; the message
            names the type.
    """
    if not any(piece.strip() for piece in pieces_of(file)):
        raise DocumentEmpty("the document is empty")
    file.seek(0)
    data = file.read(_BEGINNING)
    if taken := _select_declared_type(data, media_type):
        return taken
    declared = _normalize_declared_type(media_type)
    # The bytes before the mark tell a PDF that starts with some junk from a text about PDFs.
    if data.removeprefix(_UTF8_MARK).lstrip().startswith(PDF_MARK):
        return PDF
    if data.startswith(ZIP_MARKS):
        return type_of_zip(file, declared)
    if data.startswith(OLE2_MARK):
        return type_of_ole2(file, declared)
    is_text = data.startswith(UTF16_MARKS) or _is_utf8(file)
    if PDF_MARK in data[:_PDF_MARK_WITHIN] and (declared == PDF or not is_text):
        return PDF
    if meaning := meaning_of(data, is_text=is_text):
        raise DocumentUnsupported(f"unsupported format: {meaning}", hint=hint_for(meaning))
    return _choose_text_type(data, declared)


def _select_declared_type(data: bytes, media_type: str | None) -> str | None:
    """Return the declared type if only this project declares it; None for other types."""
    if media_type == TYPED_RECORD:
        return TYPED_RECORD  # this project wrote the record itself
    # The declaration of a picture was already checked against its content.
    return picture_type(data) if media_type in PICTURES else None


def _normalize_declared_type(media_type: str | None) -> str | None:
    """Return the declared type without parameters, if it is known."""
    bare = (media_type or "").partition(";")[0].strip().lower()
    return bare if bare in _KNOWN else None


def _choose_text_type(data: bytes, declared: str | None) -> str:
    """Choose among text formats; the format's parser rejects bytes that are not text."""
    if declared in SOURCE_CODE and declared is not None:
        return declared
    if looks_like_html(data):
        return HTML
    if looks_like_mail(data):
        return EML
    if declared in BINARY and declared is not None:
        raise DocumentRejected(f"the document is not {BINARY[declared]}, although its name says so")
    return declared or guessed_type(data)


def _is_utf8(file: BinaryIO) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for piece in pieces_of(file):
            if b"\0" in piece:
                return False
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
