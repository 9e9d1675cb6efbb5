"""Scanned pages of PDFs: their pixels for OCR, and the extra time that OCR needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.ocr import MOST_PIXELS, Pixels, more_seconds_for
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pdf.file import PdfFile

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_DOTS_PER_INCH = 200
_POINTS_PER_INCH = 72


def pixels_of(page: PdfPage) -> Pixels:
    """Return a page in shades of grey, at 200 dots per inch for pages up to A2."""
    picture = page.render(scale=_scale(*page.get_size()), grayscale=True)
    try:
        return Pixels(bytes(picture.buffer), picture.width, picture.height, picture.stride)
    finally:
        picture.close()


def more_seconds(data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
    """Return the seconds that OCR of scanned pages adds to a document's limit.

    Raises:
        DocumentRejected: the PDF cannot be opened, or has too many pages.
    """
    if not options.ocr:
        return 0.0
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        scanned = sum(map(file.is_picture, range(1, len(file) + 1)))
    return more_seconds_for(min(scanned, limits.ocr_pages), limits)


def _scale(width: float, height: float) -> float:
    """Return the pixels per point for a page whose size is given in points."""
    wanted = _DOTS_PER_INCH / _POINTS_PER_INCH
    pixels = width * height * wanted**2
    return wanted if pixels <= MOST_PIXELS else wanted * (MOST_PIXELS / pixels) ** 0.5
