"""Builds scanned pages: slightly rotated pictures in a PDF, without text."""

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
"""Maximum mean difference of two tiles, in shades of grey, that is not visible."""


def build(source: str) -> bytes:
    """Render a source and scan it: 200 dpi, grey, rotated by 0.7 degrees, with grain."""
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
    """Return whether two scans look the same; the last bits depend on versions of libraries."""
    first, second = _pictures(one), _pictures(other)
    return [page.size for page in first] == [page.size for page in second] and all(
        _tiles(*pages).max() < _UNSEEN for pages in zip(first, second, strict=True)
    )


def _tiles(one: Image, other: Image) -> np.ndarray:
    """Return the mean difference of two pictures in each tile of 32 x 32 pixels."""
    import numpy as np

    difference = np.abs(np.asarray(one, np.int16) - np.asarray(other, np.int16))
    rows, columns = (size // _TILE * _TILE for size in difference.shape)
    cut = difference[:rows, :columns]
    return cut.reshape(rows // _TILE, _TILE, columns // _TILE, _TILE).mean(axis=(1, 3))


def _pictures(document: bytes) -> list[Image]:
    """Return the pages of a PDF as grey pictures."""
    import pypdfium2

    with pypdfium2.PdfDocument(document) as opened:
        return [page.render(scale=_DPI / 72, grayscale=True).to_pil() for page in opened]


def _bound(pages: list[Image]) -> bytes:
    """Return a PDF with these pictures as pages."""
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
