"""Samples as documents: written to a file, parsed, and masked as in the pipeline."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from io import BytesIO

from rag_assets.ingest.parsing import media_types
from tests.security.credentials.model import Sample, Span

_OFFICE = {
    "docx": media_types.DOCX,
    "pptx": media_types.PPTX,
    "xlsx": media_types.XLSX,
    "pdf": media_types.PDF,
}


def file_of(sample: Sample) -> tuple[bytes, str]:
    """Return the bytes of a sample's document and its media type.

    Lines with tabs become table rows if the format has tables; other lines become paragraphs.
    """
    name = str(sample.media_type)
    if name not in _OFFICE:
        return sample.text.encode(), name
    lines = sample.text.rstrip("\n").split("\n")
    return _WRITERS[name](lines), _OFFICE[name]


def spans_in(sample: Sample, parsed: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Return the spans of a sample's credentials in the parsed text, and the optional spans.

    Raises:
        LookupError: the parsed text lacks one of them.
    """
    if parsed == sample.text:
        return sample.spans, sample.may
    return _found(sample, parsed, sample.spans), _found(sample, parsed, sample.may)


def _found(sample: Sample, parsed: str, spans: Sequence[Span]) -> tuple[Span, ...]:
    """Find the text of each span, as written or unescaped; white space may differ."""
    places = [i for i, c in enumerate(parsed) if not c.isspace()]
    dense = "".join(parsed[i] for i in places)
    found = []
    for start, end in spans:
        text = "".join(sample.text[start:end].split())
        at = dense.find(text)
        if at < 0:
            text = "".join(html.unescape(text).replace('""', '"').replace("<br>", "").split())
            at = dense.find(text)
        if at < 0:
            raise LookupError(f"{sample.kind} in {sample.context} is not in the parsed text")
        found.append((places[at], places[at + len(text) - 1] + 1))
    return tuple(found)


def _docx(lines: Sequence[str]) -> bytes:
    from docx import Document

    document = Document()
    rows = [line.split("\t") for line in lines if "\t" in line]
    for line in lines:
        if "\t" not in line:
            document.add_paragraph(line)
    if rows:
        table = document.add_table(rows=0, cols=max(map(len, rows)))
        for row in rows:
            for cell, text in zip(table.add_row().cells, row, strict=False):
                cell.text = text
    return _saved(document.save)


def _pptx(lines: Sequence[str]) -> bytes:
    from pptx import Presentation
    from pptx.util import Inches

    show = Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "Notes"
    slide.placeholders[1].text = "\n".join(line for line in lines if "\t" not in line)
    rows = [line.split("\t") for line in lines if "\t" in line]
    if rows:
        columns = max(map(len, rows))
        frame = slide.shapes.add_table(
            len(rows), columns, Inches(1), Inches(3), Inches(8), Inches(2)
        )
        for i, row in enumerate(rows):
            for j, text in enumerate(row):
                frame.table.cell(i, j).text = text
    return _saved(show.save)


def _xlsx(lines: Sequence[str]) -> bytes:
    from xlsxwriter import Workbook

    stream = BytesIO()
    with Workbook(stream, {"in_memory": True}) as book:
        sheet = book.add_worksheet("Access")
        for i, line in enumerate(lines):
            for j, text in enumerate(line.split("\t")):
                sheet.write_string(i, j, text)
    return stream.getvalue()


def _pdf(lines: Sequence[str]) -> bytes:
    from reportlab.lib.pagesizes import A4
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Flowable, Paragraph, SimpleDocTemplate, Table

    stream = BytesIO()
    style = getSampleStyleSheet()["Normal"]
    story: list[Flowable] = []
    rows: list[list[Paragraph]] = []
    for line in lines:
        cells = [Paragraph(html.escape(cell), style) for cell in line.split("\t")]
        if len(cells) > 1:
            rows.append(cells)
        else:
            story.append(cells[0])
    if rows:
        story.append(
            Table(
                rows, colWidths=[140] * len(rows[0]), style=[("GRID", (0, 0), (-1, -1), 1, "black")]
            )
        )
    SimpleDocTemplate(stream, pagesize=A4, invariant=1).build(story)
    return stream.getvalue()


def _saved(save: Callable[[BytesIO], object]) -> bytes:
    stream = BytesIO()
    save(stream)
    return stream.getvalue()


_WRITERS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "pdf": _pdf,
}
