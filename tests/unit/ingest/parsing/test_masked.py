"""Credentials in documents: none is left in text, headings or title, and no offset changes."""

from __future__ import annotations

import json

import pytest

from rag_assets.ingest.parsing.masking import mask_document
from rag_assets.ingest.parsing.model import Block, ParsedText, to_record
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.unit.ingest.conftest import Parse
from tests.unit.ingest.parsing import pdfs
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
        "# Guide\n\né🔒 {} and\nmore.\n\n## Next\n",
        "# {}\n\ntext\n\n## Next\n\ntext\n",
        "{}\n====\n\ntext\n",
        "---\ntitle: {}\n---\n\ntext\n",
        "# Guide\n\n```\n{}\n```\n",
        "- item\n- {}\n",
        "| a | b |\n|---|---|\n| {} | x |\n",
        "<!-- {} -->\n",
        "\ufeff# {}\n",
    ],
    ids=["paragraph", "atx", "setext", "front matter", "fence", "list", "table", "comment", "mark"],
)
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
    pages: list[list[tuple[Style, str]]] = [
        [BODY, *[(style, part) for part in key[:40]]],
        [*[(style, part) for part in key[40:]], BODY],
    ]
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
