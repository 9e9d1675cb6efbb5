"""HTML: the text that a reader of the page sees, and nothing else."""

import time
from contextlib import suppress

import pytest

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.media_types import HTML
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import block, lines


def read(body: str, head: str = "") -> ParsedText:
    return parse(f"<html><head>{head}</head><body>{body}</body></html>".encode(), HTML)


def test_headings_and_paragraphs() -> None:
    result = read(
        "<h1>The <em>big</em>\n page <a href='#p'>¶</a></h1>"
        "<p>One<br>two <code>x = 1</code>, three."
        "<h2>Part</h2>loose <b>text</b><div>block<p>inner</div>tail<blockquote>said</blockquote>",
        "<title>Page &amp; site</title>",
    )
    assert lines(result) == [
        ("heading1", "The big page"), ("paragraph", "One\ntwo x = 1, three."), ("heading2", "Part"),
        ("paragraph", "loose text"), ("paragraph", "block"), ("paragraph", "inner"),
        ("paragraph", "tail"), ("paragraph", "said"),
    ]  # fmt: skip
    assert block(result, "said").heading_path == ("The big page", "Part")
    assert (result.title, result.media_type, result.has_lines) == ("The big page", HTML, False)


def test_the_head_has_the_title_where_no_single_heading_does() -> None:
    assert read("<h1>A</h1><h1>B</h1><p>x", "<title>The page</title>").title == "The page"
    assert read("<h2>A</h2><p>x").title == "A"


PAGES = {
    "lists keep their nesting and numbers": (
        ("<ol><li><p>one</p><ul><li>inner<li>more <i>text</i></ul> after<li>two</ol>"
         "<dl><dt>term<dd>meaning</dl><ul><li><h3>Laid out</h3><p>as a list</ul>"),
        [("list", "1. one after\n  - inner\n  - more text\n2. two"), ("list", "- term\n  meaning"),
         ("heading3", "Laid out"), ("paragraph", "as a list")]),
    "list items keep the numbers of the page": (
        "<ol start=5><li>five<li>six<li value=9>nine<li>ten</ol>",
        [("list", "5. five\n6. six\n9. nine\n10. ten")]),
    "definitions within definitions are read once": (
        "<dl><dt>pump<dd>moves water<dd>needs oil<dl><dt>oil<dd>grade 4</dl></dl>",
        [("list", "- pump\n  moves water\n  needs oil\n- oil\n  grade 4")]),
    "definitions whose terms are buttons": (
        "<dl><dt><button aria-controls=a>Où ?</button><dd id=a hidden>Au port.</dl>",
        [("list", "- Où ?\n  Au port.")]),
    "cells that span rows are read in each row": (
        ("<table><caption>Vans</caption><thead><tr><th rowspan=2>Depot<th colspan=2>Week</thead>"
         "<tr><td>1<td>2<tr><td rowspan=3>Leeds<td>4<td>5<tr><td>6<td><tr><td>8<td>9</table>"),
        [("paragraph", "Vans"),
         ("table", "Depot | Week\nDepot | 1 | 2\nLeeds | 4 | 5\nLeeds | 6\nLeeds | 8 | 9")]),
    "cells that span columns keep the next cells in place": (
        ("<table><tr><th>Plan<th>Q1<th>Q2<th>Total<tr><td>Sparrow<td colspan=2>not offered<td>700"
         "<tr><td rowspan=2 colspan=2>Falcon<td>8<td>9<tr><td>6<td>7</table>"),
        [("table", ("Plan | Q1 | Q2 | Total\nSparrow | not offered |  | 700\n"
                    "Falcon |  | 8 | 9\nFalcon |  | 6 | 7"))]),
    "a table that lays out a page": (
        "<table><tr><td>menu<td><h2>News</h2><table><tr><td>a<td>b</table></table>",
        [("paragraph", "menu"), ("heading2", "News"), ("table", "a | b")]),
    "preformatted text keeps its lines": (
        "<pre>\n<span>def f():</span>\n    pass<br>x<button>copy</button></pre>",
        [("code", "def f():\n    pass\nx")]),
    "no navigation: it has a heading, or another class": (
        "<div class=nav><h2>Part</h2></div><div class='navy subnavigator toc'>kept</div>",
        [("heading2", "Part"), ("paragraph", "kept")]),
    "only the main part": (
        "<header>Site</header><aside>Ads</aside><main><p>text<footer>note</footer></main>",
        [("paragraph", "text"), ("paragraph", "note")]),
    "an empty main part": ("<p>Site<main></main>", [("paragraph", "Site")]),
    "a button beside the text of a title is left out": (
        "<h2>Setup <button aria-expanded=false>Copy</button></h2><div hidden>Copied</div>",
        [("heading2", "Setup")]),
    "a template that browsers show in place": (
        "<x-card><template shadowrootmode=open><p>shown</p></template></x-card>",
        [("paragraph", "shown")]),
}  # fmt: skip


@pytest.mark.parametrize(("page", "blocks"), PAGES.values(), ids=PAGES)
def test_a_page_is_read_as_a_reader_sees_it(page: str, blocks: list[tuple[str, str]]) -> None:
    assert lines(read(page)) == blocks


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ("<tr><th>Plan<th>Grenze<tr><td>Spatz<td><pre>limit = 100</pre>",
         "Plan | Grenze\nSpatz | limit = 100"),
        ("<thead><tr><th>Région<th>Bureau</thead><tr><td>Nord<td><h4>Tromsø</h4>Rue 3",
         "Région | Bureau\nNord | Tromsø Rue 3"),
        ("<tr><th><h3>cp\nfile</h3><td>copies<tr><th>mv<td>moves<td><pre>mv a</pre>",
         "cp file | copies\nmv | moves | mv a"),
    ],
)  # fmt: skip
def test_a_table_with_headings_or_code_in_its_cells_keeps_its_rows(rows: str, text: str) -> None:
    assert lines(read(f"<table>{rows}</table>")) == [("table", text)]


def test_a_table_with_longer_code_in_its_cells_keeps_the_lines_of_the_code() -> None:
    code = "<pre>if x:\n    y()</pre>"
    assert lines(read(f"<table><tr><th>Before<th>After<tr><td>{code}<td>z()</table>")) == [
        ("paragraph", "Before"), ("paragraph", "After"), ("code", "if x:\n    y()"),
        ("paragraph", "z()"),
    ]  # fmt: skip


def test_line_numbers_beside_code_are_no_table() -> None:
    numbered = "<tr><th colspan=2>a.py<tr><td><pre>1\n2</pre><td><pre>x\ny</pre>"
    assert ("code", "x\ny") in lines(read(f"<table>{numbered}</table>"))


@pytest.mark.parametrize(
    "unseen",
    [
        "<script>x</script>", "<style>x</style>", "<noscript>x</noscript>", "<nav>x</nav>",
        "<template>x</template>", "<div hidden>x</div>", "<p style='DISPLAY : none'>x</p>",
        "<div role=navigation>x</div>", "<!-- x -->", "<select><option>x</select>",
        "<footer>x</footer>", "<svg><text>x</text></svg>", "<ul hidden><li>x</ul>",
        "<table hidden><tr><td>x<td>y</table>", "<iframe>x</iframe>", "<?php x ?>",
    ],
)  # fmt: skip
def test_hidden_text_is_left_out(unseen: str) -> None:
    assert lines(read(f"<p>kept {unseen} too</p>{unseen}"))[0][1].startswith("kept")
    assert "x" not in read(f"<p>kept {unseen} too</p>{unseen}").text


@pytest.mark.parametrize(
    "unseen",
    [
        "<div class='navheader'><table><tr><td>x<td>x</table></div>", "<ul class=docnav><li>x</ul>",
        "<div class='nav-panel'><a>x</a></div>", "<div id=nav-path class=navpath>x</div>",
        "<ol id=breadcrumbs><li>x</ol>", "<div role=contentinfo>x</div>",
        "<span class='mw-editsection'>[<a>x</a>]</span>", "<a class=headerlink>x</a>",
        "<span class='sr-only'>x</span>", "<span class=lineno>x</span>",
        "<div class='navbox noprint'><table><tr><th>x<td>x</table></div>",
    ],
)  # fmt: skip
def test_navigation_of_page_generators_is_left_out(unseen: str) -> None:
    read_lines = lines(read(f"<h2>Part{unseen}</h2>{unseen}<p>kept"))
    assert read_lines == [("heading2", "Part"), ("paragraph", "kept")]


@pytest.mark.parametrize("name", ["permalink", "anchor", "anchor-link", "header-anchor"])
def test_a_link_to_a_heading_is_left_out_unless_it_contains_the_text(name: str) -> None:
    page = f"<h2>Part <a class={name}>#</a></h2><h2><a class={name}><b>Next</b></a></h2><p>kept"
    blocks = [("heading2", "Part"), ("heading2", "Next"), ("paragraph", "kept")]
    assert lines(read(page)) == blocks


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<meta charset=utf-8><p>größer €".encode(), "größer €"),
        ("<p>größer €".encode(), "größer €"),
        ("<meta charset='iso-8859-1'><p>größer €".encode("cp1252"), "größer €"),
        (b"<meta http-equiv=Content-Type content='text/html; charset=koi8-r'><p>\xd0\xd2", "пр"),
        ("<meta charset=Shift_JIS><p>日本".encode("shift_jis"), "日本"),
        ("<p>größer €".encode("cp1252"), "größer €"),
        ("<p>größer €".encode("utf-16"), "größer €"),
        ("<meta charset=utf-7><p>ü".encode(), "ü"),
        ("<meta charset=no-such><p>ü".encode(), "ü"),
        (b"<script>" + b"x" * 9_000 + b"</script><meta charset=koi8-r><p>\xd0\xd2", "пр"),
    ],
)
def test_the_encoding_is_found(data: bytes, text: str) -> None:
    assert parse(data, HTML).text == text


@pytest.mark.parametrize("tag", ["div", "b", "ul><li", "table><tr><td", "blockquote", "dl><dd"])
def test_a_page_nested_without_end_is_rejected_at_once(tag: str) -> None:
    started = time.process_time()
    with pytest.raises(DocumentRejected, match="nested too deeply"):
        parse(f"<html><{tag}>".encode() + f"<{tag}>".encode() * 100_000 + b"x", HTML)
    assert time.process_time() - started < 5


def test_a_page_nested_as_deeply_as_any_is_read() -> None:
    for tag in ("div", "span", "blockquote", "ul><li"):
        opened = f"<{tag}>" * (240 // len(tag.split("><")))
        assert "deep" in read(f"{opened}deep").text


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    ["<p>" * 200_000, "<" * 1_000_000, "&" * 500_000, "<a href=" * 200_000, "<!--" * 200_000,
     "<table>" + "<tr><td rowspan=65534 colspan=1000>x" * 20_000, "<ul>" + "<li>x" * 100_000,
     "<h1>" + "<i>x</i>" * 50_000 + "<button>x</button>" * 50_000,
     "<b role=tab>x</b>" * 50_000 + "<p role=tabpanel hidden>x" * 50_000,
     "<div " + "a=b " * 200_000 + ">x", "<p>" + "x<br>" * 200_000],
)  # fmt: skip
def test_no_page_takes_long(source: str) -> None:
    started = time.process_time()
    with suppress(DocumentRejected):
        read(source)
    assert time.process_time() - started < 10


def test_a_long_cell_that_spans_rows_is_read_once() -> None:
    long = "word " * 20_000
    result = read(f"<table><tr><td rowspan=60000>{long}<td>0" + "<tr><td>x" * 5_000 + "</table>")
    assert len(result.text) < 2 * len(long)


def test_a_page_without_text_is_rejected() -> None:
    with pytest.raises(DocumentRejected, match="no text that a reader would see"):
        read("<img src=x alt=y>")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("10<sup>6</sup> units, 2<sup>-3</sup>", "10^6 units, 2^-3"),
        ("CO<sub>2</sub>, 5 m<sup>2</sup>, the 1<sup>st</sup>", "CO2, 5 m2, the 1st"),
        ("since 2019<sup><a href='#n'>5</a></sup>", "since 2019 5"),
        ("<math><mfrac><mn>12</mn><mn>34</mn></mfrac></math>", "12/34"),
        ("<math><msup><mn>10</mn><mn>6</mn></msup></math>", "10^6"),
        ("<math><mi>E</mi><annotation encoding='application/x-tex'>E_0</annotation></math>", "E"),
    ],
)
def test_a_number_stays_apart_from_its_power_or_denominator(source: str, text: str) -> None:
    assert lines(read(f"<p>{source}")) == [("paragraph", text)]
    assert lines(read(f"<ul><li>{source}</ul>")) == [("list", f"- {text}")]


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("<h3><button type=button aria-expanded=false>Wie lange?</button></h3>", "heading3"),
        ("<h3><button><span>Wie lange?</span></button><button>Kopieren</button></h3>", "heading3"),
        ("<button aria-expanded=true><h3>Wie lange?</h3></button>", "heading3"),
        ("<div role=heading><button>Wie lange?</button></div>", "paragraph"),
    ],
)
def test_a_button_that_is_a_title_is_read_above_its_text(title: str, kind: str) -> None:
    result = read(f"<button>Menü</button>{title}<div>Zwei Wochen.</div>")
    assert lines(result) == [(kind, "Wie lange?"), ("paragraph", "Zwei Wochen.")]


@pytest.mark.parametrize(
    "page",
    [
        "<h2><button aria-expanded=false>Où ?</button></h2><div hidden>Au port.</div>",
        "<h2><button aria-expanded=false>Où ?</button></h2><div hidden=until-found>Au port.</div>",
        (
            "<div><h2><button aria-expanded=false aria-controls=s>Où ?</button></h2></div>"
            "<div id=s style='display: none'>Au port.</div>"
        ),
    ],
)
def test_a_section_that_its_title_unfolds_is_read(page: str) -> None:
    assert lines(read(page)) == [("heading2", "Où ?"), ("paragraph", "Au port.")]


@pytest.mark.parametrize(
    "page",
    [
        (
            "<ul role=tablist><li role=tab>Linux<li role=tab>Windows</ul>"
            "<div role=tabpanel>apt</div><div role=tabpanel hidden>msi</div>"
        ),
        (
            "<nav><a role=tab id=w>Windows</a><a role=tab id=l>Linux</a></nav>"
            "<div role=tabpanel aria-labelledby=l>apt</div>"
            "<div role=tabpanel aria-labelledby=w style='display:none'>msi</div>"
        ),
        (
            "<div role=tablist><button role=tab aria-controls=w>Windows</button>"
            "<button role=tab aria-controls=l>Linux</button></div>"
            "<div role=tabpanel id=l>apt</div><div role=tabpanel id=w hidden>msi</div>"
        ),
    ],
)
def test_panels_of_tabs_are_read_below_their_labels(page: str) -> None:
    assert [text for _, text in lines(read(page))] == ["Linux", "apt", "Windows", "msi"]


def test_tabs_within_a_panel_belong_to_it() -> None:
    result = read(
        "<a role=tab>Server</a><a role=tab>Client</a><div role=tabpanel><a role=tab>A</a>"
        "<a role=tab>B</a><p role=tabpanel>a<p role=tabpanel hidden>b</div>"
        "<div role=tabpanel hidden>c</div><div role=tabpanel hidden>no label</div>"
    )
    assert [text for _, text in lines(result)] == [
        "Server", "A", "a", "B", "b", "Client", "c", "no label",
    ]  # fmt: skip


def test_a_tab_that_has_a_heading_or_contains_its_panel_stays_in_place() -> None:
    page = "<div role=tab id=t><h4>Q</h4></div><div role=tabpanel aria-labelledby=t>answer</div>"
    assert lines(read(page)) == [("heading4", "Q"), ("paragraph", "answer")]
    page = "<h4><a role=tab>Q</a></h4><div role=tabpanel hidden>answer</div>"
    assert lines(read(page)) == [("heading4", "Q"), ("paragraph", "answer")]
    page = "<div role=tab id=t>Q<div role=tabpanel aria-labelledby=t>answer</div></div>"
    assert lines(read(page)) == [("paragraph", "Q"), ("paragraph", "answer")]


@pytest.mark.parametrize("placeholder", ["Loading…", "<p>Wird geladen ...</p>", "読み込み中…"])
def test_a_page_whose_main_part_is_a_placeholder_is_read_around_it(placeholder: str) -> None:
    page = f"<div><h1>Rules</h1><p>Seeds wait.</div><main id=root>{placeholder}</main>"
    assert lines(read(page)) == [("heading1", "Rules"), ("paragraph", "Seeds wait.")]
    for shell in (f"<main>{placeholder}</main>", f"<div id=app>{placeholder}</div>"):
        noscript = "<noscript>Enable scripts.</noscript><script>state = {}</script>"
        with pytest.raises(DocumentRejected, match=r"only a placeholder|no text"):
            read(shell + noscript)
