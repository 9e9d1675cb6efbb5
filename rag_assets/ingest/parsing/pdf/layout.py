"""Pages of a PDF, laid out in blocks by liteparse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import BlockKind
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pdf.file import PdfFile
from rag_assets.ingest.parsing.pdf.plain_text import plain
from rag_assets.ingest.parsing.pieces import DEEPEST_LEVEL, Piece, clean

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
    """Load the libraries, and make pdfium reserve its gigabyte of address space once.

    This is called before limits are set, so that the limits apply to the document alone.
    """
    from liteparse import LiteParse, ParseError

    with suppress(ParseError):
        LiteParse(ocr_enabled=False, num_workers=1, quiet=True).parse(b"%PDF-")


class PageLayout:
    """Lays out the pages of one PDF.

    Args:
        file: the PDF.
        options: the tenant's options.
        limits: limits for the document.
    """

    def __init__(self, file: PdfFile, options: ParseOptions, limits: ParseLimits) -> None:
        self._file = file
        self._options = options
        self._limits = limits

    def pages(self) -> Iterator[tuple[int, list[Piece]]]:
        """Yield the number of each readable page, counted from 1, and its pieces.

        Raises:
            DocumentRejected: the PDF is damaged, and not just single pages.
        """
        from liteparse import ParseError

        parser = self._parser(keep_headers_footers=self._options.keep_headers_footers)
        try:
            for batch in parser.parse_batches(self._file.data, batch_size=_BATCH_PAGES):
                stripped = [page.page_num for page in batch.result.pages if _lost_text(page)]
                whole = self._whole_pages(stripped)
                for page in batch.result.pages:
                    yield page.page_num, list(_pieces(whole.get(page.page_num, page)))
        except ParseError:
            # The library's message may quote the document.
            raise DocumentRejected("the PDF is damaged: its pages cannot be read") from None

    def _whole_pages(self, numbers: list[int]) -> dict[int, ParsedPage]:
        """Return pages with their headers and footers; used for pages with little other text."""
        if not numbers:
            return {}
        target = ",".join(map(str, numbers))
        parser = self._parser(keep_headers_footers=True, target_pages=target)
        return {page.page_num: page for page in parser.parse(self._file.data).pages}

    def _parser(self, *, keep_headers_footers: bool, target_pages: str | None = None) -> LiteParse:
        from liteparse import LiteParse

        return LiteParse(
            ocr_enabled=False,
            output_format="markdown",
            image_mode="off",
            extract_links=False,
            extract_blocks=True,
            keep_headers_footers=keep_headers_footers,
            target_pages=target_pages,
            max_pages=self._limits.pages,
            continue_on_page_error=True,
            password=self._file.password,
            num_workers=1,
            quiet=True,
        )


def _pieces(page: ParsedPage) -> Iterator[Piece]:
    for block in page.blocks or []:
        kind = _KINDS.get(block.kind)
        text = clean(_text_of(block)) if kind else ""
        if kind is not None and text:
            level = min(block.level or 1, DEEPEST_LEVEL) if kind == "heading" else 0
            yield Piece(kind, text, level, page.page_num)


def _lost_text(page: ParsedPage) -> bool:
    """Return whether most of a page was taken for headers, as in forms and slides that repeat."""
    kept = sum(_visible(_text_of(block)) for block in page.blocks or [])
    return kept < _LEAST_KEPT * _visible(page.text)


def _visible(text: str) -> int:
    return sum(map(len, text.split()))


def _text_of(block: LayoutBlock) -> str:
    if block.kind == "table":
        rows = [*([block.header] if block.header else []), *(block.rows or [])]
        return "\n".join(" | ".join(cell.text for cell in row) for row in rows)
    if block.lines:
        return "\n".join(block.lines)
    # Only running text is Markdown; headings and cells are plain text.
    text = block.text or "" if block.kind == "heading" else plain(block.text or "")
    return f"{block.marker} {text}" if block.kind == "list_item" and block.marker else text
