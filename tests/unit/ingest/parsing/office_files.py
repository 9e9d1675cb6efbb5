"""Office documents, made for the tests."""

import io
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from rag_assets.ingest.parsing.model import Block, ParsedText


def word(build: Callable[[Any], object], title: str = "") -> bytes:
    import docx

    document = docx.Document()
    document.core_properties.title = title
    build(document)
    return _saved(document)


def slides(build: Callable[[Any], object]) -> bytes:
    import pptx

    presentation = pptx.Presentation()
    build(presentation)
    return _saved(presentation)


def workbook(build: Callable[[Any], object]) -> bytes:
    import xlsxwriter

    target = io.BytesIO()
    with xlsxwriter.Workbook(target, {"in_memory": True}) as book:
        build(book)
    return target.getvalue()


def sheet(*rows: list[Any], name: str = "Plan") -> bytes:
    def build(book: Any) -> None:
        made = book.add_worksheet(name)
        for number, row in enumerate(rows):
            made.write_row(number, 0, row)

    return workbook(build)


def encrypted(data: bytes, password: str) -> bytes:
    from msoffcrypto.format.ooxml import OOXMLFile

    target = io.BytesIO()
    OOXMLFile(io.BytesIO(data)).encrypt(password, target)
    return target.getvalue()


def with_part(data: bytes, name: str, change: Callable[[bytes], bytes]) -> bytes:
    """Return a copy of an archive in which one part is changed or added."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for entry in dict.fromkeys([*old.namelist(), name]):
            content = old.read(entry) if entry in old.namelist() else b""
            new.writestr(entry, change(content) if entry == name else content)
    return target.getvalue()


def lines(parsed: ParsedText) -> list[tuple[str, str]]:
    """Return kind and text of each block; a heading's kind includes its level."""
    return [(f"{b.kind}{b.level or ''}", parsed.text[b.start : b.end]) for b in parsed.blocks]


def is_covered(parsed: ParsedText) -> bool:
    """Return whether the blocks contain all visible characters, each once and in order."""
    at = 0
    for b in parsed.blocks:
        gap, shown = parsed.text[at : b.start], parsed.text[b.start : b.end]
        if b.start < at or gap.strip() or not shown.strip():
            return False
        at = b.end
    return not parsed.text[at:].strip()


def block(parsed: ParsedText, beginning: str) -> Block:
    """Return the only block with this beginning."""
    [found] = [b for b in parsed.blocks if parsed.text.startswith(beginning, b.start)]
    return found


def _saved(document: Any) -> bytes:
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def every_part(data: bytes) -> Iterator[str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        yield from archive.namelist()
