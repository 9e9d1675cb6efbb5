"""Documents that cannot be parsed are refused with a reason that quotes nothing."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import MARKDOWN as TEXT
from rag_assets.ingest.parsing.media_types import PDF
from rag_assets.ingest.parsing.model import ParsedText
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.pdfs import Style

MARKER = "Xylophone"
PAGE: list[tuple[Style, str]] = [("heading", MARKER), ("body", f"{MARKER} text " * 5)]
WHOLE = pdfs.laid_out([PAGE] * 5)

REASONS = {
    "empty": (b"", TEXT, "the document is empty"),
    "white space": (b" \r\n\t\n", TEXT, "the document is empty"),
    "mark only": (b"\xef\xbb\xbf\n", TEXT, "the document is empty"),
    "unicode space": ("\u00a0\u2003\n".encode(), TEXT, "the document is empty"),
    "NUL": (f"# {MARKER}\n\0".encode(), TEXT, "the document is not text: NUL byte at offset 12"),
    "program named .md": (b"\x7fELF\x02\x01\x01\0\0", TEXT, "unsupported format: a program"),
    "picture": (b"\x89PNG\r\n\x1a\n\xff", TEXT, "unsupported format: a PNG picture"),
    "Latin-1": (f"{MARKER} \xe9t\xe9".encode("latin-1"), TEXT,
                "the document is not UTF-8 text: invalid byte at offset 10"),
    "Latin-1 after a mark": (b"\xef\xbb\xbfab\xff", TEXT,
                             "the document is not UTF-8 text: invalid byte at offset 5"),
    "cut in a character": ("# é".encode()[:-1], TEXT,
                           "the document is not UTF-8 text: invalid byte at offset 2"),
    "half of UTF-16": (f"# {MARKER}".encode("utf-16")[:-1], TEXT,
                       ("the document is not UTF-16 text, although its byte order mark says so:"
                        " error at offset 22")),
    "archive": (b"PK\x03\x04 word/document.xml", TEXT,
                "the ZIP archive or Office document is damaged or truncated"),
    "text named .pdf": (f"# {MARKER}".encode(), PDF,
                        "the document is not a PDF, although its name says so"),
    "encrypted": (pdfs.laid_out([PAGE], password="opensesame"), PDF,
                  "the document is encrypted and needs a password"),
    "truncated": (WHOLE[: len(WHOLE) // 2], PDF,
                  "the PDF is truncated: its end is missing"),
    "damaged": (b"%PDF-1.7\n" + b"junk" * 500 + b"\nstartxref\n9\n%%EOF", PDF,
                "the PDF is damaged and cannot be read"),
    "scanned": (pdfs.image_only(3), PDF,
                "the PDF has no text: scanned pages need OCR (pages without text: 3)"),
    "blank": (pdfs.by_hand(b" "), PDF,
              "the PDF has no text: scanned pages need OCR (pages without text: 1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONS)
def test_a_document_is_refused_with_its_reason(parse: Parse, name: str) -> None:
    data, media_type, reason = REASONS[name]
    result = parse(data, media_type)
    assert isinstance(result, DocumentRejected)
    assert result.message == reason
    assert MARKER not in f"{result.message} {result.hint}"


def test_content_decides_before_the_name(parse: Parse) -> None:
    for media_type in (TEXT, None):
        result = parse(WHOLE, media_type)
        assert isinstance(result, ParsedText)
        assert result.pages == 5
    about = parse(b"# About PDFs\n\nThey begin with `%PDF-`.", TEXT)
    assert isinstance(about, ParsedText)
    assert (about.title, about.pages) == ("About PDFs", None)
    behind_junk = parse(b"HTTP junk \xff\n" + WHOLE, PDF)
    assert isinstance(behind_junk, ParsedText)


def test_a_byte_order_mark_is_no_part_of_the_text(parse: Parse) -> None:
    result = parse(b"\xef\xbb\xbf# Title\r\n\r\ntext\r\n")
    assert isinstance(result, ParsedText)
    assert (result.text, result.title) == ("# Title\r\n\r\ntext\r\n", "Title")


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "word " * 2_000_000,
        "x" * 10_000_000,
        ">" * 10_000_000 + " deep",
        "\n".join("  " * i + "- a" for i in range(2_000)),
        "[" * 200_000 + "]" * 200_000,
        "<div>" * 200_000,
    ],
    ids=["one line", "one word", "quotations", "lists", "brackets", "tags"],
)
def test_large_and_deep_texts_are_parsed(parse: Parse, text: str) -> None:
    result = parse(text.encode())
    assert isinstance(result, ParsedText)
    assert len(result.blocks) == 1
    assert len(result.text) == len(text)


HELLO = b"BT /F1 12 Tf 100 700 Td (Hello) Tj ET"
TRAPS = {
    "pages that are their own children": pdfs.of_objects(
        [b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9999>>"]
    ),
    "an outline in a circle": pdfs.by_hand(
        HELLO, catalog="/Outlines 5 0 R", more=[
            b"<</First 6 0 R/Last 6 0 R>>",
            b"<</Title(x)/Parent 5 0 R/Next 6 0 R/First 6 0 R>>",
        ],
    ),
    "a page of square kilometres": pdfs.by_hand(
        b"10 10 9000000 9000000 re f", size="10000000 10000000"
    ),
    "arrays in arrays": b"%PDF-1.4\n1 0 obj\n" + b"[" * 200_000 + b"\nstartxref\n9\n%%EOF",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAPS)
@pytest.mark.parametrize("ocr", [False, True])
def test_a_trap_fails_its_document_alone(parse: Parse, name: str, ocr: bool) -> None:
    assert isinstance(parse(TRAPS[name], PDF, ocr=ocr), DocumentRejected)
    assert isinstance(parse(b"# fine"), ParsedText)


def test_an_outline_of_any_depth_is_read_as_far_as_it_makes_sense(parse: Parse) -> None:
    nested = b"<</Title(x)/Parent %d 0 R/First %d 0 R/Last %d 0 R>>"
    entries = [nested % (n - 1, n + 1, n + 1) for n in range(6, 3_000)]
    root = b"<</First 6 0 R/Last 6 0 R>>"
    result = parse(pdfs.by_hand(HELLO, catalog="/Outlines 5 0 R", more=[root, *entries]), PDF)
    assert isinstance(result, ParsedText)
    assert result.text == "Hello"
