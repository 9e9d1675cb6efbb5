"""A parser's result: the text and blocks of a document, its record for the store, its digest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, Literal

from rag_assets.common.hashing import compute_key

BlockKind = Literal["heading", "paragraph", "list", "table", "row", "code", "front_matter"]


@dataclass(frozen=True, slots=True)
class Block:
    """A span of the parsed text that forms a unit, such as a heading, a paragraph or a table.

    Pages, slides and rows count from 1; the format may have none of them.

    Attributes:
        kind: kind of the block. A row is one record of a table, with the column names in the
            heading above it. Front matter, which includes imports and comments, is for programs and
            never becomes a chunk.
        start, end: character offsets into ParsedText.text, half open.
        heading_path: the headings above the block, outermost first; for a heading, its own text
            comes last.
        level: 1 to 6 for a heading, else 0.
        block_id: the block's id in the application that pushed it, if blocks have ids.
    """

    kind: BlockKind
    start: int
    end: int
    heading_path: tuple[str, ...] = ()
    level: int = 0
    page: int | None = None
    slide: int | None = None
    sheet: str | None = None
    row: int | None = None
    block_id: str | None = None


@dataclass(frozen=True, slots=True)
class MaskedSpan:
    """The character offsets of a masked credential, and the rule that found it."""

    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class Gap:
    """A place in a text at which a part of the file was left out, and the bytes of that part."""

    at: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The text of one document after parsing and masking.

    Attributes:
        text: for text formats the decoded source itself, without the parts at `gaps`; for other
            formats the blocks joined by blank lines. Credentials are masked without changing the
            length.
        blocks: in order, not overlapping; white space between them belongs to no block.
        title: the title found in the content (never derived from the file's name), masked.
        pages: number of pages, slides or sheets, if the format has them.
        notes: which parts were not read, and why; they quote nothing from the document.
        has_lines: whether the lines of `text` are the lines of the document.
        mark_bytes: length of a byte order mark before the text, if the text is the source.
        gaps: places at which text that is invisible to readers was left out of the source, in
            order. The line ends of that text are kept, so line numbers refer to the file.
    """

    text: str
    blocks: tuple[Block, ...]
    title: str | None = None
    pages: int | None = None
    masked: tuple[MaskedSpan, ...] = ()
    ocr_pages: int = 0
    has_lines: bool = True
    media_type: str = ""
    notes: tuple[str, ...] = ()
    mark_bytes: int = 0
    gaps: tuple[Gap, ...] = ()


def compute_parsed_digest(parsed: ParsedText) -> str:
    """Return the hash of a parser's result, from which the keys of the next stage derive."""
    return compute_key("parsed", to_record(parsed))


def to_record(parsed: ParsedText) -> dict[str, Any]:
    """Return the parsed text as a JSON-compatible record; equal texts give equal records.

    Heading paths are listed once, and blocks refer to them by number, because all blocks below a
    heading share its path.
    """
    paths: dict[tuple[str, ...], int] = {}
    blocks = [
        [
            b.kind,
            b.start,
            b.end,
            paths.setdefault(b.heading_path, len(paths)),
            *_list_block_values(b),
        ]
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
    if parsed.mark_bytes:
        record["mark_bytes"] = parsed.mark_bytes
    if parsed.gaps:
        record["gaps"] = [list(astuple(gap)) for gap in parsed.gaps]
    return record


def from_record(record: Mapping[str, Any]) -> ParsedText:
    """Rebuild a parsed text from its record; the inverse of to_record."""
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
        gaps=tuple(Gap(*gap) for gap in record.get("gaps", ())),
    )


def _list_block_values(block: Block) -> tuple[int | str | None, ...]:
    # Include it only if present, so that the digests of other texts do not change.
    block_id = () if block.block_id is None else (block.block_id,)
    return block.level, block.page, block.slide, block.sheet, block.row, *block_id
