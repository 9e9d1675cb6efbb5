"""Stored records of workspaces: pages with blocks, comments, templates and rows."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pieces import Piece, assembled, bounded, clean
from rag_assets.workspace.texts import RecordText, text_of


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a stored record; see registry.ParseFunction."""
    try:
        found = text_of(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DocumentRejected("it is no record of a workspace as they are kept") from None
    text, blocks = assembled(bounded(_pieces(found), limits))
    if not text:
        raise DocumentEmpty("nothing of it is visible")
    title = clean(found.title) if found.title else None
    return ParsedText(text=text, blocks=blocks, title=title or None, has_lines=False)


def _pieces(found: RecordText) -> Iterator[Piece]:
    for block in found.blocks:
        yield Piece(block.kind, clean(block.text), block.level, block_id=block.block_id)
