from typing import Any

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.docx import ListPosition, Numbering, Styles
from rag_assets.ingest.parsing.media_types import DOCX
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import block, lines, with_part, word

MAIN = "word/document.xml"
W_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def parsed(build: Any, **facts: str) -> ParsedText:
    return parse(word(build, **facts))


def body(xml: str) -> ParsedText:
    """Parse a document with this XML as its body."""
    new = f"<w:document {W_NAMESPACE}><w:body>{xml}</w:body></w:document>"
    return parse(with_part(word(lambda _: None), MAIN, lambda _: new.encode()))


def test_blocks_are_the_text_with_blank_lines_between() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Field manual", style="Title")
        document.add_heading("Setting out", 1)
        document.add_paragraph("Water, map.\tBoots.")
        document.add_heading("Alone", 2)
        document.add_paragraph("print('x')\tend", style="macro")

    result = parsed(build)
    assert lines(result) == [
        ("heading1", "Field manual"), ("heading1", "Setting out"),
        ("paragraph", "Water, map. Boots."), ("heading2", "Alone"), ("code", "print('x')\tend"),
    ]  # fmt: skip
    assert "\n\n".join(result.text[b.start : b.end] for b in result.blocks) == result.text
    assert block(result, "print").heading_path == ("Setting out", "Alone")
    assert (result.title, result.media_type, result.pages) == ("Field manual", DOCX, None)
    assert not result.has_lines
    assert {b.page for b in result.blocks} == {None}


def test_a_title_in_the_properties_counts_where_no_paragraph_is_one() -> None:
    assert parsed(lambda d: d.add_heading("First", 1), title="The manual").title == "The manual"
    assert parsed(lambda d: d.add_heading("First", 1), title="draft3.docx").title == "First"


def test_styles_of_other_languages_and_of_ones_own_make_headings() -> None:
    def build(document: Any) -> None:
        own = document.styles.add_style("Kapitel", 1)
        own.base_style = document.styles["Heading 2"]
        document.add_paragraph("Own", style="Kapitel")
        document.add_paragraph("Direct")._p.get_or_add_pPr().append(outline_level(3))
        body = document.add_paragraph("Body after all", style="Kapitel")
        body._p.get_or_add_pPr().append(outline_level(9))

    assert lines(parsed(build)) == [
        ("heading2", "Own"), ("heading4", "Direct"), ("paragraph", "Body after all"),
    ]  # fmt: skip


def outline_level(level: int) -> Any:
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    element = OxmlElement("w:outlineLvl")
    element.set(qn("w:val"), str(level))
    return element


def test_styles_that_are_based_on_each_other_end() -> None:
    from lxml import etree

    root = etree.fromstring(
        f'<w:styles {W_NAMESPACE}><w:style w:styleId="a"><w:name w:val="A"/><w:basedOn w:val="b"/>'
        '</w:style><w:style w:styleId="b"><w:name w:val="heading 3"/><w:basedOn w:val="a"/>'
        "</w:style></w:styles>"
    )
    assert Styles(root).get("a").level == 3
    assert Styles(None).get("a").level == 0


def test_lists_are_blocks_with_their_items_on_lines() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("one", style="List Bullet")
        document.add_paragraph("two", style="List Bullet")
        document.add_paragraph("text")
        document.add_paragraph("first", style="List Number")
        document.add_paragraph("second\nline", style="List Number")

    assert lines(parsed(build)) == [
        ("list", "- one\n- two"), ("paragraph", "text"), ("list", "1. first\n2. second\n  line"),
    ]  # fmt: skip


def test_numbers_are_counted_as_word_prints_them() -> None:
    from lxml import etree

    def level(depth: int, kind: str, pattern: str, start: int = 1) -> str:
        shown = f'<w:numFmt w:val="{kind}"/><w:lvlText w:val="{pattern}"/>'
        return f'<w:lvl w:ilvl="{depth}"><w:start w:val="{start}"/>{shown}</w:lvl>'

    kinds = level(0, "upperRoman", "%1.", 4) + level(1, "lowerLetter", "%1.%2)")
    root = etree.fromstring(
        f'<w:numbering {W_NAMESPACE}><w:abstractNum w:abstractNumId="7">{kinds}</w:abstractNum>'
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
        '<w:num w:numId="2"><w:abstractNumId w:val="7"/><w:lvlOverride w:ilvl="0">'
        '<w:startOverride w:val="9"/></w:lvlOverride></w:num></w:numbering>'
    )
    numbering = Numbering(root)
    places = [(1, 0), (1, 1), (1, 1), (1, 0), (1, 1), (2, 0), (2, 0), (5, 0)]
    assert [numbering.count_next_item(ListPosition(*place)) for place in places] == [
        "IV.", "IV.a)", "IV.b)", "V.", "V.a)", "IX.", "X.", "-",
    ]  # fmt: skip


def test_tables_are_lines_and_merged_cells_are_read_in_each_row() -> None:
    def build(document: Any) -> None:
        table = document.add_table(3, 3)
        for row, texts in enumerate((("a", "b", "c"), ("d", "e", "f"), ("", "g", "h"))):
            for column, text in enumerate(texts):
                table.cell(row, column).text = text
        table.cell(1, 0).merge(table.cell(2, 0))
        table.cell(0, 1).merge(table.cell(0, 2))
        inner = table.cell(2, 2).add_table(1, 2)
        inner.cell(0, 0).text = "in"
        inner.cell(0, 1).text = "side"

    assert lines(parsed(build)) == [("table", "a | b c\nd | e | f\nd | g | h in | side;")]


def test_a_table_of_one_cell_is_a_frame_around_text() -> None:
    def build(document: Any) -> None:
        cell = document.add_table(1, 1).cell(0, 0)
        cell.text = "framed"
        cell.add_paragraph("Heading", style="Heading 1")

    assert lines(parsed(build)) == [("paragraph", "framed"), ("heading1", "Heading")]


def test_what_the_author_took_out_is_not_read() -> None:
    result = body(
        "<w:p><w:r><w:t>kept </w:t></w:r><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>inserted</w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r>"
        "<w:moveFrom><w:r><w:t>moved away</w:t></w:r></w:moveFrom>"
        "<w:r><w:instrText>HYPERLINK</w:instrText></w:r></w:p>"
        "<w:tbl><w:tr><w:trPr><w:del/></w:trPr><w:tc><w:p><w:r><w:t>row</w:t></w:r></w:p></w:tc>"
        "<w:tc/></w:tr></w:tbl>"
    )
    assert lines(result) == [("paragraph", "kept inserted")]


STYLES = """
  <w:style w:type="character" w:styleId="Note"><w:name w:val="note"/>
    <w:rPr><w:vanish/></w:rPr></w:style>
  <w:style w:type="character" w:styleId="Shown"><w:name w:val="shown"/><w:basedOn w:val="Note"/>
    <w:rPr><w:vanish w:val="0"/></w:rPr></w:style>
  <w:style w:type="paragraph" w:styleId="Guide"><w:name w:val="guide"/>
    <w:rPr><w:vanish w:val="true"/></w:rPr></w:style>
  <w:style w:type="paragraph" w:styleId="Hilfe"><w:name w:val="Hilfe"/>
    <w:basedOn w:val="Guide"/></w:style>
"""


def test_text_that_a_style_hides_is_left_out() -> None:
    def run(text: str, properties: str = "") -> str:
        return f"<w:r><w:rPr>{properties}</w:rPr><w:t>{text}</w:t></w:r>"

    hilfe = '<w:pPr><w:pStyle w:val="Hilfe"/></w:pPr>'
    shown = '<w:vanish w:val="false"/>'
    xml = (
        f"""<w:p>{run("kept", '<w:rStyle w:val="Shown"/>')}"""
        f"""{run("price", '<w:rStyle w:val="Note"/>')}</w:p>"""
        f"<w:p>{hilfe}{run('Hinweis')}{run('sichtbar', shown)}</w:p>"
        f"<w:tbl><w:tr><w:tc><w:p>{run('cell')}</w:p></w:tc>"
        f"<w:tc><w:p>{hilfe}{run('Hinweis')}</w:p></w:tc></w:tr></w:tbl>"
    )
    document = f"<w:document {W_NAMESPACE}><w:body>{xml}</w:body></w:document>"
    styles = f"<w:styles {W_NAMESPACE}>{STYLES}</w:styles>"
    data = with_part(word(lambda _: None), MAIN, lambda _: document.encode())
    result = parse(with_part(data, "word/styles.xml", lambda _: styles.encode()))
    assert [text for _, text in lines(result)] == ["kept", "sichtbar", "cell"]


def form_field(data: str, shown: str = "") -> str:
    middle = '<w:r><w:fldChar w:fldCharType="separate"/></w:r>' if shown else ""
    return (
        f'<w:p><w:r><w:t>Answer: </w:t></w:r><w:r><w:fldChar w:fldCharType="begin"><w:ffData>{data}'
        f"</w:ffData></w:fldChar></w:r><w:r><w:instrText> FORM </w:instrText></w:r>{middle}"
        f'<w:r><w:t>{shown}</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
    )


ENTRIES = '<w:listEntry w:val="Nord"/><w:listEntry w:val="Süd"/>'


@pytest.mark.parametrize(
    ("data", "shown", "answer"),
    [
        (f'<w:ddList><w:result w:val="1"/>{ENTRIES}</w:ddList>', "", "Süd"),
        (f'<w:ddList><w:default w:val="1"/>{ENTRIES}</w:ddList>', "", "Süd"),
        (f"<w:ddList>{ENTRIES}</w:ddList>", "", "Nord"),
        (f'<w:ddList><w:result w:val="7"/>{ENTRIES}</w:ddList>', "", ""),
        (f"<w:ddList>{ENTRIES}</w:ddList>", "Nord", "Nord"),
        ("<w:checkBox><w:checked/></w:checkBox>", "", "☒"),
        ('<w:checkBox><w:default w:val="1"/></w:checkBox>', "", "☒"),
        ('<w:checkBox><w:default w:val="1"/><w:checked w:val="0"/></w:checkBox>', "", "☐"),
        ("<w:checkBox><w:sizeAuto/></w:checkBox>", "", "☐"),
        ("<w:textInput/>", "Solveig", "Solveig"),
    ],
)
def test_the_choices_in_a_form_are_text(data: str, shown: str, answer: str) -> None:
    [(_, text)] = lines(body(form_field(data, shown)))
    assert text == f"Answer: {answer}".strip()


def test_content_controls_links_formulas_and_symbols_are_text() -> None:
    result = body(
        "<w:sdt><w:sdtContent><w:p><w:r><w:t>control</w:t></w:r></w:p></w:sdtContent></w:sdt>"
        "<w:p><w:hyperlink><w:r><w:t>link</w:t></w:r></w:hyperlink><w:r><w:tab/><w:t>non</w:t>"
        '<w:noBreakHyphen/><w:t>stop</w:t><w:br/><w:sym w:char="2192"/><w:sym w:char="F0B7"/>'
        '<w:sym w:char="zz"/></w:r>'
        '<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">'
        "<m:r><m:t>a+b</m:t></m:r></m:oMath></w:p>"
    )
    assert lines(result) == [("paragraph", "control"), ("paragraph", "link non-stop\n→a+b")]


def test_text_boxes_follow_their_paragraph_once() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    mc = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    result = body(
        f"<w:p {mc}><w:r><w:t>text</w:t><mc:AlternateContent><mc:Choice><w:drawing>{box}"
        f"</w:drawing></mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r></w:p>"
    )
    assert lines(result) == [("paragraph", "text"), ("paragraph", "boxed")]


NOTES = (
    f'<w:footnotes {W_NAMESPACE}><w:footnote w:id="0"><w:p/></w:footnote>'
    '<w:footnote w:id="2"><w:p><w:r><w:t>a note</w:t></w:r></w:p></w:footnote></w:footnotes>'
)
RELATION = (
    b'<Relationship Id="rIdN" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
    b'relationships/footnotes" Target="footnotes.xml"/></Relationships>'
)


def test_notes_stand_at_the_end_of_their_section() -> None:
    def build(document: Any) -> None:
        document.add_heading("One", 1)
        document.add_paragraph("noted")
        document.add_paragraph("more")
        document.add_heading("Two", 1)

    reference = b"noted</w:t>" + b'<w:footnoteReference w:id="2"/>' * 3
    data = with_part(word(build), MAIN, lambda old: old.replace(b"noted</w:t>", reference))
    data = with_part(data, "word/footnotes.xml", lambda _: NOTES.encode())
    rels = "word/_rels/document.xml.rels"
    data = with_part(data, rels, lambda old: old.replace(b"</Relationships>", RELATION))
    assert lines(parse(data)) == [
        ("heading1", "One"), ("paragraph", "noted[1]"), ("paragraph", "more"),
        ("paragraph", "[1] a note"), ("heading1", "Two"),
    ]  # fmt: skip


def test_headers_footers_and_the_table_of_contents_are_left_out() -> None:
    def build(document: Any) -> None:
        document.sections[0].header.paragraphs[0].text = "confidential"
        document.sections[0].footer.paragraphs[0].text = "page"
        document.styles.add_style("toc 1", 1)
        document.add_paragraph("Chapter ..... 3", style="toc 1")
        document.add_paragraph("text")

    assert lines(parsed(build)) == [("paragraph", "text")]


def test_the_strict_form_of_the_format_is_read() -> None:
    def strict(data: bytes) -> bytes:
        return data.replace(
            b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
            b"http://purl.oclc.org/ooxml/wordprocessingml/main",
        ).replace(
            b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
            b"http://purl.oclc.org/ooxml/officeDocument/relationships",
        )

    data = word(lambda d: d.add_heading("Strict", 2))
    for part in (MAIN, "_rels/.rels", "word/_rels/document.xml.rels", "word/styles.xml"):
        data = with_part(data, part, strict)
    assert lines(parse(data)) == [("heading2", "Strict")]


def test_a_document_without_text_is_rejected() -> None:
    with pytest.raises(DocumentRejected, match="the document contains no text"):
        parsed(lambda d: d.add_paragraph(" "))


def test_cells_that_span_columns_keep_the_next_cells_in_their_columns() -> None:
    def build(document: Any) -> None:
        table = document.add_table(rows=2, cols=4)
        for number, name in enumerate(["Plan", "Q1", "Q2", "Total"]):
            table.cell(0, number).text = name
        table.cell(1, 0).text, table.cell(1, 3).text = "Sparrow", "700"
        table.cell(1, 1).merge(table.cell(1, 2)).text = "not offered"

    assert lines(parsed(build)) == [
        ("table", "Plan | Q1 | Q2 | Total\nSparrow | not offered |  | 700"),
    ]  # fmt: skip


def test_a_number_and_its_power_or_denominator_do_not_become_one_number() -> None:
    math = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
    raised = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>{}</w:t></w:r>'
    result = body(
        f"<w:p><w:r><w:t>10</w:t></w:r>{raised.format(6)}<w:r><w:t> on 1</w:t></w:r>"
        f"{raised.format('st')}</w:p><w:p {math}><m:f><m:num><m:r><m:t>12</m:t></m:r></m:num>"
        "<m:den><m:r><m:t>34</m:t></m:r></m:den></m:f><m:r><m:t>+</m:t></m:r><m:sSup><m:e><m:r>"
        "<m:t>10</m:t></m:r></m:e><m:sup><m:r><m:t>6</m:t></m:r></m:sup></m:sSup></w:p>"
    )
    assert [text for _, text in lines(result)] == ["10^6 on 1st", "12/34+10^6"]
