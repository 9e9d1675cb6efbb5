"""A page as an office scanner leaves it: a picture in a PDF, a little askew, and no text."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from examples.building import pdf

if TYPE_CHECKING:
    import numpy as np
    from PIL.Image import Image

_DPI = 200
_ANGLE = 0.7
_GRAIN = 7.0
_PAPER = 247
_QUALITY = 38
_TILE = 32
_UNSEEN = 8.0
"""Shades of grey by which a tile may differ on average before somebody sees it."""


def build(source: str) -> bytes:
    """Set a source, then scan it: 200 dpi, grey, turned by 0.7 degrees, with grain."""
    import numpy as np
    from PIL import Image

    pages = []
    for picture in _pictures(pdf.build(source)):
        turned = picture.rotate(_ANGLE, Image.Resampling.BICUBIC, fillcolor=_PAPER)
        grain = np.random.default_rng(7).normal(0, _GRAIN, (turned.height, turned.width))
        grey = np.minimum(np.asarray(turned), _PAPER) + grain
        pages.append(Image.fromarray(grey.clip(0, 255).astype(np.uint8)))
    return _bound(pages)


def look_alike(one: bytes, other: bytes) -> bool:
    """Whether two scans show the same to the eye; the last bits depend on libraries' versions."""
    first, second = _pictures(one), _pictures(other)
    return [page.size for page in first] == [page.size for page in second] and all(
        _tiles(*pages).max() < _UNSEEN for pages in zip(first, second, strict=True)
    )


def _tiles(one: Image, other: Image) -> np.ndarray:
    """The mean difference of two pictures in each square of 32 pixels."""
    import numpy as np

    difference = np.abs(np.asarray(one, np.int16) - np.asarray(other, np.int16))
    rows, columns = (size // _TILE * _TILE for size in difference.shape)
    cut = difference[:rows, :columns]
    return cut.reshape(rows // _TILE, _TILE, columns // _TILE, _TILE).mean(axis=(1, 3))


def _pictures(document: bytes) -> list[Image]:
    """The pages of a PDF in grey."""
    import pypdfium2

    with pypdfium2.PdfDocument(document) as opened:
        return [page.render(scale=_DPI / 72, grayscale=True).to_pil() for page in opened]


def _bound(pages: list[Image]) -> bytes:
    """The pictures as the pages of a PDF."""
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    target = io.BytesIO()
    canvas = Canvas(target, pagesize=A4, invariant=1, pageCompression=0)
    canvas.setCreator("examples/make_documents.py")
    for page in pages:
        jpeg = io.BytesIO()
        page.save(jpeg, "JPEG", quality=_QUALITY, dpi=(_DPI, _DPI))
        canvas.drawImage(ImageReader(jpeg), 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return target.getvalue()
