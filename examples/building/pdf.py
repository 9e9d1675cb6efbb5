"""Sets PDFs: headings with bookmarks, paragraphs, lists, tables, and for booklets the contents.

With one version of reportlab the result is the same byte for byte: fixed dates and identifiers,
standard fonts, no compression.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from reportlab.lib import colors
from reportlab.lib.pagesizes import A4, B5
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import cm
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    CondPageBreak,
    Flowable,
    Frame,
    ListFlowable,
    ListItem,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)
from reportlab.platypus.tableofcontents import TableOfContents

from examples.building import markdown

INK = colors.HexColor("#1d2b3a")
ACCENT = colors.HexColor("#0b6e75")
RULE = colors.HexColor("#c9d3d8")
SHADE = colors.HexColor("#eef3f4")
MARGIN = 2.3 * cm

BODY = ParagraphStyle(
    "body", fontName="Helvetica", fontSize=10.5, leading=15, spaceAfter=7, textColor=INK
)
ITEM = ParagraphStyle("item", BODY, spaceAfter=3)
CELL = ParagraphStyle("cell", BODY, fontSize=9, leading=12, spaceAfter=0)
HEAD = ParagraphStyle("head", CELL, fontName="Helvetica-Bold")
TITLE = ParagraphStyle("title", BODY, fontName="Helvetica-Bold", fontSize=25, leading=30)
SUBTITLE = ParagraphStyle("subtitle", BODY, fontSize=14, leading=19, textColor=ACCENT)
NOTE = ParagraphStyle("note", BODY, fontName="Helvetica-Oblique", fontSize=9.5, leading=13)
HEADINGS = {
    1: ParagraphStyle(
        "h1",
        BODY,
        fontName="Helvetica-Bold",
        fontSize=18,
        leading=23,
        spaceBefore=12,
        spaceAfter=9,
        keepWithNext=1,
    ),
    2: ParagraphStyle(
        "h2",
        BODY,
        fontName="Helvetica-Bold",
        fontSize=13,
        leading=17,
        spaceBefore=9,
        spaceAfter=5,
        textColor=ACCENT,
        keepWithNext=1,
    ),
}
ROOM = {1: 6 * cm, 2: 3.5 * cm}  # a heading with less space below it opens a new page
CONTENTS = [
    ParagraphStyle("toc1", BODY, fontName="Helvetica-Bold", leading=14, spaceBefore=3),
    ParagraphStyle("toc2", BODY, fontSize=9.5, leading=12, leftIndent=14),
]


def inline(text: str) -> str:
    """Return a paragraph of Markdown in reportlab's markup."""
    frames = {"plain": "{}", "strong": "<b>{}</b>", "code": '<font face="Courier">{}</font>'}
    return "".join(
        frames[mark].format(piece.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;"))
        for mark, piece in markdown.runs(text)
    )


def flowables(text: str, width: float) -> Iterator[Flowable]:
    """Yield reportlab's elements for the blocks of a text; the width is in points."""
    for block in markdown.blocks(text):
        match block:
            case markdown.Heading(level, words):
                yield CondPageBreak(ROOM[level])
                heading = Paragraph(inline(words), HEADINGS[level])
                heading.outline = (level - 1, words)
                yield heading
            case markdown.Table(rows):
                yield table(rows, width)
                yield Spacer(0, 10)
            case markdown.Listing(items, numbered):
                yield listing(items, numbered=numbered)
                yield Spacer(0, 5)
            case markdown.Paragraph(words):
                yield Paragraph(inline(words), BODY)


def listing(texts: Sequence[str], *, numbered: bool) -> ListFlowable:
    """Return a list as an element."""
    items = [ListItem(Paragraph(inline(text), ITEM)) for text in texts]
    marker = {"bulletFormat": "%s."} if numbered else {"start": "•"}
    return ListFlowable(
        items,
        bulletType="1" if numbered else "bullet",
        leftIndent=18,
        bulletFontSize=10.5,
        bulletColor=ACCENT,
        **marker,
    )


def measure(word: str) -> float:
    """Return the width of a bold word in a table, in points."""
    return float(stringWidth(word, HEAD.fontName, HEAD.fontSize))


def table(rows: Sequence[Sequence[str]], width: float) -> Table:
    """Return a table that repeats its header on each page."""
    columns = list(zip(*rows, strict=True))
    words = [
        max((word for cell in column for word in cell.split()), key=measure) for column in columns
    ]
    needs = [measure(word) + 13 for word in words]  # no word is broken; 12 points are padding
    shares = [min(max(map(len, column)), 46) for column in columns]
    spare = (width - sum(needs)) / sum(shares)
    cells = [
        [Paragraph(inline(cell), HEAD if row is rows[0] else CELL) for cell in row] for row in rows
    ]
    return Table(
        cells,
        colWidths=[need + spare * share for need, share in zip(needs, shares, strict=True)],
        repeatRows=1,
        style=TableStyle(
            [
                ("GRID", (0, 0), (-1, -1), 0.5, RULE),
                ("BACKGROUND", (0, 0), (-1, 0), SHADE),
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("TOPPADDING", (0, 0), (-1, -1), 4),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 5),
            ]
        ),
    )


def front(facts: dict[str, Any]) -> list[Flowable]:
    """Return the title: a cover page and the table of contents, or a heading on the first page."""
    words = [
        Paragraph(inline(facts["title"]), TITLE),
        Spacer(0, 4),
        Paragraph(inline(facts["subtitle"]), SUBTITLE),
        Paragraph(inline(facts["note"]), NOTE),
        Spacer(0, 8),
    ]
    if not facts.get("cover"):
        return words
    padding = {"TOP": 0.8, "BOTTOM": 0.8, "LEFT": 0, "RIGHT": 0}
    close = TableStyle(
        [(f"{side}PADDING", (0, 0), (-1, -1), points) for side, points in padding.items()]
    )
    contents = TableOfContents(levelStyles=CONTENTS, dotsMinLevel=0, tableStyle=close)
    heading = Paragraph("Contents", HEADINGS[1])
    return [Spacer(0, 5.5 * cm), *words, PageBreak(), heading, contents, PageBreak()]


def footer(canvas: Canvas, document: BaseDocTemplate) -> None:
    """Draw a rule, the document's name and the page number, on all pages except a cover."""
    if document.page == 1 and document.cover:
        return
    right = document.pagesize[0] - MARGIN
    canvas.saveState()
    canvas.setStrokeColor(RULE)
    canvas.line(MARGIN, 1.7 * cm, right, 1.7 * cm)
    canvas.setFont("Helvetica", 8.5)
    canvas.setFillColor(INK)
    canvas.drawString(MARGIN, 1.2 * cm, f"{document.author} · {document.title}")
    canvas.drawRightString(right, 1.2 * cm, f"Page {document.page}")
    canvas.restoreState()


def note_heading(document: BaseDocTemplate, flowable: Flowable) -> None:
    """Add a heading to the bookmarks and the table of contents."""
    outline = getattr(flowable, "outline", None)
    if outline is None:
        return
    level, text = outline
    key = re.sub(r"\W+", "-", text.lower())
    document.canv.bookmarkPage(key)
    document.canv.addOutlineEntry(text, key, level=level)
    document.notify("TOCEntry", (level, inline(text), document.page, key))


def build(source: str) -> bytes:
    """Return the PDF of a source: front matter (title, subtitle, note, author), then text.

    With `cover` it is a booklet: smaller pages, and a table of contents. With `password` nobody
    reads it without.
    """
    facts, text = markdown.front_and_text(source)
    cover, password = bool(facts.get("cover")), facts.get("password")
    page = B5 if cover else A4
    width, height = page[0] - 2 * MARGIN, page[1] - 4.3 * cm
    target = io.BytesIO()
    document = BaseDocTemplate(
        target,
        pagesize=page,
        title=facts["title"],
        author=facts["author"],
        subject=facts["subtitle"],
        creator="examples/make_documents.py",
        invariant=1,
        pageCompression=0,
        lang="en-GB",
        encrypt=StandardEncryption(password, strength=128) if password else None,
    )
    document.cover = cover
    document.afterFlowable = partial(note_heading, document)
    frame = Frame(MARGIN, 2.1 * cm, width, height, 0, 0, 0, 0)
    document.addPageTemplates(PageTemplate(frames=[frame], onPage=footer))
    document.multiBuild([*front(facts), *flowables(text, width)])
    return target.getvalue()
