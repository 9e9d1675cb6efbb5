"""Tagged PDFs: text in the order and structure that the file states, whatever its layout."""

import re

import pytest

from rag_assets.ingest.parsing import pdf_tags
from rag_assets.ingest.parsing.media_types import PDF
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing import pdfs
from tests.unit.ingest.parsing.office_files import lines
from tests.unit.ingest.parsing.pdfs import Tagged


def read(*children: Tagged, others: list[tuple[int, int, int, str, str]] | None = None) -> list:  # type: ignore[type-arg]
    return lines(parse(pdfs.tagged(("Document", children), others or ()), PDF))


def row(page: int, y: int, *cells: str, type_: str = "TD") -> Tagged:
    placed = [(type_, [(page, 72 + 150 * n, y, cell)]) for n, cell in enumerate(cells)]
    return "TR", placed


HEADING: Tagged = ("H1", [(1, 72, 740, "Stations")])


def test_rows_of_a_table_stay_together() -> None:
    rows = [row(1, 700 - 14 * n, f"Station {n}", f"{n} bar", "open") for n in range(30)]
    table: Tagged = ("Table", [row(1, 714, "Name", "Pressure", "State", type_="TH"), *rows])
    heading, (kind, text) = read(HEADING, table)
    assert heading == ("heading1", "Stations")
    assert kind == "table"
    header = "Name | Pressure | State"
    rows = ["Station 0 | 0 bar | open", "Station 1 | 1 bar | open"]
    assert text.split("\n")[:3] == [header, *rows]


def test_nested_items_follow_their_item_with_a_marker_each() -> None:
    inner: Tagged = ("L", [("LI", [("Lbl", [(1, 90, 680, "o ")]), ("LBody", [(1, 99, 680, "x")])])])
    items: list[Tagged] = [
        ("LI", [("Lbl", [(1, 72, 700, "1.")]), ("LBody", [(1, 90, 700, "one"), inner])]),
        ("LI", [("LBody", [(1, 72, 660, "two")])]),
    ]
    assert read(HEADING, ("L", items))[1] == ("list", "1. one\n  - o x\n- two")


def test_a_paragraph_across_pages_is_read_on_each_page() -> None:
    across: Tagged = ("P", [(1, 72, 80, "It starts here"), (2, 72, 740, "and ends here.")])
    after: Tagged = ("P", [(2, 72, 700, "The next one.")])
    parsed = parse(pdfs.tagged(("Document", [HEADING, across, after])), PDF)
    paragraphs = ["It starts here", "and ends here.", "The next one."]
    assert lines(parsed)[1:] == [("paragraph", text) for text in paragraphs]
    assert [block.page for block in parsed.blocks] == [1, 1, 2, 2]


def test_an_element_that_is_listed_twice_is_read_once() -> None:
    """With 60 levels, reading each listing would never end."""
    section: Tagged = ("P", [(1, 72, 700, "The only text.")])
    for _ in range(60):
        section = ("Sect", [section])
    data = pdfs.tagged(("Document", [HEADING, section]))
    twice = re.sub(rb"/K\[(\d+ 0 R)\]", rb"/K[\1 \1]", data)
    assert twice != data
    assert [text for _, text in lines(parse(twice, PDF))] == ["Stations", "The only text."]


def test_artifacts_and_tables_of_contents_are_left_out() -> None:
    others = [(1, 72, 770, "11/30/26, 7:13 PM", "Artifact")]
    contents: Tagged = ("TOC", [("TOCI", [(1, 72, 720, "Stations ... 1")])])
    text: Tagged = ("P", [(1, 72, 700, "Text.")])
    assert read(HEADING, contents, text, others=others) == [
        ("heading1", "Stations"), ("paragraph", "Text."),
    ]  # fmt: skip
    data = pdfs.tagged(("Document", [HEADING, text]), others)
    assert "7:13" in parse(data, PDF, ParseOptions(keep_headers_footers=True)).text


def test_blocks_within_a_paragraph_are_apart_and_other_elements_keep_their_lines() -> None:
    note: Tagged = ("Note", [(1, 72, 90, "A note.")])
    code: Tagged = ("NonStruct", [(1, 72, 600, "def f:"), (1, 72, 586, "return")])
    paragraph: Tagged = ("P", [(1, 72, 700, "Before"), note, (1, 110, 700, "after.")])
    assert read(HEADING, paragraph, code)[1:] == [
        ("paragraph", "Before"), ("paragraph", "A note."), ("paragraph", "after."),
        ("paragraph", "def f:\nreturn"),
    ]  # fmt: skip


def test_tags_of_a_part_of_the_text_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    others = [(1, 72, 600 - 14 * n, f"Line {n} has no tag.", "") for n in range(9)]
    text: Tagged = ("P", [(1, 72, 700, "Text.")])
    assert "Line 8 has no tag." in "".join(text for _, text in read(HEADING, text, others=others))
    monkeypatch.setattr(pdf_tags, "_MIN_TAGGED_SHARE", 0)
    assert len(read(HEADING, text, others=others)) == 2


def test_tags_without_headings_are_used_only_where_the_layout_shows_none() -> None:
    texts = ["Field Manual", *(f"Sentence {n} of the ordinary text." for n in range(20))]
    paragraphs: list[Tagged] = [
        ("P", [(1, 72, 740 - 16 * n, text)]) for n, text in enumerate(texts)
    ]
    tree: Tagged = ("Document", paragraphs)
    assert lines(parse(pdfs.tagged(tree), PDF)) == [("paragraph", text) for text in texts]
    large = lines(parse(pdfs.tagged(tree, large=texts[0]), PDF))
    assert large[0] == ("heading1", "Field Manual")


def test_text_in_a_tree_that_is_too_deep_is_read_by_its_layout() -> None:
    tree: Tagged = ("P", [(1, 72, 700, "Deep text.")])
    for _ in range(300):
        tree = ("Sect", [tree])
    assert "Deep text." in parse(pdfs.tagged(("Document", [HEADING, tree])), PDF).text
