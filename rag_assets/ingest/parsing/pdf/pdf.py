"""PDF: blocks from liteparse, outline and title from pdfium, scanned pages by OCR if it is on.

The text consists of the blocks, joined by blank lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.ocr import OcrTime, TextReader
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.outline import first_title, heading_name
from rag_assets.ingest.parsing.pdf.file import SCANTY, PdfFile, no_text
from rag_assets.ingest.parsing.pdf.layout import PageLayout, warm_up
from rag_assets.ingest.parsing.pdf.outline import Bookmarks, bookmarks_of
from rag_assets.ingest.parsing.pdf.scanned_pages import more_seconds, pixels_of
from rag_assets.ingest.parsing.pieces import Piece, assembled, bounded
from rag_assets.ingest.parsing.titles import sensible_title

__all__ = ["more_seconds", "parse", "warm_up"]


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Extract the text of a PDF block by block; see registry.ParseFunction.

    Raises:
        DocumentRejected: the PDF is encrypted, truncated, damaged, too long, or has no text.
    """
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        reading = _Reading(file, options, limits)
        pieces = list(bounded(reading.pieces(), limits))
        if not pieces:
            raise reading.no_text()
        text, blocks = assembled(_with_outline(pieces, bookmarks_of(file)))
        given = sensible_title(file.title)
        return ParsedText(
            text,
            blocks,
            title=given or _title_page(pieces) or first_title(blocks),
            pages=len(file),
            ocr_pages=reading.ocr_pages,
            has_lines=False,
            notes=reading.notes(),
        )


class _Reading:
    """One pass over the pages; it counts readable pages, pictures and pages read by OCR."""

    def __init__(self, file: PdfFile, options: ParseOptions, limits: ParseLimits) -> None:
        self._file = file
        self._options = options
        self._limits = limits
        self._layout = PageLayout(file, options, limits)
        self._readable = 0
        self._pictures = 0
        self._time = OcrTime(limits)

    def pieces(self) -> Iterator[Piece]:
        with ExitStack() as stack:
            reader: TextReader | None = None
            for number, pieces in self._layout.pages():
                self._readable += 1
                if _scanty(pieces) and self._file.is_picture(number):
                    self._pictures += 1
                    if self._options.ocr:
                        reader = reader or stack.enter_context(
                            TextReader(self._options.ocr_languages, self._options.ocr_data)
                        )
                        yield from self._read(reader, number) or pieces
                        continue
                yield from pieces

    @property
    def ocr_pages(self) -> int:
        """Return the number of pages that were read by OCR."""
        return self._time.read

    def no_text(self) -> DocumentRejected:
        """Return the error that states why no text was found."""
        self._time.require_any()
        if not self._readable:
            return DocumentRejected("the PDF is damaged: none of its pages can be read")
        return no_text(len(self._file), ocr=self._options.ocr)

    def notes(self) -> tuple[str, ...]:
        """Return notes about parts of the document that were not read."""
        pages = len(self._file)
        facts = []
        if unreadable := pages - self._readable:
            facts.append(f"{unreadable:,} of {pages:,} pages are damaged and left out")
        if self._pictures and not self._options.ocr:
            facts.append(
                f"{self._pictures:,} of {pages:,} pages are pictures without text, OCR is off"
            )
        return (*facts, *self._time.notes(pages))

    def _read(self, reader: TextReader, number: int) -> list[Piece]:
        def paragraphs() -> Iterator[str]:
            with self._file.page(number) as page:
                pixels = pixels_of(page)
            return reader.paragraphs(pixels)

        return [Piece("paragraph", text, page=number) for text in self._time.paragraphs(paragraphs)]


def _scanty(pieces: Sequence[Piece]) -> bool:
    return sum(len(piece.text) for piece in pieces) <= SCANTY


def _title_page(pieces: list[Piece]) -> str | None:
    """Return the largest heading of the first page, since an outline seldom lists the title."""
    headings = [p for p in pieces if p.kind == "heading" and p.page == pieces[0].page]
    return heading_name(min(headings, key=lambda p: p.level).text) if headings else None


def _with_outline(pieces: list[Piece], bookmarks: Bookmarks) -> list[Piece]:
    """Take headings from the outline if it contains any of the headings that were found.

    Headings derived from type sizes are too many. An outline with other words, such as slide names,
    is ignored.
    """
    levels = [bookmarks.level(piece.page or 0, piece.text) for piece in pieces]
    confirmed = (
        piece.kind == "heading" and level for piece, level in zip(pieces, levels, strict=True)
    )
    if not any(confirmed):
        return pieces
    return [_with_level(piece, level) for piece, level in zip(pieces, levels, strict=True)]


def _with_level(piece: Piece, level: int) -> Piece:
    if level and piece.kind in {"heading", "paragraph"}:
        return replace(piece, kind="heading", level=level)
    return replace(piece, kind="paragraph", level=0) if piece.kind == "heading" else piece
