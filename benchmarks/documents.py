"""Documents to parse, by format: generated from the benchmark's prose, or from the examples."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Mapping
from email.message import EmailMessage

from benchmarks import prose
from benchmarks.measure import PROJECT
from rag_assets.ingest.parsing import media_types

_HANDBOOK = PROJECT / "examples" / "handbook"
_SEED = 4
_LEAST = 20


def documents_of(media_type: str) -> list[bytes]:
    """Return documents of a format; empty if it has neither a generator nor examples.

    Examples are few, so they are repeated until there are enough to measure.
    """
    if media_type in _MAKERS:
        return _MAKERS[media_type]()
    suffixes = {suffix for suffix, kind in media_types.SUFFIXES.items() if kind == media_type}
    found = [
        path.read_bytes()
        for path in sorted(_HANDBOOK.rglob("*"))
        if path.is_file() and path.suffix.lower() in suffixes
    ]
    return found * -(-_LEAST // len(found)) if found else []


def _made(build: Callable[[random.Random], bytes], count: int = 10) -> Callable[[], list[bytes]]:
    """Return a function that builds `count` different documents."""
    return lambda: [
        build(random.Random(f"{_SEED}/{build.__name__}/{number}")) for number in range(count)
    ]


def _markdown(rng: random.Random) -> bytes:
    return prose.document(rng, rng.randint(2, 12)).encode()


def _pdf(rng: random.Random) -> bytes:
    """Return a PDF of about a dozen pages of headings, paragraphs and tables."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    styles, story = getSampleStyleSheet(), []
    story.append(Paragraph(prose.title(rng), styles["Title"]))
    for _ in range(12):
        story.append(Paragraph(prose.title(rng), styles["Heading2"]))
        for _ in range(rng.randint(4, 8)):
            story += [Paragraph(prose.paragraph(rng), styles["BodyText"]), Spacer(1, 6)]
        if rng.random() < 0.4:
            story.append(Table(_rows(rng, 8)))
    out = io.BytesIO()
    SimpleDocTemplate(out, invariant=1).build(story)
    return out.getvalue()


def _docx(rng: random.Random) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading(prose.title(rng), 0)
    for _ in range(12):
        document.add_heading(prose.title(rng), 1)
        for _ in range(rng.randint(4, 8)):
            document.add_paragraph(prose.paragraph(rng))
        document.add_paragraph(prose.sentence(rng), style="List Bullet")
    table = document.add_table(0, 3)
    for row in _rows(rng, 20):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _pptx(rng: random.Random) -> bytes:
    import pptx

    deck = pptx.Presentation()
    for _ in range(20):
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = prose.title(rng)
        slide.placeholders[1].text = "\n".join(prose.sentence(rng) for _ in range(5))
        slide.notes_slide.notes_text_frame.text = prose.paragraph(rng)
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def _xlsx(rng: random.Random) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for _ in range(3):
        sheet = book.create_sheet(prose.slug(rng))
        for row in _rows(rng, 300):
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _html(rng: random.Random) -> bytes:
    parts = [f"<title>{prose.title(rng)}</title><body><nav><a href='/'>Home</a></nav><main>"]
    for _ in range(12):
        parts.append(f"<h2>{prose.title(rng)}</h2>")
        parts += [f"<p>{prose.paragraph(rng)}</p>" for _ in range(rng.randint(4, 8))]
        parts.append(f"<ul><li>{prose.sentence(rng)}</li><li>{prose.sentence(rng)}</li></ul>")
    return f"<!doctype html><html>{''.join(parts)}</main></body></html>".encode()


def _csv(rng: random.Random) -> bytes:
    return "".join(",".join(row) + "\n" for row in _rows(rng, 500)).encode()


def _eml(rng: random.Random) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"] = "desk@example.org", "depot@example.org"
    mail["Subject"], mail["Date"] = prose.title(rng), "Tue, 03 Mar 2026 09:00:00 +0000"
    mail.set_content("\n\n".join(prose.paragraph(rng) for _ in range(20)))
    mail.add_alternative(_html(rng).decode(), subtype="html")
    return mail.as_bytes()


def _rows(rng: random.Random, count: int) -> list[list[str]]:
    rows = [[prose.slug(rng), prose.title(rng), str(rng.randint(1, 999))] for _ in range(count)]
    return [["Name", "What", "Count"], *rows]


_MAKERS: Mapping[str, Callable[[], list[bytes]]] = {
    media_types.CSV: _made(_csv),
    media_types.DOCX: _made(_docx),
    media_types.EML: _made(_eml),
    media_types.HTML: _made(_html),
    media_types.MARKDOWN: _made(_markdown, 200),
    media_types.PDF: _made(_pdf),
    media_types.PPTX: _made(_pptx),
    media_types.XLSX: _made(_xlsx),
}
