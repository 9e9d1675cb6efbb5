"""The result of a parser: the text of a document and its blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BlockKind = Literal["heading", "paragraph", "list", "table", "row", "code", "front_matter"]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of the parsed text that belongs together.

    Attributes:
        kind: its kind. A row is one record of a table, with column names in the heading above it.
            Front matter, like imports and comments, is for programs and never becomes a chunk.
        start, end: character offsets into ParsedText.text, half open.
        heading_path: the headings above it, outermost first; a heading's own text comes last.
        level: 1 to 6 for a heading, else 0.
        page: the page it starts on, counted from 1, if the format has pages.
        slide: the slide it is on, counted from 1, if the format has slides.
        sheet: the name of the sheet it is on, if the format has sheets.
        row: the row of the sheet or file that it starts in, counted from 1, if there are rows.
        block_id: its id in the application that pushed it, if its blocks have ids.
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
class ParsedText:
    """The text of one document after parsing and masking.

    Attributes:
        text: for text formats the decoded source itself, so that offsets are offsets into the
            source; for other formats the blocks joined by blank lines. Credentials are masked, same
            length.
        blocks: in order, not overlapping; white space between them belongs to no block.
        media_type: the type of the document's content; parse() sets it.
        title: the title found in the content (never derived from the file's name), masked.
        pages: number of pages, slides or sheets, if the format has them.
        ocr_pages: how many of them were read by OCR.
        notes: which parts were not read, and why; they quote nothing from the document.
        has_lines: whether the lines of `text` are the lines of the document.
        masked: the spans that were masked, in order.
        mark_bytes: bytes of a byte order mark before the text, if the text is the source.
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
