"""Pieces of text from a parser, and their assembly into a text with blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import Block, BlockKind
from rag_assets.ingest.parsing.outline import Outline, heading_name

DEEPEST_LEVEL = 6
_BLANK_LINE = "\n\n"
# Control characters, invisible marks, and the characters that pdfium puts for hyphens at line ends.
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\xad\u200b\u2060\ufeff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Piece:
    """A block without its offsets in the text; see model.Block."""

    kind: BlockKind
    text: str
    level: int = 0
    page: int | None = None
    slide: int | None = None
    sheet: str | None = None
    row: int | None = None
    block_id: str | None = None


def clean(text: str) -> str:
    """Remove control characters, soft hyphens and other invisible characters, and outer blanks."""
    return _UNWANTED.sub("", text).strip()


def bounded(pieces: Iterable[Piece], limits: ParseLimits) -> Iterator[Piece]:
    """Yield the pieces that contain text, within the limits.

    Raises:
        DocumentRejected: the pieces exceed the limits.
    """
    characters = 0
    for piece in pieces:
        if piece.text:
            characters += len(piece.text) + len(_BLANK_LINE)
            limits.check_characters(characters)
            yield piece


def assembled(pieces: Iterable[Piece]) -> tuple[str, tuple[Block, ...]]:
    """Join pieces by blank lines, and rows by line ends; return the text and its blocks."""
    texts: list[str] = []
    blocks: list[Block] = []
    outline = Outline()
    at = 0
    before: Piece | None = None
    for piece in pieces:
        if before is not None:
            gap = "\n" if before.kind == piece.kind == "row" else _BLANK_LINE
            texts.append(gap)
            at += len(gap)
        before = piece
        heading = piece.kind == "heading"
        path = outline.enter(piece.level, heading_name(piece.text)) if heading else outline.path
        end = at + len(piece.text)
        blocks.append(
            Block(
                piece.kind, at, end, path, piece.level,
                page=piece.page, slide=piece.slide, sheet=piece.sheet, row=piece.row,
                block_id=piece.block_id,
            )
        )  # fmt: skip
        texts.append(piece.text)
        at = end
    return "".join(texts), tuple(blocks)
