from typing import Any

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import PPTX
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import block, lines, slides, with_part

TITLE_ONLY, BULLETS, BLANK = 5, 1, 6
MAIN = "ppt/presentation.xml"


def add(deck: Any, title: str, *bullets: str, notes: str = "") -> Any:
    slide = deck.slides.add_slide(deck.slide_layouts[BULLETS])
    slide.shapes.title.text = title
    slide.placeholders[1].text = "\n".join(bullets)
    if notes:
        slide.notes_slide.notes_text_frame.text = notes
    return slide


def test_each_slide_is_a_section_with_its_notes() -> None:
    def build(deck: Any) -> None:
        slide = add(deck, "Opening\vnight", "one", "two", notes="Speak slowly.\nPause.")
        slide.placeholders[1].text_frame.paragraphs[1].level = 1
        add(deck, "Second")
        deck.slides.add_slide(deck.slide_layouts[BLANK]).shapes.add_textbox(
            0, 0, 9, 9
        ).text_frame.text = "loose"
        deck.slides.add_slide(deck.slide_layouts[BLANK])

    result = parse(slides(build))
    assert lines(result) == [
        ("heading1", "Opening night"), ("list", "- one\n  - two"),
        ("paragraph", "Notes: Speak slowly.\nPause."),
        ("heading1", "Second"), ("heading1", "Slide 3"), ("paragraph", "loose"),
    ]  # fmt: skip
    assert [b.slide for b in result.blocks] == [1, 1, 1, 2, 3, 3]
    assert (result.pages, result.title, result.media_type) == (4, "Opening night", PPTX)
    assert block(result, "Notes").heading_path == ("Opening night",)


def test_tables_groups_and_numbered_items() -> None:
    from pptx.util import Inches

    def build(deck: Any) -> None:
        slide = add(deck, "Figures", "first", "second")
        for paragraph in slide.placeholders[1].text_frame.paragraphs:
            paragraph._p.get_or_add_pPr().insert(0, _element("a:buAutoNum"))
        table = slide.shapes.add_table(3, 2, 0, 0, Inches(4), Inches(2)).table
        for row, texts in enumerate((("a", "b"), ("c", "d"), ("", "e"))):
            for column, text in enumerate(texts):
                table.cell(row, column).text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        group = slide.shapes.add_group_shape()
        group.shapes.add_textbox(0, 0, 9, 9).text_frame.text = "grouped"

    assert lines(parse(slides(build))) == [
        ("heading1", "Figures"), ("list", "1. first\n2. second"),
        ("table", "a | b\nc | d\nc | e"), ("paragraph", "grouped"),
    ]  # fmt: skip


def _element(tag: str) -> Any:
    from pptx.oxml import parse_xml

    namespace = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    return parse_xml(f"<{tag} {namespace}/>")


def test_hidden_slides_and_footers_are_left_out_and_numbers_stay() -> None:
    def build(deck: Any) -> None:
        add(deck, "Hidden", "secret plan")._element.set("show", "0")
        slide = add(deck, "Shown", "text")
        slide.placeholders[1]._element.nvSpPr.nvPr.find(".//{*}ph").set("type", "ftr")

    result = parse(slides(build))
    assert [(b.slide, name) for b, (_, name) in zip(result.blocks, lines(result), strict=True)] == [
        (2, "Shown")
    ]
    assert result.pages == 2


def test_sections_stand_above_their_slides() -> None:
    def build(deck: Any) -> None:
        for name in ("One", "Two", "Three"):
            add(deck, name)

    sections = (
        b'<p:extLst><p:ext uri="x"><p14:sectionLst xmlns:p14='
        b'"http://schemas.microsoft.com/office/powerpoint/2010/main">'
        b'<p14:section name="Morning"><p14:sldIdLst><p14:sldId id="256"/><p14:sldId id="257"/>'
        b'</p14:sldIdLst></p14:section><p14:section name="Evening"><p14:sldIdLst>'
        b'<p14:sldId id="258"/></p14:sldIdLst></p14:section></p14:sectionLst></p:ext></p:extLst>'
        b"</p:presentation>"
    )
    change = lambda old: old.replace(b"</p:presentation>", sections)  # noqa: E731
    assert lines(parse(with_part(slides(build), MAIN, change))) == [
        ("heading1", "Morning"), ("heading2", "One"), ("heading2", "Two"),
        ("heading1", "Evening"), ("heading2", "Three"),
    ]  # fmt: skip


def test_the_text_of_a_smartart_graphic_is_a_list() -> None:
    data = slides(lambda deck: add(deck, "Cycle"))
    frame = (
        b'<p:graphicFrame><a:graphic><a:graphicData><dgm:relIds xmlns:dgm="http://schemas.'
        b'openxmlformats.org/drawingml/2006/diagram" xmlns:r="http://schemas.openxmlformats.org/'
        b'officeDocument/2006/relationships" r:dm="rIdD"/></a:graphicData></a:graphic>'
        b"</p:graphicFrame></p:spTree>"
    )
    relation = (
        b'<Relationship Id="rIdD" Type="http://x/diagramData" Target="../diagrams/data1.xml"/>'
        b"</Relationships>"
    )
    points = (
        b'<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" '
        b'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:pt><dgm:t><a:p><a:r>'
        b"<a:t>plan</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>do</a:t></a:r>"
        b"</a:p></dgm:t></dgm:pt></dgm:dataModel>"
    )
    slide = "ppt/slides/slide1.xml"
    data = with_part(data, slide, lambda old: old.replace(b"</p:spTree>", frame))
    rels = "ppt/slides/_rels/slide1.xml.rels"
    data = with_part(data, rels, lambda old: old.replace(b"</Relationships>", relation))
    data = with_part(data, "ppt/diagrams/data1.xml", lambda _: points)
    assert ("list", "- plan\n- do") in lines(parse(data))


def test_a_presentation_of_pictures_is_rejected() -> None:
    def build(deck: Any) -> None:
        deck.slides.add_slide(deck.slide_layouts[BLANK])

    with pytest.raises(DocumentRejected, match="no text on any visible slide"):
        parse(slides(build))


def test_merged_cells_keep_columns_and_powers_stay_apart_from_their_base() -> None:
    def build(deck: Any) -> None:
        slide = deck.slides.add_slide(deck.slide_layouts[BLANK])
        table = slide.shapes.add_table(2, 4, 0, 0, 9, 9).table
        for number, name in enumerate(["Plan", "Q1", "Q2", "Total"]):
            table.cell(0, number).text = name
        table.cell(1, 1).merge(table.cell(1, 2))
        table.cell(1, 1).text, table.cell(1, 3).text = "not offered", "10"
        power = table.cell(1, 3).text_frame.paragraphs[0].add_run()
        power.text = "6"
        power.font._element.set("baseline", "30000")

    assert lines(parse(slides(build)))[1:] == [
        ("table", "Plan | Q1 | Q2 | Total\n | not offered |  | 10^6"),
    ]  # fmt: skip
