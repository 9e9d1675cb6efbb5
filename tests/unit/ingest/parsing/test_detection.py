import time
from contextlib import suppress

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing import media_types as types
from rag_assets.ingest.parsing.detection import detect
from tests.unit.ingest.parsing.containers import OLE2, ole2, ooxml, zipped

_OPEN_XML = "openxmlformats-officedocument."
WORD = f"{_OPEN_XML}wordprocessingml.document.main+xml"
SLIDES = f"{_OPEN_XML}presentationml.presentation.main+xml"
SHEETS = f"{_OPEN_XML}spreadsheetml.sheet.main+xml"
HTML = b"<!DOCTYPE html>\n<title>x</title>"
MAIL = b"From: a@example.org\nTo: b@example.org\nSubject: x\nMessage-ID: <1@example.org>\n\nHello"
PYTHON = "text/x-python"


@pytest.mark.parametrize("declared", [None, types.MARKDOWN, types.PDF, types.XLSX, types.HTML])
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"%PDF-1.7 \n", types.PDF),
        (b"\xef\xbb\xbf\n%PDF-1.7 \n", types.PDF),
        (b"\xff\xfejunk%PDF-1.7 \xff"[2:], types.PDF),
        (ooxml(WORD), types.DOCX),
        (ooxml(WORD, encoding="utf-16"), types.DOCX),
        (ooxml("ms-word.document.macroEnabled.main+xml"), types.DOCX),
        (ooxml(f"{_OPEN_XML}wordprocessingml.template.main+xml"), types.DOCX),
        (ooxml("ms-word.template.macroEnabledTemplate.main+xml"), types.DOCX),
        (ooxml(SLIDES), types.PPTX),
        (ooxml(f"{_OPEN_XML}presentationml.slideshow.main+xml"), types.PPTX),
        (ooxml("ms-powerpoint.presentation.macroEnabled.main+xml"), types.PPTX),
        (ooxml(SHEETS), types.XLSX),
        (ooxml("ms-excel.sheet.macroEnabled.main+xml"), types.XLSX),
        (HTML, types.HTML),
        (b"\xef\xbb\xbf<?xml version='1.0'?>\n<!-- a > b -->\n<html lang='en'>", types.HTML),
        ("<html>\n<p>é".encode("utf-16"), types.HTML),
        (b"<HTML>\n<p>\xe9", types.HTML),
        (MAIL, types.EML),
        (b"Received: from x\n\tby y\r\nDate: z\nFrom: a\n\n\xe9", types.EML),
    ],
)
def test_content_decides_before_the_name(data: bytes, kind: str, declared: str | None) -> None:
    assert detect(data, declared) == kind


@pytest.mark.parametrize(
    ("data", "declared", "kind"),
    [
        (b"plain words", None, types.PLAIN),
        (b"plain words", types.MARKDOWN, types.MARKDOWN),
        (b"plain words", types.RST, types.RST),
        (b"plain words", types.EML, types.EML),
        (b"a,b", "text/csv; charset=utf-8", types.CSV),
        (b"a,b", "Text/CSV", types.CSV),
        (b"# A heading", "application/octet-stream", types.MARKDOWN),
        (b"text\n\n```sh\nls\n```", None, types.MARKDOWN),
        (b"| a | b |\n|---|---|\n", None, types.MARKDOWN),
        (b"---\ntitle: x\n---\n", None, types.MARKDOWN),
        (b"see [this](https://example.org)", None, types.MARKDOWN),
        ("# A heading".encode("utf-16"), None, types.MARKDOWN),
        (b"#!/bin/sh\nif [ -n $x ]; then", None, types.PLAIN),
        (b"a < b and <html> is a tag", None, types.PLAIN),
        (b"From: Anna\nTo: all\nSubject: the roof\n\nIt leaks.", types.PLAIN, types.PLAIN),
        (HTML, PYTHON, PYTHON),
        (MAIL, "text/x-yaml", "text/x-yaml"),
        (b"They begin with %PDF-", types.PLAIN, types.PLAIN),
        (b"BM and MZ are marks, ID3 too", None, types.PLAIN),
    ],
)
def test_among_texts_the_name_decides(data: bytes, declared: str | None, kind: str) -> None:
    assert detect(data, declared) == kind


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\xff\xd8\xff\xe0", "unsupported format: a JPEG picture"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "unsupported format: a WebP picture"),
        (b"RIFF\0\0\0\0WAVEfmt ", "unsupported format: a sound recording"),
        (b"\0\0\0\x18ftypheic\0", "unsupported format: a HEIC picture"),
        (b"\0\0\0\x18ftypisom\0", "unsupported format: a video"),
        (b"BM\xff\xff\0\0", "unsupported format: a bitmap picture"),
        (b"MZ\x90\0", "unsupported format: a Windows program"),
        (b"\x1f\x8b\x08\0", "unsupported format: a gzip archive"),
        (b"x" * 257 + b"ustar\0", "unsupported format: a tar archive"),
        (b"SQLite format 3\0", "unsupported format: an SQLite database"),
        (b"PAR1\x15\0", "unsupported format: a Parquet file"),
        (rb"{\rtf1\ansi words}", "unsupported format: a rich text document (RTF)"),
        (b"%!PS-Adobe-3.0\n", "unsupported format: a PostScript document"),
        (zipped({"a.txt": "x"}), "unsupported format: a ZIP archive"),
        (zipped({}), "unsupported format: a ZIP archive"),
        (zipped({"META-INF/MANIFEST.MF": "x"}), "unsupported format: a Java archive"),
        (zipped({"mimetype": "application/epub+zip"}), "unsupported format: an e-book (EPUB)"),
        (zipped({"mimetype": "application/vnd.oasis.opendocument.text"}),
         "unsupported format: an OpenDocument text"),
        (ooxml("ms-excel.sheet.binary.macroEnabled.main"),
         "unsupported format: a binary Excel workbook (.xlsb)"),
        (ooxml(WORD)[:60], "the ZIP archive or Office document is damaged or truncated"),
        (b"PK\x03\x04" + b"PK\x01\x02" * 20_001,
         "the archive has more than 20,000 entries"),
        (ole2("Root Entry", "WordDocument"),
         "unsupported format: a Word document of the format before 2007"),
        (ole2("Workbook"), "unsupported format: an Excel workbook of the format before 2007"),
        (ole2("PowerPoint Document"),
         "unsupported format: a PowerPoint file of the format before 2007"),
        (ole2("__properties_version1.0"), "unsupported format: an Outlook message (.msg)"),
        (OLE2, "unsupported format: an OLE2 file of an unknown kind"),
        (ole2("EncryptedPackage"),
         "the encrypted Office document has a name that does not show its format"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_no_document_is_called_by_its_name(data: bytes, reason: str) -> None:
    with pytest.raises(DocumentRejected) as caught:
        detect(data, types.MARKDOWN)
    assert caught.value.message == reason


def test_an_encrypted_office_document_has_the_type_of_its_name() -> None:
    for kind in types.OOXML:
        assert detect(ole2("EncryptionInfo", "EncryptedPackage"), kind) == kind


def test_of_several_main_parts_the_name_selects_one() -> None:
    both = zipped({"[Content_Types].xml": f'"application/vnd.{WORD}" "application/vnd.{SHEETS}"'})
    assert detect(both, types.XLSX) == types.XLSX
    assert detect(both, types.PPTX) == types.DOCX


@pytest.mark.parametrize("kind", types.BINARY)
def test_a_text_with_the_name_of_another_format_is_refused(kind: str) -> None:
    with pytest.raises(DocumentRejected, match="the document is not a"):
        detect(b"words", kind)


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04" + b"PK\x05\x06" * 1_000_000,
        zipped({"[Content_Types].xml": b"application/vnd." * 3_000_000}),
        OLE2 + b"E\0n\0" * 1_500_000,
        b"<!--" * 1_500_000,
        b"<?" * 3_000_000,
        b"a:" * 3_000_000,
        b"a:\n" * 2_000_000,
        b"[](" * 2_000_000,
        b"\xff" * 6_000_000,
    ],
)
def test_telling_takes_no_time_whatever_the_bytes(data: bytes) -> None:
    started = time.process_time()
    with suppress(DocumentRejected):
        detect(data)
    assert time.process_time() - started < 1


def test_every_suffix_has_a_type_that_is_detected() -> None:
    assert types.find_media_type("a/B.PDF") == types.PDF
    assert types.find_media_type("x.docm") == types.DOCX
    assert types.find_media_type("x.tsx") == "text/x-typescript"
    assert types.find_media_type("Makefile") is None
