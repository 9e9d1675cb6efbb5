import json
from collections.abc import Callable
from email.message import EmailMessage
from typing import Any

import pytest

from rag_assets.ingest.parsing.masking import find_credential_cells, join_spans, mask_document
from rag_assets.ingest.parsing.media_types import CSV, EML, HTML, MARKDOWN, XLSX
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText, to_record
from rag_assets.ingest.parsing.registry import parse
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.office_files import sheet, slides, word, workbook
from tests.unit.ingest.parsing.pdfs import Style
from tests.unit.privacy.secrets import planted

SECRETS = {**planted.TOKENS, "aws-secret": planted.AWS_SECRET, "password": planted.PASSWORD}
BODY: tuple[Style, str] = ("body", "Ordinary text that runs over the line and sets the size.")


def line(name: str) -> str:
    """Return a line in which text of that kind is a credential."""
    before = {"aws-secret": "AWS secret key ", "password": "password = "}.get(name, "Key ")
    return before + SECRETS[name]


def parsed(parse: Parse, data: bytes) -> ParsedText:
    result = parse(data)
    assert isinstance(result, ParsedText)
    return result


def everything(result: ParsedText) -> str:
    return json.dumps(to_record(result), ensure_ascii=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(
    "page",
    [
        "# Guide\n\né🔒 {} and\nmore.\n\n## Next\n", "# {}\n\ntext\n\n## Next\n\ntext\n",
        "{}\n====\n\ntext\n", "---\ntitle: {}\n---\n\ntext\n", "# Guide\n\n```\n{}\n```\n",
        "- item\n- {}\n", "| a | b |\n|---|---|\n| {} | x |\n", "<!-- {} -->\n", "\ufeff# {}\n",
    ],
    ids=["paragraph", "atx", "setext", "front matter", "fence", "list", "table", "comment", "mark"],
)  # fmt: skip
def test_markdown_is_masked_everywhere(parse: Parse, name: str, page: str) -> None:
    source = page.format(line(name))
    result = parsed(parse, source.encode())
    source = source.removeprefix("\ufeff")
    assert SECRETS[name] not in everything(result)
    assert len(result.text) == len(source)
    assert len(result.text.encode()) == len(source.encode())
    [span] = result.masked
    assert SECRETS[name] in source[span.start : span.end]
    unmasked = result.text[: span.start] + source[span.start : span.end] + result.text[span.end :]
    assert unmasked == source


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("style", ["heading", "body", "code"])
def test_pdf_is_masked_everywhere(parse: Parse, name: str, style: Style) -> None:
    text = line(name)
    pages: list[list[tuple[Style, str]]] = [[(style, text), BODY, BODY]]
    result = parsed(parse, pdfs.laid_out(pages, outline=[(1, 0, text)]))
    assert SECRETS[name] not in everything(result)
    assert result.masked
    assert "Ordinary text" in result.text


@pytest.mark.parametrize("name", planted.TOKENS)
def test_the_title_of_a_pdf_is_masked(parse: Parse, name: str) -> None:
    token = SECRETS[name]
    result = parsed(parse, pdfs.laid_out([[BODY]], title=f"Notes on {token} here"))
    assert result.title == f"Notes on {'*' * len(token)} here"


@pytest.mark.parametrize("name", planted.TOKENS)
def test_a_token_broken_over_two_lines_of_a_pdf_is_masked(parse: Parse, name: str) -> None:
    token = SECRETS[name]
    first, second = token[: len(token) // 2], token[len(token) // 2 :]
    pages: list[list[tuple[Style, str]]] = [
        [BODY, ("body", f"the key {first}"), ("body", f"{second} is old"), BODY]
    ]
    left = everything(parsed(parse, pdfs.laid_out(pages)))
    assert first not in left
    assert second not in left


def test_a_private_key_in_markdown_is_masked_whole(parse: Parse) -> None:
    key = planted.pem()
    result = parsed(parse, f"# Keys\n\n```\n{key}\n```\n\n## After\n\ntext".encode())
    assert not any(part in result.text for part in key.splitlines())
    assert result.text.count("\n") == key.count("\n") + 8
    assert [b.heading_path for b in result.blocks][-1] == ("Keys", "After")


@pytest.mark.parametrize("style", ["body", "code"])
def test_a_private_key_in_a_pdf_is_masked_whole(parse: Parse, style: Style) -> None:
    key = planted.pem(lines=60).splitlines()
    first, second = ([(style, part) for part in half] for half in (key[:40], key[40:]))
    pages: list[list[tuple[Style, str]]] = [[BODY, *first], [*second, BODY]]
    text = parsed(parse, pdfs.laid_out(pages)).text
    assert [part for part in key if part in text] == []
    assert text.endswith("Ordinary text that runs over the line and sets the size.")


def test_a_credential_in_a_heading_known_by_its_surroundings_is_masked(parse: Parse) -> None:
    page = f"The AWS secret is\n\n## {planted.AWS_SECRET}\n\ntext below\n"
    result = parsed(parse, page.encode())
    assert planted.AWS_SECRET not in everything(result)
    assert result.title == "*" * 40
    assert result.blocks[-1].heading_path == ("*" * 40,)


def test_a_document_without_credentials_keeps_every_character(parse: Parse) -> None:
    page = "# Use\n\nSet `password: str` and read `token` from ${TOKEN}.\n"
    result = parsed(parse, page.encode())
    assert (result.text, result.masked) == (page, ())


def test_masking_keeps_all_else_that_is_known_of_a_document(parse: Parse) -> None:
    for page in (line("github"), "nothing"):
        result = parsed(parse, pdfs.laid_out([[("heading", "Guide"), ("body", page), BODY]]))
        assert result.media_type == "application/pdf"
        assert not result.has_lines
        assert bool(result.masked) is (page != "nothing")


@pytest.mark.slow
def test_the_name_of_a_sheet_is_masked(scanner: SecretScanner) -> None:
    block = Block("row", 0, 4, sheet=SECRETS["github"], row=2)
    for text in ("none", f"none {SECRETS['jwt']}"):
        [after] = mask_document(ParsedText(text, (block,)), scanner).blocks
        assert SECRETS["github"] not in (after.sheet or "")
        assert after.row == 2


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
    assert everything(before).count(token) >= 3
    assert token not in everything(after)
    assert (len(after.text), len(after.blocks)) == (len(before.text), len(before.blocks))
    assert [(b.start, b.end, b.slide, b.row) for b in after.blocks] == [
        (b.start, b.end, b.slide, b.row) for b in before.blocks
    ]


VALUE = "tr0ub4dor&3x"


def cells(data: bytes, media_type: str) -> list[str]:
    parsed = parse(data, media_type)
    return [parsed.text[span.start : span.end] for span in find_credential_cells(parsed)]


@pytest.mark.parametrize(
    "table",
    [
        f"user,password\nada,{VALUE}\nbob,none\n",
        f'user;DB Password\nada;"{VALUE}"\n',
        f"user\tapi-pwd\tnote\nada\t{VALUE}\tx1y2z3\n",
        f'"name, first",password\n"Lovelace, Ada",{VALUE}\n',
        f'note,password\n"a ""quoted"", and a comma",{VALUE}\n',
        f'note,password\n"""so, she said""",{VALUE}\n',
        f'note,password\n"",{VALUE}\n',
    ],
)
def test_a_value_below_a_column_of_passwords_is_found(table: str) -> None:
    assert cells(table.encode(), CSV) == [VALUE]


def test_a_markdown_table_and_a_sheet_are_looked_through_as_well() -> None:
    table = f"| user | **Password** |\n|---|---|\n| ada | `{VALUE}` |\n"
    assert cells(f"# Access\n\n{table}".encode(), MARKDOWN) == [VALUE]
    book = sheet(["user", "passwd"], ["ada", VALUE])
    assert cells(book, XLSX) == [VALUE]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API key", "8e9a19ab579ee25f" + "db030843a1bfe2b2"),
        ("token", "a1b2" + "c3d4"),
        ("client_secret", "mWiRTeuu" + "TOYmfNumBKU7"),
        ("password (temporary)", "Sommer" + "26"),
        ("PIN", "48" + "21"),
        ("Passwort", "zozapi" + "sovupoth"),
        ("secret", "lantern" + "Granite51!"),
        ("contraseña", "luna-walnut" + "-falcon-thunder"),
        ("pw", "?@~@" + "+#*=%"),
    ],
)
def test_whatever_a_column_or_a_label_promises_is_found(name: str, value: str) -> None:
    below = f"host,{name},owner\ndb-1,{value},ada\ndb-2,,bob\n"
    assert cells(below.encode(), CSV) == [value]
    beside = f"| setting | value |\n|---|---|\n| host | db-1 |\n| {name} | `{value}` |\n"
    assert cells(beside.encode(), MARKDOWN) == [value]


@pytest.mark.parametrize(
    "row",
    [
        "| password | string | The password of the user |", "| token_ttl | 3600 | seconds |",
        "| password | required |", "| API key | `<your-api-key>` |", "| token | $TOKEN |",
        "| password | see the vault |", "| secret | app.config.secret |", "| PIN | none |",
    ],
)  # fmt: skip
def test_a_row_about_a_credential_is_left_alone(row: str) -> None:
    table = f"| name | type |\n|---|---|\n| host | string |\n{row}\n"
    assert cells(table.encode(), MARKDOWN) == []


@pytest.mark.parametrize(
    "table",
    [
        "field,password\nlength,at least 12 characters\n",
        "user,password\nada,changeme\nbob,<your-password1>\ncy,\n",
        "design token,value\ncolour-primary-500,#ffffff\n",
        f"user,password policy\nada,{VALUE}\n",
        f"password\n{VALUE}\n",  # one column is no table, and its words are prose
    ],
)
def test_texts_about_passwords_stay_unmasked(table: str) -> None:
    assert cells(table.encode(), CSV) == []


def test_spans_that_overlap_become_one() -> None:
    spans = [MaskedSpan(5, 9, "b"), MaskedSpan(0, 3, "a"), MaskedSpan(2, 6, "c")]
    assert join_spans(spans) == (MaskedSpan(0, 9, "a"),)
