"""Parsing libraries alone: each format read by a library without the project around it.

A format's first library is the one that the project's parser is built on, or else the one that most
people would choose; the others are for comparison. To add a format, add a row to LIBRARIES.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rag_assets.ingest.parsing import media_types


@dataclass(frozen=True, slots=True)
class Library:
    """A library and a function that reads with it.

    Attributes:
        read: reads one document entirely; returns its number of pages, or 1.
        below: whether the project's parser is built on it.
    """

    name: str
    read: Callable[[bytes], int]
    below: bool = False


def _liteparse(data: bytes) -> int:
    return len(_lite_parser().parse(data).pages)


@cache
def _lite_parser() -> Any:
    from liteparse import LiteParse

    return LiteParse(
        ocr_enabled=False,
        output_format="markdown",
        image_mode="off",
        extract_links=False,
        extract_blocks=True,
        num_workers=1,
        quiet=True,
    )


def _pdfium(data: bytes) -> int:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    try:
        for page in document:
            page.get_textpage().get_text_bounded()
        return len(document)
    finally:
        document.close()


def _markdown_it(data: bytes) -> int:
    _commonmark().parse(data.decode())
    return 1


@cache
def _commonmark() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _docling(name: str) -> Callable[[bytes], int]:
    """Return a reader that uses Docling, which infers the format from a file name."""

    def read(data: bytes) -> int:
        from docling.datamodel.base_models import DocumentStream

        _converter().convert(DocumentStream(name=name, stream=io.BytesIO(data)))
        return 1

    return read


@cache
def _converter() -> Any:
    from docling.document_converter import DocumentConverter

    return DocumentConverter()


def _csv(data: bytes) -> int:
    import csv

    for _ in csv.reader(io.StringIO(data.decode())):
        pass
    return 1


def _email(data: bytes) -> int:
    from email import message_from_bytes, policy

    for part in message_from_bytes(data, policy=policy.default).walk():
        if part.get_content_maintype() == "text":
            part.get_content()
    return 1


def _lxml_html(data: bytes) -> int:
    from lxml import html

    html.document_fromstring(data).text_content()
    return 1


def _lxml_parts(beginning: str) -> Callable[[bytes], int]:
    """Return a reader that unpacks and parses the XML parts of an Office file with its text."""

    def read(data: bytes) -> int:
        from lxml import etree

        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                if name.startswith(beginning) and name.endswith(".xml"):
                    etree.fromstring(archive.read(name))
        return 1

    return read


def _calamine(data: bytes) -> int:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    for name in book.sheet_names:
        book.get_sheet_by_name(name).to_python()
    return 1


LIBRARIES: Mapping[str, tuple[Library, ...]] = {
    media_types.CSV: (Library("csv", _csv, below=True),),
    media_types.DOCX: (
        Library("lxml", _lxml_parts("word/document"), below=True),
        Library("docling", _docling("a.docx")),
    ),
    media_types.EML: (Library("email", _email, below=True),),
    media_types.HTML: (
        Library("lxml", _lxml_html, below=True),
        Library("docling", _docling("a.html")),
    ),
    media_types.MARKDOWN: (Library("markdown-it-py", _markdown_it),),
    media_types.PDF: (Library("liteparse", _liteparse, below=True), Library("pdfium", _pdfium)),
    media_types.PPTX: (
        Library("lxml", _lxml_parts("ppt/slides/"), below=True),
        Library("docling", _docling("a.pptx")),
    ),
    media_types.XLSX: (
        Library("calamine", _calamine, below=True),
        Library("docling", _docling("a.xlsx")),
    ),
}
