"""PDF: blocks from liteparse, the outline and the title from pdfium. No OCR.

The text is the blocks joined by blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.detect import PDF_MARK
from rag_assets.parsing.limits import ParseLimits
from rag_assets.parsing.model import BlockKind, ParsedText
from rag_assets.parsing.options import ParseOptions
from rag_assets.parsing.outline import first_title, heading_name
from rag_assets.parsing.pdf_outline import Bookmarks, inspect_pdf
from rag_assets.parsing.pdf_text import plain
from rag_assets.parsing.pieces import DEEPEST_LEVEL, Piece, assembled, bounded, clean

if TYPE_CHECKING:
    from liteparse import LayoutBlock, LiteParse, ParsedPage

_BATCH_PAGES = 32
_LEAST_KEPT = 0.6
_KINDS: Mapping[str, BlockKind] = {
    "heading": "heading",
    "paragraph": "paragraph",
    "list_item": "list",
    "table": "table",
    "code": "code",
    "grid_fallback": "code",
}


@cache
def warm_up() -> None:
    """Load the libraries, and let pdfium reserve its gigabyte of address space, once.

    Done before a limit is set, so that the limit is about the document.
    """
    from liteparse import LiteParse, ParseError

    with suppress(ParseError):
        LiteParse(ocr_enabled=False, num_workers=1, quiet=True).parse(b"%PDF-")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Extract the text of a PDF block by block; see registry.ParseFunction.

    Raises:
        DocumentRejected: it is encrypted, cut short, damaged, too long, or holds no text.
    """
    data = data[data.find(PDF_MARK) :]  # liteparse wants the mark at the very start
    keep_headers_footers = options.keep_headers_footers
    facts = inspect_pdf(data, limits)
    found = _pieces(data, limits, keep_headers_footers=keep_headers_footers)
    pieces = list(bounded(found, limits))
    if not pieces:
        raise DocumentRejected(
            f"no text: scanned pages need OCR ({facts.pages:,} without any text)",
            hint="run OCR over the file and add the result",
        )
    text, blocks = assembled(_with_outline(pieces, facts.bookmarks))
    title = facts.title or _title_page(pieces) or first_title(blocks)
    return ParsedText(text, blocks, title, facts.pages, has_lines=False)


def _title_page(pieces: list[Piece]) -> str | None:
    """The largest heading of the first page, which an outline seldom lists."""
    headings = [p for p in pieces if p.kind == "heading" and p.page == pieces[0].page]
    return heading_name(min(headings, key=lambda p: p.level).text) if headings else None


def _with_outline(pieces: list[Piece], bookmarks: Bookmarks) -> list[Piece]:
    """Let the outline say what a heading is, where it knows any of the headings found.

    Type sizes make too many headings; an outline of other words (slide names, say) makes none.
    """
    levels = [bookmarks.level(piece.page or 0, piece.text) for piece in pieces]
    confirmed = (
        piece.kind == "heading" and level for piece, level in zip(pieces, levels, strict=True)
    )
    if not any(confirmed):
        return pieces
    return [_judged(piece, level) for piece, level in zip(pieces, levels, strict=True)]


def _judged(piece: Piece, level: int) -> Piece:
    if level and piece.kind in {"heading", "paragraph"}:
        return replace(piece, kind="heading", level=level)
    return replace(piece, kind="paragraph", level=0) if piece.kind == "heading" else piece


def _pieces(data: bytes, limits: ParseLimits, *, keep_headers_footers: bool) -> Iterator[Piece]:
    for page in _pages(data, limits, keep_headers_footers=keep_headers_footers):
        for block in page.blocks or []:
            kind = _KINDS.get(block.kind)
            text = clean(_text_of(block)) if kind else ""
            if kind is not None:
                level = min(block.level or 1, DEEPEST_LEVEL) if kind == "heading" else 0
                yield Piece(kind, text, level, page.page_num)


def _pages(data: bytes, limits: ParseLimits, *, keep_headers_footers: bool) -> Iterator[ParsedPage]:
    from liteparse import ParseError

    parser = _parser(limits, keep_headers_footers=keep_headers_footers)
    try:
        for batch in parser.parse_batches(data, batch_size=_BATCH_PAGES):
            stripped = [page.page_num for page in batch.result.pages if _lost_text(page)]
            whole = _whole_pages(data, limits, stripped)
            yield from (whole.get(page.page_num, page) for page in batch.result.pages)
    except ParseError:
        # Its message may quote the document.
        raise DocumentRejected("it is damaged: a page of it cannot be read") from None


def _whole_pages(data: bytes, limits: ParseLimits, numbers: list[int]) -> dict[int, ParsedPage]:
    """Pages with their headers and footers, for those that would have little left without."""
    if not numbers:
        return {}
    target = ",".join(map(str, numbers))
    parser = _parser(limits, keep_headers_footers=True, target_pages=target)
    return {page.page_num: page for page in parser.parse(data).pages}


def _lost_text(page: ParsedPage) -> bool:
    """Whether most of a page was taken for headers: forms and slides resemble each other."""
    kept = sum(_visible(_text_of(block)) for block in page.blocks or [])
    return kept < _LEAST_KEPT * _visible(page.text)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _parser(
    limits: ParseLimits, *, keep_headers_footers: bool, target_pages: str | None = None
) -> LiteParse:
    from liteparse import LiteParse

    return LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        extract_links=False,
        extract_blocks=True,
        keep_headers_footers=keep_headers_footers,
        target_pages=target_pages,
        max_pages=limits.pages,
        num_workers=1,
        quiet=True,
    )


def _text_of(block: LayoutBlock) -> str:
    if block.kind == "table":
        rows = [*([block.header] if block.header else []), *(block.rows or [])]
        return "\n".join(" | ".join(cell.text for cell in row) for row in rows)
    if block.lines:
        return "\n".join(block.lines)
    # Only running text comes as Markdown; headings and cells are as they stand on the page.
    text = block.text or "" if block.kind == "heading" else plain(block.text or "")
    return f"{block.marker} {text}" if block.kind == "list_item" and block.marker else text
