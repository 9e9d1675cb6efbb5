"""Writes PowerPoint presentations with speaker notes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from examples.building import markdown
from examples.building.archives import EPOCH, with_fixed_times

if TYPE_CHECKING:
    from pptx.presentation import Presentation
    from pptx.slide import Slide

_TITLE, _TITLE_AND_CONTENT, _TITLE_ONLY = 0, 1, 5


def build(source: str) -> bytes:
    """Return the presentation of a source: front matter, then a slide for each heading of level 1.

    Below its heading a slide has either a list, or a table with perhaps a line above it; quoted
    paragraphs become its notes.
    """
    import pptx

    facts, text = markdown.front_and_text(source)
    presentation = pptx.Presentation()
    about = presentation.core_properties
    about.title, about.author, about.subject = facts["title"], facts["author"], facts["subtitle"]
    about.created = about.modified = EPOCH.replace(tzinfo=None)
    about.last_modified_by, about.revision = facts["author"], 1
    first = presentation.slides.add_slide(presentation.slide_layouts[_TITLE])
    first.shapes.title.text = facts["title"]
    first.placeholders[1].text = f"{facts['author']}\n{facts['subtitle']}"
    for heading, content in _by_heading(text):
        _add_slide(presentation, heading, content)
    target = io.BytesIO()
    presentation.save(target)
    return with_fixed_times(target.getvalue())


def _by_heading(text: str) -> list[tuple[str, list[markdown.Block]]]:
    slides: list[tuple[str, list[markdown.Block]]] = []
    for block in markdown.blocks(text):
        if isinstance(block, markdown.Heading):
            slides.append((block.text, []))
        else:
            slides[-1][1].append(block)
    return slides


def _add_slide(presentation: Presentation, heading: str, content: list[markdown.Block]) -> None:
    with_table = any(isinstance(block, markdown.Table) for block in content)
    layout = presentation.slide_layouts[_TITLE_ONLY if with_table else _TITLE_AND_CONTENT]
    slide = presentation.slides.add_slide(layout)
    slide.shapes.title.text = heading
    for block in content:
        match block:
            case markdown.Paragraph(words, quoted=True):
                slide.notes_slide.notes_text_frame.text = words
            case markdown.Paragraph(words):
                _text_box(slide, words)
            case markdown.Listing(items):
                slide.placeholders[1].text = "\n".join(items)
            case markdown.Table(rows):
                _table(slide, rows)


def _text_box(slide: Slide, words: str) -> None:
    from pptx.util import Cm

    box = slide.shapes.add_textbox(Cm(1.3), Cm(4.2), Cm(22), Cm(1.2))
    box.text_frame.text = words


def _table(slide: Slide, rows: tuple[tuple[str, ...], ...]) -> None:
    from pptx.util import Cm

    place = Cm(1.3), Cm(5.6), Cm(22), Cm(1.1 * len(rows))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
    for row, cells in enumerate(rows):
        for column, text in enumerate(cells):
            table.cell(row, column).text = text
