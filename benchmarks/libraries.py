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


def _read_pdf_with_liteparse(data: bytes) -> int:
    return len(_get_lite_parser().parse(data).pages)


@cache
def _get_lite_parser() -> Any:
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


def _read_pdf_with_pdfium(data: bytes) -> int:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    try:
        for page in document:
            page.get_textpage().get_text_bounded()
        return len(document)
    finally:
        document.close()


def _read_markdown(data: bytes) -> int:
    _get_commonmark().parse(data.decode())
    return 1


@cache
def _get_commonmark() -> Any:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark").enable("table")


def _build_docling_reader(name: str) -> Callable[[bytes], int]:
    """Return a reader that uses Docling, which infers the format from a file name."""

    def read(data: bytes) -> int:
        from docling.datamodel.base_models import DocumentStream

        _get_converter().convert(DocumentStream(name=name, stream=io.BytesIO(data)))
        return 1

    return read


@cache
def _get_converter() -> Any:
    from docling.document_converter import DocumentConverter

    return DocumentConverter()


def _read_csv(data: bytes) -> int:
    import csv

    for _ in csv.reader(io.StringIO(data.decode())):
        pass
    return 1


def _read_email(data: bytes) -> int:
    from email import message_from_bytes, policy

    for part in message_from_bytes(data, policy=policy.default).walk():
        if part.get_content_maintype() == "text":
            part.get_content()
    return 1


def _read_html(data: bytes) -> int:
    from lxml import html

    html.document_fromstring(data).text_content()
    return 1


def _build_office_reader(beginning: str) -> Callable[[bytes], int]:
    """Return a reader that unpacks and parses the XML parts of an Office file with its text."""

    def read(data: bytes) -> int:
        from lxml import etree

        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for name in archive.namelist():
                if name.startswith(beginning) and name.endswith(".xml"):
                    etree.fromstring(archive.read(name))
        return 1

    return read


def _read_xlsx(data: bytes) -> int:
    from python_calamine import CalamineWorkbook

    book = CalamineWorkbook.from_filelike(io.BytesIO(data))
    for name in book.sheet_names:
        book.get_sheet_by_name(name).to_python()
    return 1


LIBRARIES: Mapping[str, tuple[Library, ...]] = {
    media_types.CSV: (Library("csv", _read_csv, below=True),),
    media_types.DOCX: (
        Library("lxml", _build_office_reader("word/document"), below=True),
        Library("docling", _build_docling_reader("a.docx")),
    ),
    media_types.EML: (Library("email", _read_email, below=True),),
    media_types.HTML: (
        Library("lxml", _read_html, below=True),
        Library("docling", _build_docling_reader("a.html")),
    ),
    media_types.MARKDOWN: (Library("markdown-it-py", _read_markdown),),
    media_types.PDF: (
        Library("liteparse", _read_pdf_with_liteparse, below=True),
        Library("pdfium", _read_pdf_with_pdfium),
    ),
    media_types.PPTX: (
        Library("lxml", _build_office_reader("ppt/slides/"), below=True),
        Library("docling", _build_docling_reader("a.pptx")),
    ),
    media_types.XLSX: (
        Library("calamine", _read_xlsx, below=True),
        Library("docling", _build_docling_reader("a.xlsx")),
    ),
}
