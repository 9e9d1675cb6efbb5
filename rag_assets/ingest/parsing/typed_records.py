"""The parser of typed records: the visible text of pages, comments, templates and rows.

A typed record is a JSON object that an application pushed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

from rag_assets.common.errors import DocumentEmpty, DocumentRejected
from rag_assets.ingest.parsing.blocks import Piece, assemble, clean, limit_pieces
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

_LEVEL: Final = re.compile(r"[1-6](?!\d)")
_MAX_HEADING_LEVEL: Final = 6
_MAX_TITLE_LENGTH: Final = 200
"""Maximum characters of a row's title; the values of a row have no limit."""

_Kind: TypeAlias = Literal["heading", "paragraph", "list", "table", "code"]
_Visible: TypeAlias = tuple[str | None, list[Piece]]
"""A record's title, if it has one, and its pieces in order; pieces may be empty."""


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Parse a stored record; see registry.ParseFunction."""
    try:
        stored = json.loads(data)
        title, pieces = _READERS[stored["type"]](stored)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DocumentRejected("the stored record is not valid JSON of a known type") from None
    text, blocks = assemble(limit_pieces(iter(pieces), limits))
    if not text:
        raise DocumentEmpty("the record has no visible content")
    title = clean(title) if title else None
    return ParsedText(text=text, blocks=blocks, title=title or None, has_lines=False)


def _read_page(stored: Mapping[str, Any]) -> _Visible:
    title = str(stored.get("title", ""))
    blocks = [block for block in stored.get("blocks", ()) if not block.get("archived")]
    return title or None, [_build_piece("heading", title, 1), *map(_read_block, blocks)]


def _read_block(block: Mapping[str, Any]) -> Piece:
    kind = _classify_block(str(block["type"]).lower())
    level = _get_heading_level(block) if kind == "heading" else 0
    return _build_piece(kind, str(block.get("text", "")), level, str(block["block_id"]))


def _classify_block(type_name: str) -> _Kind:
    """Return the kind of a block, given the name of its type in the application."""
    if type_name.startswith("head") or re.fullmatch(r"h[1-6]", type_name):
        return "heading"
    if type_name.startswith("code"):
        return "code"
    if type_name.startswith("table"):
        return "table"
    return "list" if re.search(r"list|bullet|numbered|todo|to_do|check", type_name) else "paragraph"


def _get_heading_level(block: Mapping[str, Any]) -> int:
    level = block.get("level")
    if isinstance(level, int) and 1 <= level <= _MAX_HEADING_LEVEL:
        return level
    match = _LEVEL.search(str(block["type"]))
    return int(match.group()) if match else 1


def _read_comment(stored: Mapping[str, Any]) -> _Visible:
    return None, [_build_piece("paragraph", stored["text"], 0, stored.get("block_id"))]


def _read_template(stored: Mapping[str, Any]) -> _Visible:
    name = str(stored["name"])
    payload = stored.get("payload")
    lines = "\n".join(_flatten(payload)) if payload is not None else ""
    description = _build_piece("paragraph", stored.get("description", ""))
    return name or None, [
        _build_piece("heading", name, 1),
        description,
        _build_piece("paragraph", lines),
    ]


def _flatten(value: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each string, number and boolean in a JSON value, with the path to it."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _flatten(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _flatten(inner, path)
    elif value is not None and value != "":
        text = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{path}: {text}" if path else text


def _read_row(stored: Mapping[str, Any]) -> _Visible:
    """Return the title of a row (the first line of its first value), and the row's values.

    Each value is on a line, after the name of its column.
    """
    values = [value for value in stored.get("values", ()) if value["value_text"].strip()]
    lines = [
        f"{value['name']}: {value['value_text']}" if value["name"].strip() else value["value_text"]
        for value in values
    ]
    first = str(values[0]["value_text"]).strip().splitlines()[0] if values else ""
    return first[:_MAX_TITLE_LENGTH].rstrip() or None, [_build_piece("paragraph", "\n".join(lines))]


def _build_piece(kind: _Kind, text: str, level: int = 0, block_id: str | None = None) -> Piece:
    return Piece(kind, clean(text), level, block_id=block_id)


_READERS: Final[Mapping[str, Callable[[Mapping[str, Any]], _Visible]]] = {
    "page": _read_page,
    "comment": _read_comment,
    "template": _read_template,
    "db_row": _read_row,
}
