"""The parser of typed records: the visible text of pages, comments, templates and rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pieces import Piece, assembled, bounded, clean

_LEVEL = re.compile(r"[1-6](?!\d)")
_DEEPEST = 6
_MOST_TITLE = 200
"""Limit of the title of a row, in characters; its values have no limit."""

TextKind = Literal["heading", "paragraph", "list", "table", "code"]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A part of the visible text of a record.

    Attributes:
        text: the visible text.
        level: of a heading, 1 to 6; else 0.
        block_id: the page's block that it is, or is about; None if there is no such block.
    """

    kind: TextKind
    text: str
    level: int = 0
    block_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecordText:
    """The visible text of a record.

    Attributes:
        title: None for a record without a title.
        blocks: in order, including blocks without text.
    """

    title: str | None
    blocks: tuple[TextBlock, ...]


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a stored record; see registry.ParseFunction."""
    try:
        found = text_of(json.loads(data))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DocumentRejected("the stored record is no JSON of a known type") from None
    text, blocks = assembled(bounded(_pieces(found), limits))
    if not text:
        raise DocumentEmpty("nothing of it is visible")
    title = clean(found.title) if found.title else None
    return ParsedText(text=text, blocks=blocks, title=title or None, has_lines=False)


def _pieces(found: RecordText) -> Iterator[Piece]:
    for block in found.blocks:
        yield Piece(block.kind, clean(block.text), block.level, block_id=block.block_id)


def text_of(kept: Mapping[str, Any]) -> RecordText:
    """Return the visible text of a record.

    Args:
        kept: the stored form of the record.

    Raises:
        KeyError: records of this type have no text.
    """
    return _TEXTS[kept["type"]](kept)


def _page(kept: Mapping[str, Any]) -> RecordText:
    title = str(kept.get("title", ""))
    shown = [one for one in kept.get("blocks", ()) if not one.get("archived")]
    return RecordText(title or None, (TextBlock("heading", title, 1), *map(_block, shown)))


def _block(block: Mapping[str, Any]) -> TextBlock:
    kind = _kind(str(block["type"]).lower())
    level = _level(block) if kind == "heading" else 0
    return TextBlock(kind, str(block.get("text", "")), level, str(block["block_id"]))


def _kind(named: str) -> TextKind:
    """Return the kind of a block from its application's name for it."""
    if named.startswith("head") or re.fullmatch(r"h[1-6]", named):
        return "heading"
    if named.startswith("code"):
        return "code"
    if named.startswith("table"):
        return "table"
    return "list" if re.search(r"list|bullet|numbered|todo|to_do|check", named) else "paragraph"


def _level(block: Mapping[str, Any]) -> int:
    given = block.get("level")
    if isinstance(given, int) and 1 <= given <= _DEEPEST:
        return given
    found = _LEVEL.search(str(block["type"]))
    return int(found.group()) if found else 1


def _comment(kept: Mapping[str, Any]) -> RecordText:
    return RecordText(None, (TextBlock("paragraph", kept["text"], 0, kept.get("block_id")),))


def _template(kept: Mapping[str, Any]) -> RecordText:
    name = str(kept["name"])
    blocks = [TextBlock("heading", name, 1), TextBlock("paragraph", kept.get("description", ""))]
    payload = kept.get("payload")
    lines = "\n".join(_flattened(payload)) if payload is not None else ""
    return RecordText(name or None, (*blocks, TextBlock("paragraph", lines)))


def _flattened(value: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each string, number and boolean in JSON, with the path to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flattened(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _flattened(inner, path)
    elif value is not None and value != "":
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{path}: {shown}" if path else shown


def _row(kept: Mapping[str, Any]) -> RecordText:
    """Return a line for each value, with its property's name; the first value is the title."""
    values = [one for one in kept.get("values", ()) if one["value_text"].strip()]
    lines = [
        f"{one['name']}: {one['value_text']}" if one["name"].strip() else one["value_text"]
        for one in values
    ]
    first = str(values[0]["value_text"]).strip().splitlines()[0] if values else ""
    title = first[:_MOST_TITLE].rstrip() or None
    return RecordText(title, (TextBlock("paragraph", "\n".join(lines)),))


_TEXTS = {"page": _page, "comment": _comment, "template": _template, "db_row": _row}
