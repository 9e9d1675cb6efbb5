"""Parse one document with the parser of its detected type."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from rag_assets.ingest.parsing.detection.detect import detect
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.media_types import SOURCE_TEXTS
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import parser_for
from rag_assets.ingest.parsing.text.decoding import UTF8_MARK


def prepare_for(data: bytes, media_type: str | None, options: ParseOptions) -> None:
    """Load the libraries that parse these bytes; if this fails, parse() reports it."""
    with suppress(Exception):
        parser_for(detect(data, media_type), options).warm_up()


def more_seconds(
    data: bytes, media_type: str | None, options: ParseOptions, limits: ParseLimits
) -> float:
    """Return the seconds that parsing these bytes may take beyond `limits.seconds`.

    Raises:
        DocumentRejected: the document cannot be parsed; parse() raises the same error.
    """
    kind = detect(data, media_type)
    return parser_for(kind, options).more_seconds(data, options, limits)


def parse(
    data: bytes,
    media_type: str | None = None,
    options: ParseOptions | None = None,
    limits: ParseLimits | None = None,
) -> ParsedText:
    """Parse a document by its detected type; the result is not masked.

    Only the worker process may call this. Other callers use the pool, which limits time and memory.

    Args:
        data: the document.
        media_type: the type that its source declares.
        options: the tenant's options.
        limits: limits for its text, blocks and pages.

    Raises:
        DocumentRejected: the document is empty, of an unknown format, or its parser rejects it.
    """
    options = options or ParseOptions()
    kind = detect(data, media_type)
    function = parser_for(kind, options).function()
    limits = limits or ParseLimits()
    parsed = function(data, kind, options, limits)
    limits.check_blocks(len(parsed.blocks))
    marked = kind in SOURCE_TEXTS and data.startswith(UTF8_MARK)
    return replace(parsed, media_type=kind, mark_bytes=len(UTF8_MARK) if marked else 0)
