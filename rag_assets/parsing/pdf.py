"""PDF through liteparse (blocks) and pdfium (outline, metadata)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rag_assets.errors import DocumentRejected
from rag_assets.parsing.model import Block, BlockKind, ParsedText
from rag_assets.parsing.outline import Outline

MAX_PAGES = 5_000
_BATCH_PAGES = 50
_ESCAPE = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|<>~$&\"'=:^/%@,;?])")
_UNTITLED = re.compile(r"untitled|^\s*$|\.\w{1,5}$|^microsoft word -", re.IGNORECASE)
_KINDS: dict[str, BlockKind] = {
    "paragraph": "paragraph",
    "heading": "heading",
    "list_item": "list",
    "code": "code",
    "grid_fallback": "code",
    "table": "table",
}


@dataclass(frozen=True, slots=True)
class _Piece:
    kind: BlockKind
    text: str
    level: int
    page: int


def parse_pdf(data: bytes) -> ParsedText:
    """Extract the text of a PDF block by block.

    Raises:
        DocumentRejected: it is encrypted, damaged, too long, or holds no text.
    """
    pages, title, bookmarks = _inspect(data)
    text: list[str] = []
    blocks: list[Block] = []
    outline = Outline()
    length = 0
    for piece in _pieces(data, bookmarks):
        if text:
            text.append("\n\n")
            length += 2
        end = length + len(piece.text)
        path = outline.enter(piece.level, piece.text) if piece.level else outline.path
        blocks.append(Block(piece.kind, length, end, path, piece.level, piece.page))
        text.append(piece.text)
        length = end
    if not blocks:
        raise DocumentRejected(
            f"it holds no text ({pages} pages): scanned pages need OCR", hint="enable OCR"
        )
    headings = (block.heading_path[-1] for block in blocks if block.kind == "heading")
    return ParsedText("".join(text), tuple(blocks), title or next(headings, None), pages)


def _inspect(data: bytes) -> tuple[int, str | None, dict[tuple[int, str], int]]:
    """Pages, sensible title, and the outline as levels by page and normalised text."""
    import pypdfium2 as pdfium

    try:
        document = pdfium.PdfDocument(data)
    except pdfium.PdfiumError as error:
        if "password" in str(error).lower():
            raise DocumentRejected("it is encrypted and needs a password") from None
        raise DocumentRejected("it is damaged or cut short: pdfium cannot open it") from None
    try:
        pages = len(document)
        if pages > MAX_PAGES:
            raise DocumentRejected(f"it has {pages} pages, over the limit of {MAX_PAGES}")
        title = str(document.get_metadata_dict().get("Title") or "").strip()
        return pages, None if _UNTITLED.search(title) else title, _bookmarks(document)
    finally:
        document.close()


def _bookmarks(document: Any) -> dict[tuple[int, str], int]:
    found: dict[tuple[int, str], int] = {}
    for bookmark in document.get_toc(max_depth=6):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination else None
        if page is not None:
            found[page + 1, _normal(bookmark.get_title())] = min(bookmark.level + 1, 6)
    return found


def _pieces(data: bytes, bookmarks: dict[tuple[int, str], int]) -> Iterator[_Piece]:
    for page in _pages(data):
        for block in page.blocks or []:
            kind = _KINDS.get(block.kind)
            text = _text_of(block)
            if kind is None or not text.strip():
                continue
            level = block.level or 0 if kind == "heading" else 0
            if bookmarks:
                # Where there is an outline, it and not the type size says what a heading is.
                level = bookmarks.get((page.page_num, _normal(text)), 0)
                plain: BlockKind = "paragraph" if kind == "heading" else kind
                kind = "heading" if level else plain
            yield _Piece(kind, text, level, page.page_num)


def _pages(data: bytes) -> Iterator[Any]:
    from liteparse import LiteParse

    parser = LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        extract_links=False,
        extract_blocks=True,
        continue_on_page_error=True,
        max_pages=MAX_PAGES,
        num_workers=1,
        quiet=True,
    )
    try:
        for batch in parser.parse_batches(data, batch_size=_BATCH_PAGES):
            yield from batch.result.pages
    except RuntimeError:
        raise DocumentRejected("it is damaged: its pages cannot be read") from None


def _text_of(block: Any) -> str:
    if block.kind == "table":
        rows = ([block.header] if block.header else []) + (block.rows or [])
        return "\n".join(" | ".join(_plain(cell.text) for cell in row) for row in rows)
    if block.lines:
        return "\n".join(block.lines)
    text = _plain(block.text or "")
    return f"{block.marker} {text}" if block.kind == "list_item" and block.marker else text


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text).replace("**", "")


def _normal(text: str) -> str:
    return " ".join(re.sub(r"[\W_]+", " ", text).lower().split())
