"""Writes Word documents."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from examples.building import markdown
from examples.building.archives import EPOCH, with_fixed_times

if TYPE_CHECKING:
    from docx.document import Document
    from docx.text.paragraph import Paragraph


def build(source: str) -> bytes:
    """Return the document of a source: front matter (title, author, subject), then text."""
    import docx

    facts, text = markdown.front_and_text(source)
    document = docx.Document()
    about = document.core_properties
    about.title, about.author, about.subject = facts["title"], facts["author"], facts["subject"]
    about.created = about.modified = EPOCH
    document.add_paragraph(facts["title"], style="Title")
    document.add_paragraph(facts["subject"], style="Subtitle")
    for block in markdown.blocks(text):
        _add(document, block)
    target = io.BytesIO()
    document.save(target)
    return with_fixed_times(target.getvalue())


def _add(document: Document, block: markdown.Block) -> None:
    match block:
        case markdown.Heading(level, text):
            document.add_heading(text, level)
        case markdown.Table(rows):
            table = document.add_table(len(rows), len(rows[0]), "Light Grid Accent 1")
            for row, cells in zip(table.rows, rows, strict=True):
                for cell, text in zip(row.cells, cells, strict=True):
                    _write(cell.paragraphs[0], text)
            document.add_paragraph()
        case markdown.Listing(items, numbered):
            for item in items:
                style = "List Number" if numbered else "List Bullet"
                _write(document.add_paragraph(style=style), item)
        case markdown.Paragraph(text):
            _write(document.add_paragraph(), text)


def _write(paragraph: Paragraph, text: str) -> None:
    for mark, piece in markdown.runs(text):
        run = paragraph.add_run(piece)
        run.bold = mark == "strong" or None
        if mark == "code":
            run.font.name = "Courier New"
