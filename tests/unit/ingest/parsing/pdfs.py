"""Small PDFs, some of them hostile, written by hand; with reportlab if layout matters."""

import io
import re
import zlib
from collections.abc import Sequence
from typing import Literal, TypeAlias

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


Tagged: TypeAlias = "tuple[str, Sequence[Tagged]] | tuple[int, int, int, str]"
"""A structure element with its children, or a text with its page (from 1) and place."""


def tagged(
    root: Tagged, others: Sequence[tuple[int, int, int, str, str]] = (), *, large: str = ""
) -> bytes:
    """Return a PDF with a tree of structure elements.

    Args:
        large: the text that is written in large type.
        others: texts outside the tree, each with its page, its place, and the tag that encloses it
            (such as `Artifact`) or "".
    """
    elements: list[tuple[str, int, list[str]]] = []  # type, parent, kids
    marks: dict[int, list[int]] = {}  # for each page, the element of each marked part
    lines: dict[int, list[str]] = {}

    def draw(text: tuple[int, int, int, str], before: str, after: str) -> None:
        page, x, y, shown = text
        size = 24 if shown == large else 11
        drawn = f"BT /F1 {size} Tf {x} {y} Td ({shown}) Tj ET"
        lines.setdefault(page, []).append(f"{before}\n{drawn}\n{after}")

    def add(item: Tagged, parent: int) -> None:
        if len(item) == 2:
            number = len(elements)
            elements.append((item[0], parent, []))
            if parent >= 0:
                elements[parent][2].append(f"ELEMENT{number} 0 R")
            for child in item[1]:
                add(child, number)
            return
        of_page = marks.setdefault(item[0], [])
        elements[parent][2].append(f"<</Type/MCR/Pg {item[0] + 4} 0 R/MCID {len(of_page)}>>")
        draw(item, f"/{elements[parent][0]} <</MCID {len(of_page)}>> BDC", "EMC")
        of_page.append(parent)

    for *text, tag in others:
        draw(
            (text[0], text[1], text[2], text[3]), f"/{tag} BMC" if tag else "", "EMC" if tag else ""
        )
    add(root, -1)
    pages = max(lines)
    first = 5 + 2 * pages  # the object number of the first element
    parents = "".join(
        f"{page - 1}[{' '.join(f'{first + n} 0 R' for n in of_page)}]"
        for page, of_page in sorted(marks.items())
    )
    kids = " ".join(f"{page + 4} 0 R" for page in range(1, pages + 1))
    objects = [
        "<</Type/Catalog/Pages 2 0 R/StructTreeRoot 3 0 R/MarkInfo<</Marked true>>>>",
        f"<</Type/Pages/Kids[{kids}]/Count {pages}>>",
        f"<</Type/StructTreeRoot/K {first} 0 R/ParentTree<</Nums[{parents}]>>>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *(
            f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/StructParents {page - 1}"
            f"/Contents {4 + pages + page} 0 R/Resources<</Font<</F1 4 0 R>>>>>>"
            for page in range(1, pages + 1)
        ),
        *(
            f"<</Length {len(content)}>>stream\n{content}\nendstream"
            for content in ("\n".join(lines[page]) for page in range(1, pages + 1))
        ),
        *(
            f"<</Type/StructElem/S/{type_}/P {first + parent if parent >= 0 else 3} 0 R"
            f"/K[{' '.join(kids)}]>>"
            for type_, parent, kids in elements
        ),
    ]
    numbered = (re.sub(r"ELEMENT(\d+)", lambda m: str(first + int(m[1])), o) for o in objects)
    return of_objects([each.encode("latin-1") for each in numbered])


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
