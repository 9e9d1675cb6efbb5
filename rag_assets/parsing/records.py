"""ParsedText as plain JSON-able records, and its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from rag_assets.hashing import key_of
from rag_assets.parsing.model import Block, MaskedSpan, ParsedText


def parsed_digest(parsed: ParsedText) -> str:
    """Hash of all that a parser returned; the keys of the next stage are made of it."""
    return key_of(
        "parsed",
        parsed.text,
        parsed.title,
        parsed.pages,
        [_block_record(block) for block in parsed.blocks],
        [astuple(span) for span in parsed.masked],
    )


def to_record(parsed: ParsedText) -> dict[str, Any]:
    """The parsed text as JSON can hold it."""
    return {
        "text": parsed.text,
        "title": parsed.title,
        "pages": parsed.pages,
        "blocks": [_block_record(block) for block in parsed.blocks],
        "masked": [list(astuple(span)) for span in parsed.masked],
    }


def from_record(record: Mapping[str, Any]) -> ParsedText:
    """The inverse of to_record."""
    return ParsedText(
        text=record["text"],
        title=record["title"],
        pages=record["pages"],
        blocks=tuple(
            Block(kind, start, end, tuple(path), level, page)
            for kind, start, end, path, level, page in record["blocks"]
        ),
        masked=tuple(MaskedSpan(start, end, rule) for start, end, rule in record["masked"]),
    )


def _block_record(block: Block) -> list[Any]:
    path = list(block.heading_path)
    return [block.kind, block.start, block.end, path, block.level, block.page]
