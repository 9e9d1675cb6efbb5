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


def load_documents(media_type: str) -> list[bytes]:
    """Return documents of a format; empty if it has neither a generator nor examples.

    Examples are few, so they are repeated until there are enough to measure.
    """
    if media_type in _MAKERS:
        return _MAKERS[media_type]()
    suffixes = {suffix for suffix, kind in media_types.SUFFIXES.items() if kind == media_type}
    documents = [
        path.read_bytes()
        for path in sorted(_HANDBOOK.rglob("*"))
        if path.is_file() and path.suffix.lower() in suffixes
    ]
    return documents * -(-_LEAST // len(documents)) if documents else []


def _build_many(
    build: Callable[[random.Random], bytes], count: int = 10
) -> Callable[[], list[bytes]]:
    """Return a function that builds `count` different documents."""
    return lambda: [
        build(random.Random(f"{_SEED}/{build.__name__}/{number}")) for number in range(count)
    ]


def _markdown(rng: random.Random) -> bytes:
    return prose.draw_document(rng, rng.randint(2, 12)).encode()


def _pdf(rng: random.Random) -> bytes:
    """Return a PDF of about a dozen pages of headings, paragraphs and tables."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table

    styles, story = getSampleStyleSheet(), []
    story.append(Paragraph(prose.draw_title(rng), styles["Title"]))
    for _ in range(12):
        story.append(Paragraph(prose.draw_title(rng), styles["Heading2"]))
        for _ in range(rng.randint(4, 8)):
            story += [Paragraph(prose.draw_paragraph(rng), styles["BodyText"]), Spacer(1, 6)]
        if rng.random() < 0.4:
            story.append(Table(_draw_rows(rng, 8)))
    out = io.BytesIO()
    SimpleDocTemplate(out, invariant=1).build(story)
    return out.getvalue()


def _docx(rng: random.Random) -> bytes:
    import docx

    document = docx.Document()
    document.add_heading(prose.draw_title(rng), 0)
    for _ in range(12):
        document.add_heading(prose.draw_title(rng), 1)
        for _ in range(rng.randint(4, 8)):
            document.add_paragraph(prose.draw_paragraph(rng))
        document.add_paragraph(prose.draw_sentence(rng), style="List Bullet")
    table = document.add_table(0, 3)
    for row in _draw_rows(rng, 20):
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
        slide.shapes.title.text = prose.draw_title(rng)
        slide.placeholders[1].text = "\n".join(prose.draw_sentence(rng) for _ in range(5))
        slide.notes_slide.notes_text_frame.text = prose.draw_paragraph(rng)
    out = io.BytesIO()
    deck.save(out)
    return out.getvalue()


def _xlsx(rng: random.Random) -> bytes:
    import openpyxl

    book = openpyxl.Workbook()
    for _ in range(3):
        sheet = book.create_sheet(prose.draw_slug(rng))
        for row in _draw_rows(rng, 300):
            sheet.append(row)
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def _html(rng: random.Random) -> bytes:
    parts = [f"<title>{prose.draw_title(rng)}</title><body><nav><a href='/'>Home</a></nav><main>"]
    for _ in range(12):
        parts.append(f"<h2>{prose.draw_title(rng)}</h2>")
        parts += [f"<p>{prose.draw_paragraph(rng)}</p>" for _ in range(rng.randint(4, 8))]
        parts.append(
            f"<ul><li>{prose.draw_sentence(rng)}</li><li>{prose.draw_sentence(rng)}</li></ul>"
        )
    return f"<!doctype html><html>{''.join(parts)}</main></body></html>".encode()


def _csv(rng: random.Random) -> bytes:
    return "".join(",".join(row) + "\n" for row in _draw_rows(rng, 500)).encode()


def _eml(rng: random.Random) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"] = "desk@example.org", "depot@example.org"
    mail["Subject"], mail["Date"] = prose.draw_title(rng), "Tue, 03 Mar 2026 09:00:00 +0000"
    mail.set_content("\n\n".join(prose.draw_paragraph(rng) for _ in range(20)))
    mail.add_alternative(_html(rng).decode(), subtype="html")
    return mail.as_bytes()


def _draw_rows(rng: random.Random, count: int) -> list[list[str]]:
    rows = [
        [prose.draw_slug(rng), prose.draw_title(rng), str(rng.randint(1, 999))]
        for _ in range(count)
    ]
    return [["Name", "What", "Count"], *rows]


_MAKERS: Mapping[str, Callable[[], list[bytes]]] = {
    media_types.CSV: _build_many(_csv),
    media_types.DOCX: _build_many(_docx),
    media_types.EML: _build_many(_eml),
    media_types.HTML: _build_many(_html),
    media_types.MARKDOWN: _build_many(_markdown, 200),
    media_types.PDF: _build_many(_pdf),
    media_types.PPTX: _build_many(_pptx),
    media_types.XLSX: _build_many(_xlsx),
}
