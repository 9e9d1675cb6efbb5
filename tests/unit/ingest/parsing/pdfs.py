"""Small PDFs, some of them hostile, written by hand; with reportlab if layout matters."""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from typing import Literal

Style = Literal["heading", "subheading", "body", "code"]
_FONTS = {
    "heading": ("Helvetica-Bold", 22),
    "subheading": ("Helvetica-Bold", 15),
    "body": ("Helvetica", 11),
    "code": ("Courier", 10),
}
_EDGE, _TOP, _BOTTOM = 72, 740, 60


def laid_out(
    pages: Sequence[Sequence[tuple[Style, str]]],
    *,
    title: str | None = None,
    outline: Sequence[tuple[int, int, str]] = (),
    password: str | None = None,
) -> bytes:
    """Return a PDF of lines on pages.

    Args:
        outline: (page from 1, level from 0, title) of each bookmark.
        password: encrypts the file.
    """
    from reportlab.lib.pdfencrypt import StandardEncryption
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    encryption = StandardEncryption(password, canPrint=0) if password else None
    canvas = Canvas(out, pagesize=(612, 792), encrypt=encryption, invariant=1)
    canvas.setTitle(title or "")
    for number, lines in enumerate(pages, start=1):
        for page, level, text in outline:
            if page == number:
                canvas.bookmarkPage(text)
                canvas.addOutlineEntry(text, text, level)
        y = _TOP
        for style, line in lines:
            font, size = _FONTS[style]
            y -= 22 if style in {"heading", "subheading"} else 0
            canvas.setFont(font, size)
            canvas.drawString(_EDGE, y, line)
            y -= size + 4
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def turned(pages: Sequence[Sequence[tuple[int, str]]], *, rotation: int = 0) -> bytes:
    """Return a PDF of texts, each turned counterclockwise by its angle.

    Args:
        pages: the texts of each page; the lines of a text are separated by line ends.
        rotation: clockwise rotation of the displayed pages.
    """
    from reportlab.pdfgen.canvas import Canvas

    places = {0: (72, 700), 90: (440, 100), 180: (500, 100), 270: (100, 500)}
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    for texts in pages:
        canvas.setPageRotation(rotation)
        for angle, text in texts:
            canvas.saveState()
            canvas.translate(*places[angle])
            canvas.rotate(angle)
            for number, line in enumerate(text.splitlines()):
                canvas.drawString(0, -16 * number, line)
            canvas.restoreState()
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def form(
    texts: Sequence[tuple[int, int, str]],
    *,
    boxes: Sequence[tuple[int, int, bool]] = (),
    radios: Sequence[tuple[int, int, bool]] = (),
) -> bytes:
    """Return a page of texts, check boxes and radio buttons, each with its place on the page."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    for x, y, text in texts:
        canvas.drawString(x, y, text)
    for number, (x, y, checked) in enumerate(boxes, start=1):
        canvas.acroForm.checkbox(name=f"Box {number}", x=x, y=y, size=14, checked=checked)
    for number, (x, y, selected) in enumerate(radios):
        canvas.acroForm.radio(
            name="group", value=f"v{number}", x=x, y=y, size=14, selected=selected
        )
    canvas.save()
    return out.getvalue()


def raised(lines: Sequence[Sequence[str]], *, link: str = "", footnote: str = "") -> bytes:
    """Return a page of lines in which every second part is small and raised.

    Args:
        link: the raised parts that are a link.
        footnote: a line in small type at the end of the page.
    """
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    for row, parts in enumerate(lines):
        x, y = 72.0, 700 - 20 * row
        for number, part in enumerate(parts):
            size = 7 if number % 2 else 12
            width = canvas.stringWidth(part, "Helvetica", size)
            canvas.setFont("Helvetica", size)
            canvas.drawString(x, y + (4 if number % 2 else 0), part)
            if number % 2 and part == link:
                canvas.linkURL("https://example.org", (x, y, x + width, y + 12))
            x += width
    canvas.setFont("Helvetica", 9)
    canvas.drawString(72, 80, footnote)
    canvas.save()
    return out.getvalue()


def image_only(pages: int = 1) -> bytes:
    """Return pages that consist of a picture, as a scanner makes them."""
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    picture = io.BytesIO(b"P6 2 2 255 " + bytes(range(12)))
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    for _ in range(pages):
        canvas.drawImage(ImageReader(picture), 0, 0, 612, 792)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def by_hand(
    content: bytes,
    *,
    filters: str = "",
    pages: int = 1,
    catalog: str = "",
    size: str = "612 792",
    more: Sequence[bytes] = (),
) -> bytes:
    """Return a PDF whose pages all have the same content stream.

    Args:
        content: the encoded stream.
        filters: the PDF array of filters that decode it.
        catalog: further entries of the catalog.
        size: of the pages, in points.
        more: further objects, which are numbered after the pages; these start at 4.
    """
    kids = " ".join(f"{4 + i} 0 R" for i in range(pages))
    page = (
        f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 {size}]/Contents 3 0 R"
        "/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>"
    )
    decoding = f"/Filter {filters}" if filters else ""
    return of_objects(
        [
            f"<</Type/Catalog/Pages 2 0 R{catalog}>>".encode(),
            f"<</Type/Pages/Kids[{kids}]/Count {pages}>>".encode(),
            f"<</Length {len(content)}{decoding}>>stream\n".encode() + content + b"\nendstream",
            *[page.encode()] * pages,
            *more,
        ]
    )


def of_objects(objects: Sequence[bytes]) -> bytes:
    """Return a PDF of these objects, numbered from 1; the first is the catalog."""
    out = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, body in enumerate(objects, start=1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    out += b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def bomb(megabytes: int) -> bytes:
    """Return a content stream of a few kilobytes that unpacks, in two steps, to this size."""
    packer = zlib.compressobj(9)
    block = b" " * 1_000_000
    packed = b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()
    return by_hand(zlib.compress(packed, 9), filters="[/FlateDecode/FlateDecode]")


def endless(repetitions: int) -> bytes:
    """Return a page with so many text elements that layout analysis takes very long."""
    piece = b"BT /F1 4 Tf %d %d Td (word) Tj ET\n"
    content = b"".join(piece % (i * 7 % 600, i * 13 % 780) for i in range(repetitions))
    return by_hand(zlib.compress(content), filters="/FlateDecode")


def scanned(data: bytes) -> bytes:
    """Return a PDF of pictures of another PDF's pages, at 150 dots per inch."""
    import pypdfium2
    from reportlab.lib.utils import ImageReader
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(612, 792), invariant=1)
    with pypdfium2.PdfDocument(data) as document:
        for page in document:
            picture = page.render(scale=150 / 72, grayscale=True).to_pil()
            canvas.drawImage(ImageReader(picture), 0, 0, 612, 792)
            canvas.showPage()
    canvas.save()
    return out.getvalue()


def joined(*documents: bytes) -> bytes:
    """Join the pages of several documents."""
    import pypdfium2

    out = io.BytesIO()
    with pypdfium2.PdfDocument.new() as whole:
        for data in documents:
            with pypdfium2.PdfDocument(data) as document:
                whole.import_pages(document)
        whole.save(out)
    return out.getvalue()
