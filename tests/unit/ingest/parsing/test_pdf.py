"""PDF: text, offsets, pages, headings, titles."""

from __future__ import annotations

import pytest

from rag_assets.ingest.parsing.blocks import clean_property_title
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.pdf import remove_markup
from rag_assets.ingest.parsing.registry import parse as parse_document
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.pdfs import Style

BODY: list[tuple[Style, str]] = [
    ("body", "Ordinary text of the body that runs over the whole line and says little."),
    ("body", "It goes on with another line, so that the body's size is the common one."),
]
PAGES: list[list[tuple[Style, str]]] = [
    [("heading", "Field Manual"), *BODY, ("subheading", "Setting out"), *BODY],
    [("heading", "Second Part"), *BODY, ("subheading", "Not in the outline"), *BODY],
]
OUTLINE = [(1, 0, "Field Manual"), (1, 1, "Setting out"), (2, 0, "2. Second Part")]


def parsed(data: bytes) -> ParsedText:
    return parse_document(data)


def headings(result: ParsedText) -> list[tuple[str, int, int | None]]:
    return [(result.text[b.start : b.end], b.level, b.page) for b in result.blocks if b.level]


def test_blocks_are_the_text_with_blank_lines_between() -> None:
    result = parsed(pdfs.laid_out(PAGES))
    assert "\n\n".join(result.text[b.start : b.end] for b in result.blocks) == result.text
    assert result.pages == 2
    assert [b.page for b in result.blocks] == sorted(b.page or 0 for b in result.blocks)
    assert "says little. It goes on" in result.text


def test_without_an_outline_type_sizes_tell_headings() -> None:
    result = parsed(pdfs.laid_out(PAGES))
    assert [(name, page) for name, _, page in headings(result)] == [
        ("Field Manual", 1), ("Setting out", 1), ("Second Part", 2), ("Not in the outline", 2),
    ]  # fmt: skip


def test_an_outline_confirms_headings_and_gives_their_levels() -> None:
    result = parsed(pdfs.laid_out(PAGES, outline=OUTLINE))
    assert headings(result) == [
        ("Field Manual", 1, 1), ("Setting out", 2, 1), ("Second Part", 1, 2),
    ]  # fmt: skip
    by_text = {result.text[b.start : b.end]: b for b in result.blocks}
    assert by_text["Not in the outline"].kind == "paragraph"
    assert by_text["Not in the outline"].heading_path == ("Second Part",)
    assert result.blocks[1].heading_path == ("Field Manual",)


def test_an_outline_of_other_words_removes_no_heading() -> None:
    result = parsed(pdfs.laid_out(PAGES, outline=[(1, 0, "Slide 1"), (2, 0, "Slide 2")]))
    assert len(headings(result)) == 4


def test_escapes_and_emphasis_go_and_signs_stay() -> None:
    line = r"Call f(*args, **kw) in snake_case or 2*3*4, see C:\temp and __init__ # now"
    result = parsed(pdfs.laid_out([[("heading", "A *b* \\ c"), ("body", line), *BODY]]))
    assert line in result.text
    assert result.title == "A *b* \\ c"
    assert remove_markup(r"**bold** \*star\* *it*") == "bold *star* it"


def test_the_title_in_the_metadata_wins_if_it_is_one() -> None:
    assert parsed(pdfs.laid_out(PAGES, title="The Great Manual")).title == "The Great Manual"
    assert parsed(pdfs.laid_out(PAGES, title="Microsoft Word - draft3.doc")).title == "Field Manual"
    assert parsed(pdfs.laid_out(PAGES, title="")).title == "Field Manual"


@pytest.mark.parametrize("written", [b"<FEFFD80000410042>", b"<FEFFDC00DC00>"])
@pytest.mark.parametrize("title", [b"(The Great Manual)", b"(Setting out)"])
def test_half_a_character_in_a_title_or_bookmark_costs_only_that(
    title: bytes, written: bytes
) -> None:
    whole = pdfs.laid_out(PAGES, title="The Great Manual", outline=OUTLINE)
    assert b"/Title " + title in whole
    result = parsed(whole.replace(b"/Title " + title, b"/Title " + written))
    assert result.title in {"The Great Manual", "Field Manual"}
    assert ("Second Part", 1, 2) in headings(result)


@pytest.mark.parametrize(
    ("title", "sensible"),
    [
        ("Untitled", None), ("untitled-2", None), ("report_final.pdf", None), ("  ", None),
        ("report_final", None), ("C:\\docs\\x", None), ("20240101", None), ("Document1", None),
        ("draft.docx", None), ("ab", None), ("(anonymous)", None), ("Slide 1", None),
        ("Guide to Node.js", "Guide to Node.js"), ("Résumé", "Résumé"), ("手引き書", "手引き書"),
        ("Using snake_case well", "Using snake_case well"), ("A\n b", "A b"),
        ("Input/Output Explained", "Input/Output Explained"),
    ],
)  # fmt: skip
def test_which_titles_a_person_gave(title: str, sensible: str | None) -> None:
    assert clean_property_title(title) == sensible


def test_batches_of_pages_make_one_document() -> None:
    many: list[list[tuple[Style, str]]] = [
        [("body", f"This is the text of page number {n}, unlike any other."), *BODY]
        for n in range(1, 71)
    ]
    result = parsed(pdfs.laid_out(many))
    assert result.pages == 70
    for n in (1, 32, 33, 64, 65, 70):
        at = result.text.index(f"page number {n},")
        assert next(b.page for b in result.blocks if b.start <= at < b.end) == n


def test_headers_that_repeat_go_unless_they_are_wanted() -> None:
    pages: list[list[tuple[Style, str]]] = [
        [
            ("body", "Company confidential"),
            *[("body", f"Sentence {n}{i} of its own." * 3) for i in range(30)],
        ]
        for n in range(6)
    ]
    data = pdfs.laid_out(pages)
    assert parsed(data).text.count("Company confidential") <= 1
    whole = parse_document(data, options=ParseOptions(keep_headers_footers=True))
    assert whole.text.count("Company confidential") == 6


def test_pages_that_are_all_alike_keep_their_text() -> None:
    result = parsed(pdfs.laid_out([[("heading", "Form"), *BODY]] * 40))
    assert result.text.count("says little.") == 40
