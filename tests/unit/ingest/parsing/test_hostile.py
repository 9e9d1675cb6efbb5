import io
import socket
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import DOCX, EML, HTML, PDF, PPTX, XLSX
from rag_assets.ingest.parsing.media_types import MARKDOWN as TEXT
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.office_files import (
    encrypted,
    every_part,
    sheet,
    slides,
    with_part,
    word,
)
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


def test_a_pdf_behind_other_bytes_is_read(parse: Parse) -> None:
    result = parse(b"HTTP junk \xff\n" + WHOLE, TEXT)
    assert isinstance(result, ParsedText)
    assert result.pages == 5


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


CANARY = "canary-in-a-file-of-this-machine"


def _document() -> bytes:
    return word(lambda document: document.add_paragraph("kept text"))


def _deck() -> bytes:
    def build(deck: Any) -> None:
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = "kept text"

    return slides(build)


def _book() -> bytes:
    return sheet(["kept text", 1], ["x", 2])


# How each kind is made, its main content's part, that part's relationships, its declared type.
KINDS: dict[str, tuple[Callable[[], bytes], str, str, str]] = {
    "docx": (_document, "word/document.xml", "word/_rels/document.xml.rels", DOCX),
    "pptx": (_deck, "ppt/slides/slide1.xml", "ppt/slides/_rels/slide1.xml.rels", PPTX),
    "xlsx": (_book, "xl/worksheets/sheet1.xml", "xl/worksheets/_rels/sheet1.xml.rels", XLSX),
}


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """Run a server; yield its address, and the requests it receives."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    asked.append(connection.recv(100))

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", asked
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


def doctype(data: bytes, part: str, declaration: str, encoding: str = "utf-8") -> bytes:
    """Return a copy in which a part declares a document type and uses its entity in all texts."""

    def change(old: bytes) -> bytes:
        xml = old.decode().partition("?>")[2].replace("kept text", "kept text &e;")
        head = f'<?xml version="1.0" encoding="{encoding}"?>'
        return f"{head}<!DOCTYPE x [{declaration}]>{xml}".encode(encoding)

    return with_part(data, part, change)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_entity_is_resolved(
    kind: str, encoding: str, tmp_path: Path, listener: tuple[str, list[bytes]]
) -> None:
    make, part, _, media_type = KINDS[kind]
    part = "xl/sharedStrings.xml" if kind == "xlsx" else part
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    url, asked = listener
    laughs = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    declarations = [
        f'<!ENTITY e SYSTEM "{secret.as_uri()}">',
        f'<!ENTITY e SYSTEM "{url}">',
        f'<!ENTITY % p SYSTEM "{url}"> %p; <!ENTITY e "">',
        f'<!ENTITY e0 "ha">{laughs}<!ENTITY e "&e11;">',
    ]
    for declaration in declarations:
        text = _text(doctype(make(), part, declaration, encoding), media_type)
        assert CANARY not in text
        assert len(text) < 1_000
    assert asked == []


def _text(data: bytes, media_type: str) -> str:
    """Return the text of a document, or the reason why it is refused."""
    try:
        return parse(data, media_type).text
    except DocumentRejected as error:
        return error.message


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_is_fetched_and_no_object_inside_is_opened(
    kind: str, listener: tuple[str, list[bytes]], tmp_path: Path
) -> None:
    make, _, rels, media_type = KINDS[kind]
    url, asked = listener
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    types = ("image", "oleObject", "attachedTemplate", "footnotes", "notesSlide", "externalLink")
    relations = "".join(
        f'<Relationship Id="bad{n}" Type="http://x/{kind_}" Target="{target}"{mode}/>'
        for n, (kind_, target, mode) in enumerate(
            (k, t, m)
            for k in types
            for t, m in (
                (url, ' TargetMode="External"'), (secret.as_uri(), ' TargetMode="External"'),
                (url, ""), ("../../../../../../../../etc/passwd", ""), ("../embeddings/b.bin", ""),
            )
        )
    )  # fmt: skip
    head = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'

    def change(old: bytes) -> bytes:
        known = (old or f"{head}</Relationships>".encode()).decode()
        return known.replace("</Relationships>", f"{relations}</Relationships>").encode()

    data = with_part(make(), rels, change)
    for name in ("vbaProject.bin", "embeddings/b.bin", "media/nested.zip"):
        data = with_part(data, f"word/{name}", lambda _: b"PK\x03\x04" + bytes(1_000))
    text = _text(data, media_type)
    assert CANARY not in text
    assert "kept text" in text
    assert asked == []


def test_a_page_and_a_mail_fetch_nothing(listener: tuple[str, list[bytes]], tmp_path: Path) -> None:
    url, asked = listener
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    page = (
        f'<!DOCTYPE html SYSTEM "{url}" [<!ENTITY e SYSTEM "{secret.as_uri()}">]>'
        f'<base href="{url}"><link rel=stylesheet href="{url}"><img src="{url}">'
        f'<iframe src="{url}"></iframe>'
        f'<script src="{url}"></script><object data="{secret.as_uri()}"></object><p>kept &e; text'
    )
    made = EmailMessage()
    made["Subject"] = "x"
    made["From"] = "a"
    made.set_content(page, subtype="html")
    external = f'message/external-body; access-type=URL; URL="{url}"'
    made.add_attachment("", filename="x.txt")
    made.get_payload(1).replace_header("Content-Type", external)  # type: ignore[union-attr]
    for data, kind in ((page.encode(), HTML), (made.as_bytes(), EML)):
        text = _text(data, kind)
        assert "kept" in text
        assert CANARY not in text
    assert asked == []


def bomb(part: str, size: int, make: Callable[[], bytes]) -> bytes:
    return with_part(make(), part, lambda old: old + b" " * size)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_bombs_are_refused_before_they_are_unpacked(kind: str) -> None:
    make, part, _, media_type = KINDS[kind]
    data = bomb(part, 40_000_000, make)
    started = time.process_time()
    with pytest.raises(DocumentRejected, match="packed like a ZIP bomb"):
        parse(data, media_type)
    with pytest.raises(DocumentRejected, match="larger than the limit of 100 bytes"):
        parse(make(), media_type, limits=ParseLimits(expanded_bytes=100))
    assert time.process_time() - started < 2


@pytest.mark.slow
def test_an_archive_of_very_many_parts_is_refused() -> None:
    target = io.BytesIO(_document())
    with zipfile.ZipFile(target, "a") as archive:
        for number in range(20_001):
            archive.writestr(zipfile.ZipInfo(f"x{number}"), b"")
    with pytest.raises(DocumentRejected, match="archive has more than 20,000"):
        parse(target.getvalue(), DOCX)


def test_an_archive_that_lies_about_its_sizes_is_damaged() -> None:
    data = bomb("word/document.xml", 1_000_000, _document)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo("word/document.xml").file_size
    lying = data.replace(size.to_bytes(4, "little"), (size - 1_000_000).to_bytes(4, "little"))
    with pytest.raises(DocumentRejected, match="damaged"):
        parse(lying, DOCX)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cut_and_altered_documents_are_refused_or_read(kind: str) -> None:
    make, _, _, media_type = KINDS[kind]
    whole = make()
    for end in range(0, len(whole), len(whole) // 40):
        _text(whole[:end], media_type)
        altered = bytearray(whole)
        altered[end : end + 4] = b"\xff\x00\xff\x00"
        _text(bytes(altered), media_type)
    for part in every_part(whole):
        assert _text(with_part(whole, part, lambda _: b"<x"), media_type)
        assert _text(with_part(whole, part, lambda _: b"<x/>"), media_type)


def test_parts_nested_without_end_are_refused() -> None:
    nested = b"<w:sdt><w:sdtContent>" * 50_000
    data = with_part(
        _document(), "word/document.xml", lambda old: old.replace(b"<w:body>", b"<w:body>" + nested)
    )
    with pytest.raises(DocumentRejected, match="not well-formed"):
        parse(data, DOCX)


def test_cells_far_apart_are_refused_unless_they_are_empty() -> None:
    far = b'<row r="1048576"><c r="XFD1048576" s="0">%s</c></row></sheetData>'
    part = "xl/worksheets/sheet1.xml"

    def book(cell: bytes) -> bytes:
        return with_part(_book(), part, lambda old: old.replace(b"</sheetData>", cell))

    with pytest.raises(DocumentRejected, match=r"extends over 17,179,869,184 cells"):
        parse(book(far % b"<v>1</v>"), XLSX)
    empty = b'<row r="1048576"><c r="XFD1048576" s="0"/></row></sheetData>'
    assert "kept text" in parse(book(empty), XLSX).text


def test_merged_ranges_over_the_whole_sheet_cost_nothing() -> None:
    ranges = b"<mergeCells>" + b'<mergeCell ref="A1:XFD1048576"/>' * 20_000 + b"</mergeCells>"
    part = "xl/worksheets/sheet1.xml"
    end = b"</sheetData>"
    data = with_part(_book(), part, lambda old: old.replace(end, end + ranges))
    started = time.process_time()
    assert "kept text" in _text(data, XLSX)
    assert time.process_time() - started < 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_passwords_open_what_is_encrypted(kind: str) -> None:
    make, _, _, media_type = KINDS[kind]
    data = encrypted(make(), "open sesame")
    with pytest.raises(DocumentRejected, match="the document is encrypted and needs a password"):
        parse(data, media_type)
    with pytest.raises(DocumentRejected, match=r"none of parser\.passwords opens it") as error:
        parse(data, media_type, ParseOptions(passwords=("wrong",)))
    assert "wrong" not in f"{error.value.message} {error.value.hint}"
    opened = parse(data, media_type, ParseOptions(passwords=("wrong", "open sesame")))
    assert "kept text" in opened.text


@pytest.mark.slow
def test_all_formats_are_read_in_a_confined_process(parse: Parse) -> None:
    made = EmailMessage()
    made["Subject"] = "all"
    made["From"] = "a"
    made.set_content("body")
    for name, (make, _, _, _) in KINDS.items():
        made.add_attachment(make(), maintype="a", subtype="b", filename=f"x.{name}")
    made.add_attachment("<p>kept text", subtype="html", filename="x.html")
    result = parse(made.as_bytes(), EML)
    assert isinstance(result, ParsedText)
    assert result.text.count("kept text") == 4
    assert result.media_type == EML
