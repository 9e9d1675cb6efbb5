"""Credentials in Office documents, tables, pages and mail: none is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest

from rag_assets.ingest.parsing.masking import mask_document
from rag_assets.ingest.parsing.media_types import CSV, EML, HTML
from rag_assets.ingest.parsing.model import ParsedText, to_record
from rag_assets.ingest.parsing.registry import parse
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.unit.ingest.parsing.office_files import sheet, slides, word, workbook
from tests.unit.privacy.secrets import planted


def _document(text: str) -> bytes:
    def build(document: Any) -> None:
        document.add_paragraph(text, style="Title")
        document.add_heading(text, 1)
        document.add_paragraph(f"Use {text} here")
        document.add_paragraph(text, style="List Bullet")
        document.add_table(2, 2).cell(1, 1).text = text

    return word(build, title=f"Notes on {text}")


def _deck(text: str) -> bytes:
    def build(deck: Any) -> None:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = text
        slide.placeholders[1].text = text
        slide.notes_slide.notes_text_frame.text = f"Say {text} aloud"
        slide.shapes.add_table(1, 2, 0, 0, 9, 9).table.cell(0, 1).text = text

    return slides(build)


def _book(text: str) -> bytes:
    def build(book: Any) -> None:
        book.set_properties({"title": f"Keys {text}"})
        made = book.add_worksheet(text[:31])
        made.write_row(0, 0, ["Name", text])
        made.write_row(1, 0, ["key", text])

    return workbook(build)


def _page(text: str) -> bytes:
    return (
        f"<title>{text}</title><h1>{text}</h1><h1>x</h1><p>{text[:9]}<b>{text[9:]}</b>"
        f"<ul><li>{text}</ul><table><tr><td>{text}<td>y</table><pre>{text}</pre>"
    ).encode()


def _mail(text: str) -> bytes:
    made = EmailMessage()
    made["Subject"] = f"The key {text}"
    made["From"] = f'"{text}" <a@example.org>'
    made.set_content(f"It is\n\n{text}\n")
    made.add_attachment(f"name,value\nkey,{text}\n", subtype="csv", filename=f"{text}.csv")
    made.add_attachment(
        sheet(["a", "b"], [text, 1]), maintype="application", subtype="x", filename="x.xlsx"
    )
    made.add_attachment(b"\0", maintype="image", subtype="png", filename=f"{text}.png")
    return made.as_bytes()


MAKERS: dict[str, tuple[Callable[[str], bytes], str | None]] = {
    "docx": (_document, None),
    "pptx": (_deck, None),
    "xlsx": (_book, None),
    "csv": (lambda text: f"name,{text}\nkey,{text}\n\"{text}\",'{text}'\n".encode(), CSV),
    "html": (_page, HTML),
    "eml": (_mail, EML),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", planted.TOKENS)
@pytest.mark.parametrize("kind", MAKERS)
def test_every_place_is_masked(scanner: SecretScanner, kind: str, name: str) -> None:
    token = planted.TOKENS[name]
    make, media_type = MAKERS[kind]
    before = parse(make(token), media_type)
    after = mask_document(before, scanner)
    assert _everything(before).count(token) >= 3
    assert token not in _everything(after)
    assert (len(after.text), len(after.blocks)) == (len(before.text), len(before.blocks))
    assert [(b.start, b.end, b.slide, b.row) for b in after.blocks] == [
        (b.start, b.end, b.slide, b.row) for b in before.blocks
    ]


def _everything(parsed: ParsedText) -> str:
    return json.dumps(to_record(parsed), ensure_ascii=False)
