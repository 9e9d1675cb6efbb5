"""Pictures: their text by OCR, page by page for a TIFF with several pages.

A picture declares its size before its pixels are decoded. So a picture that is too large is refused
without being decoded.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_assets.common.errors import DocumentRejected, DocumentScanned, DocumentTooLarge
from rag_assets.common.extras import OCR, missing_modules
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.media_types import PICTURES
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.ocr import (
    MOST_PIXELS,
    OcrTime,
    Pixels,
    TextReader,
    more_seconds_for,
)
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pieces import Piece, assembled, bounded

if TYPE_CHECKING:
    from PIL.Image import Image

_MOST_DECODED = 64_000_000
"""Maximum number of pixels of a page: 8,000 by 8,000, or A1 at 200 dots per inch."""
_SMALL = 4_000_000
"""Number of pixels up to which a page is enlarged, since letters on screens are smaller than in
print."""
_MOST_ENLARGED = 3.0
_DAMAGED = "the picture is damaged: its pixels cannot be read"


def warm_up() -> None:
    """Load the libraries, so that a document's limits apply to the document alone."""
    import PIL.Image

    PIL.Image.preinit()
    PIL.Image.init()
    if not missing_modules(OCR):
        import tesserocr

        tesserocr.tesseract_version()


def more_seconds(data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
    """Return the seconds that OCR of a picture's pages adds to the picture's time limit.

    Raises:
        DocumentRejected: the picture cannot be opened.
    """
    if not options.ocr:
        return 0.0
    with _open_picture(data) as image:
        return more_seconds_for(sum(1 for _ in _frames(image, limits)), limits)


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Read the text of a picture; see registry.ParseFunction.

    Raises:
        DocumentRejected: OCR is off, or the picture is damaged, too large, or has no text.
    """
    if not options.ocr:
        raise DocumentScanned(
            "the document is a picture, but OCR is off", hint="set parser.ocr: true for the tenant"
        )
    pages = _Pages(data, options, limits)
    pieces = list(bounded(pages.pieces(), limits))
    if not pieces:
        pages.time.require_any()
        raise DocumentScanned(f"no text was found, not even by OCR ({pages.count:,} pages)")
    text, blocks = assembled(pieces)
    return ParsedText(
        text,
        blocks,
        pages=pages.count,
        ocr_pages=pages.time.read,
        has_lines=False,
        notes=pages.time.notes(pages.count),
    )


class _Pages:
    """A reader of a picture's pages that also counts them.

    Attributes:
        count: number of pages.
        time: time that OCR takes.
    """

    def __init__(self, data: bytes, options: ParseOptions, limits: ParseLimits) -> None:
        self._data, self._options, self._limits = data, options, limits
        self.count = 0
        self.time = OcrTime(limits)

    def pieces(self) -> Iterator[Piece]:
        options = self._options
        with (
            _open_picture(self._data) as image,
            TextReader(options.ocr_languages, options.ocr_data) as reader,
        ):
            for number in _frames(image, self._limits):
                self.count = number

                def paragraphs() -> Iterator[str]:
                    with _report_as_damage():
                        pixels = _pixels(image)
                    return reader.paragraphs(pixels)

                for text in self.time.paragraphs(paragraphs):
                    yield Piece("paragraph", text, page=number)


@contextmanager
def _open_picture(data: bytes) -> Iterator[Image]:
    import PIL.Image

    formats = [name for name, _, _ in PICTURES.values()]
    with _report_as_damage():
        image = PIL.Image.open(io.BytesIO(data), formats=formats)
    with image:
        yield image


def _frames(image: Image, limits: ParseLimits) -> Iterator[int]:
    """Go to each page of a TIFF, or the first page of other formats; yield its number from 1."""
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
    if width * height > _MOST_DECODED:
        raise DocumentTooLarge(
            f"the picture has {width:,} by {height:,} pixels, over the limit of {_MOST_DECODED:,}",
            hint="scale the picture down",
        )


@contextmanager
def _report_as_damage() -> Iterator[None]:
    """Report any error of the library as damage of the picture.

    The library's decoders raise errors of many kinds on hostile bytes, and some errors quote these
    bytes.
    """
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
            f"the picture has more pixels than the limit of {_MOST_DECODED:,}",
            hint="scale the picture down",
        ) from None
    except Exception:
        raise DocumentRejected(_DAMAGED) from None


def _pixels(image: Image) -> Pixels:
    """Return a page in shades of grey, upright, on white, scaled to a size suited for OCR."""
    import PIL.Image
    from PIL import ImageOps

    if image.format == "JPEG" and image.width * image.height > MOST_PIXELS:
        # Decode at a coarser scale first; the exact size is set below.
        image.draft("L", (image.width // 2, image.height // 2))
    image.load()
    grey = _grey(ImageOps.exif_transpose(image))
    scale = _scale(grey.width * grey.height)
    if scale != 1:
        size = (max(int(grey.width * scale), 1), max(int(grey.height * scale), 1))
        grey = grey.resize(size, PIL.Image.Resampling.LANCZOS)
    return Pixels(grey.tobytes(), grey.width, grey.height, grey.width)


def _scale(pixels: int) -> float:
    """Return the factor that enlarges or reduces a page of this many pixels."""
    fits = math.sqrt(MOST_PIXELS / pixels)
    if pixels > MOST_PIXELS:
        return fits
    return min(fits, _MOST_ENLARGED) if pixels <= _SMALL else 1.0


def _grey(image: Image) -> Image:
    import PIL.Image

    if image.mode.startswith("I;16"):
        return image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        coloured = image.convert("RGBA")
        white = PIL.Image.new("RGBA", coloured.size, "white")
        return PIL.Image.alpha_composite(white, coloured).convert("L")
    return image.convert("L")
