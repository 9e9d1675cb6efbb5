"""One document through the parser that its content asks for."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from rag_assets.ingest.parsing.detection.detect import detect
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import parser_for


def prepare_for(data: bytes, media_type: str | None, options: ParseOptions) -> None:
    """Load what parsing these bytes takes; parse() says why if that fails."""
    with suppress(Exception):
        parser_for(detect(data, media_type), options).warm_up()


def more_seconds(
    data: bytes, media_type: str | None, options: ParseOptions, limits: ParseLimits
) -> float:
    """What parsing these bytes may take beyond `limits.seconds`.

    Raises:
        DocumentRejected: it cannot be parsed; parse() will say so as well.
    """
    kind = detect(data, media_type)
    return parser_for(kind, options).more_seconds(data, options, limits)


def parse(
    data: bytes,
    media_type: str | None = None,
    options: ParseOptions | None = None,
    limits: ParseLimits | None = None,
) -> ParsedText:
    """Parse a document by what its bytes are; credentials are still in the result.

    For the worker process: others go through the pool, which bounds time and memory.

    Args:
        data: the document.
        media_type: what its source says it is.
        options: what the tenant chose.
        limits: for its text, blocks and pages.

    Raises:
        DocumentRejected: it is empty, of no known format, or its parser rejects it.
    """
    options = options or ParseOptions()
    kind = detect(data, media_type)
    function = parser_for(kind, options).function()
    limits = limits or ParseLimits()
    parsed = function(data, kind, options, limits)
    limits.check_blocks(len(parsed.blocks))
    return replace(parsed, media_type=kind)
