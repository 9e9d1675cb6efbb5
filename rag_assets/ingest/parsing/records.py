"""ParsedText as plain JSON-compatible records, and its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple
from typing import Any

from rag_assets.common.hashing import key_of
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText


def parsed_digest(parsed: ParsedText) -> str:
    """Return the hash of a parser's result, from which the keys of the next stage derive."""
    return key_of("parsed", to_record(parsed))


def to_record(parsed: ParsedText) -> dict[str, Any]:
    """Return the parsed text as a JSON-compatible record; equal texts give equal records.

    Heading paths are listed once, and blocks refer to them by number, because all blocks below a
    heading share its path.
    """
    paths: dict[tuple[str, ...], int] = {}
    blocks = [
        [b.kind, b.start, b.end, paths.setdefault(b.heading_path, len(paths)), *_facts(b)]
        for b in parsed.blocks
    ]
    record = {
        "text": parsed.text,
        "title": parsed.title,
        "pages": parsed.pages,
        "paths": [list(path) for path in paths],
        "blocks": blocks,
        "masked": [list(astuple(span)) for span in parsed.masked],
        "ocr_pages": parsed.ocr_pages,
        "has_lines": parsed.has_lines,
        "media_type": parsed.media_type,
        "notes": list(parsed.notes),
    }
    # Include it only if present, so that the digests of other texts do not change.
    return record | ({"mark_bytes": parsed.mark_bytes} if parsed.mark_bytes else {})


def from_record(record: Mapping[str, Any]) -> ParsedText:
    """Return the parsed text of a record; the inverse of to_record."""
    paths = [tuple(path) for path in record["paths"]]
    return ParsedText(
        text=record["text"],
        title=record["title"],
        pages=record["pages"],
        blocks=tuple(
            Block(kind, start, end, paths[path], *facts)
            for kind, start, end, path, *facts in record["blocks"]
        ),
        masked=tuple(MaskedSpan(start, end, rule) for start, end, rule in record["masked"]),
        ocr_pages=record["ocr_pages"],
        has_lines=record["has_lines"],
        media_type=record["media_type"],
        notes=tuple(record["notes"]),
        mark_bytes=record.get("mark_bytes", 0),
    )


def _facts(block: Block) -> tuple[int | str | None, ...]:
    # Include it only if present, so that the digests of other texts do not change.
    named = () if block.block_id is None else (block.block_id,)
    return block.level, block.page, block.slide, block.sheet, block.row, *named
