import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from mdit_py_plugins.front_matter import front_matter_plugin

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import build_chunk_parameters
from rag_assets.ingest.parsing.markdown import MarkdownParser, parse_markdown
from rag_assets.ingest.parsing.media_types import MARKDOWN, MDX, RST
from rag_assets.ingest.parsing.model import from_record, to_record
from rag_assets.ingest.parsing.registry import parse
from tests.unit.ingest.parsing.office_files import is_covered

LINES = [
    "# one", "## two ##", "####### seven", "#", "===", "---", "- item", "1. item", "  inner",
    "    code", "\tcode", "```", "```py", "~~~", "  ```", "| a | b |", "|---|---|", "<!--", "-->",
    "", "", " ", "text", "> quote", "> ```", "+++", "title: t", "* * *", "\x0b", "\u2028x", "é🔒",
]  # fmt: skip
documents = st.lists(
    st.tuples(st.sampled_from(LINES), st.sampled_from(["\n", "\n", "\r\n", "\r"])), max_size=12
).map(lambda lines: "".join(line + end for line, end in lines))
wild = st.text(alphabet=st.sampled_from("#-=`~|>*+<!%: \t\r\n\x0c1.ab"), max_size=80)


def kinds(text: str) -> list[tuple[str, str]]:
    parsed = parse_markdown(text)
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


def paths(text: str) -> list[tuple[str, ...]]:
    return [block.heading_path for block in parse_markdown(text).blocks]


@pytest.mark.slow
@given(st.one_of(documents, wild))
def test_blocks_are_ordered_and_cover_all_but_white_space(text: str) -> None:
    parsed = parse_markdown(text)
    assert parsed.text == text or parsed.gaps
    assert parsed.text.count("\n") == text.count("\n")
    assert len(parsed.text.encode()) + sum(gap.bytes for gap in parsed.gaps) == len(text.encode())
    assert is_covered(parsed)
    for block in parsed.blocks:
        assert (block.kind == "heading") == (1 <= block.level <= 6)


@pytest.mark.slow
@given(documents)
def test_line_ends_change_no_block(text: str) -> None:
    unix = text.replace("\r\n", "\n").replace("\r", "\n")
    assert [k for k, _ in kinds(text)] == [k for k, _ in kinds(unix)]
    assert paths(text) == paths(unix)


def test_each_kind_of_block() -> None:
    text = """---
title: 'Front: matter'
tags: [a]
---

# One #

Para
graph.

Two
---

- a

  inner
- b
lazy

***

1. x

| a | b |
|---|:-:|
| 1 | 2 |

```sh
# no heading
```
<!--
# hidden

-->

    indented

> # quoted
"""
    assert kinds(text) == [
        ("front_matter", "---\ntitle: 'Front: matter'\ntags: [a]\n---"),
        ("heading", "# One #"),
        ("paragraph", "Para\ngraph."),
        ("heading", "Two\n---"),
        ("list", "- a\n\n  inner\n- b\nlazy"),
        ("paragraph", "***"),
        ("list", "1. x"),
        ("table", "| a | b |\n|---|:-:|\n| 1 | 2 |"),
        ("code", "```sh\n# no heading\n```"),
        ("code", "    indented"),
        ("paragraph", "> # quoted"),
    ]
    assert paths(text)[-1] == ("One", "Two")
    assert parse_markdown(text).title == "Front: matter"


def test_headings_make_paths() -> None:
    text = "# A\n\ntext\n\n### C\n\n## B\n\ntext\n\n# D\n"
    assert paths(text) == [
        ("A",), ("A",), ("A", "C"), ("A", "B"), ("A", "B"), ("D",),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("# a", "a"), ("#\ta", "a"), ("   ###   a  b ###  ", "a b"), ("# a#", "a#"), ("## #", ""),
        ("## 安装 {#install .new}", "安装"), ("# a {: #b}", "a"), ("# Set {x}", "Set {x}"),
        ("# C#", "C#"), ("# `x` *y*", "`x` *y*"), ("#", ""),
    ],
)  # fmt: skip
def test_what_is_a_heading_and_its_name(line: str, name: str) -> None:
    [block] = parse_markdown(line).blocks
    assert (block.kind, block.heading_path) == ("heading", (name,))


@pytest.mark.parametrize("line", ["#a", "####### a", "    # a", "\\# a", "#!shebang"])
def test_what_is_no_heading(line: str) -> None:
    assert parse_markdown(line).title is None


@pytest.mark.parametrize(
    "text",
    [
        "```\n# a\n~~~\n# b\n```", "~~~~\n~~~\n# a\n~~~~~", "- x\n\n  ```\n# b\n", "<!-- x\n# a\n",
        "```\n# never closed\n\n# still not",
        "- item\n\n  ```\n  # in a fence\n\n  # still\n  ```",
    ],
)  # fmt: skip
def test_headings_in_fences_and_comments_are_none(text: str) -> None:
    hidden = [path for path in paths(text) if path and path[-1] != "b"]
    assert hidden == []


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('<h1 align="center">Project <b>Pump</b> &amp; Co</h1>\n\n## Use\n', "Project Pump & Co"),
        ('<h1 align="center">\n  <img src="logo.svg">\n  Pump\n</h1>\n\n## Use\n', "Pump"),
        ('<h1 align="center"><img src="logo.svg"></h1>\n\n## Use\n', "Use"),
        ("<h1>never closed\n\n## Use\n", "Use"),
        ("```html\n<h1>Code</h1>\n```\n\n## Use\n", "Use"),
    ],
)
def test_a_heading_in_html_is_a_heading(text: str, name: str) -> None:
    assert parse_markdown(text).title == name
    assert paths(text)[-1][0] == name


def test_a_setext_heading_may_have_two_lines() -> None:
    assert paths("One\ntwo\n===\n") == [("One two",)]


def test_a_long_heading_is_cut_in_paths_only() -> None:
    text = "# " + "word " * 1000
    [block] = parse_markdown(text).blocks
    assert len(block.heading_path[0]) == 300
    assert block.end == len(text)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("---\ntitle: T\n---\n# H", "T"),
        ("+++\ntitle = \"T\"\n+++\n# H", "T"),
        ("---\nsubtitle: T\n---\n# H", "H"),
        ("---\ntitle: T\n\n# H", "H"),
        ("## Two\n\n# One", "One"),
        ("### Only", "Only"),
        ("#\n\n# Second", "Second"),
        ("text", None),
        ("---\ntitle: >-\n  Bloc de\n  notes\nseo:\n  title: x\n---\n# H", "Bloc de notes"),
        ("---\ntitle: |\n  Zwei\n  Zeilen\n---\n# H", "Zwei Zeilen"),
        ("---\nog:\n  title: x\nhero: {title: y}\ntags: [title, z]\ntitle: T\n---", "T"),
        ("---\nog:\n  title: x\n---\n# H", "H"),
        ("---\ntitle: T # remark\n---", "T"),
        ("---\ntitle: \"a \\u00e9\"\n---", "a é"),
        ("---\ntitle: 'It''s'\n---", "It's"),
        ("---\n\"title\": 2024-05\n---", "2024-05"),
        ("---\n{title: T, a: 1}\n---", "T"),
        ("---\ntitle: null\n---\n# H", "H"),
        ("---\ntitle: ~\n---\n# H", "H"),
        ("---\ntitle:\n---\n# H", "H"),
        ("---\ntitle: 'null'\n---\n# H", "null"),
        ("---\ntitle:\n  en: x\n---\n# H", "H"),
        ("---\ntitle: Part 1: the start\n---\n# H", "Part 1: the start"),
        ("---\ntitle: {{ page }}\n  bad: [\n---\n# H", "{{ page }}"),
        ('+++\n[seo]\ntitle = "x"\n+++\n# H', "H"),
        ('+++\ntitle = """\nTwo\nlines"""\n+++\n# H', "Two lines"),
        ("+++\ntitle = T\n+++\n# H", "T"),
    ],
)  # fmt: skip
def test_the_title(text: str, title: str | None) -> None:
    assert parse_markdown(text).title == title


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "a " * 500_000,
        "> " * 500_000,
        "- " * 500_000,
        "#" * 1_000_000,
        "# " + " #" * 500_000,
        (" " * 9_999 + "x\n") * 100,
        "|" * 500_000 + "\n" + "|-" * 250_000,
        "```\n" * 120_000,
        "<!--\n" * 200_000,
        "<!-- a -->\n" * 50_000,
        "a <!-- " * 100_000,
        "a <!-- b --> " * 50_000,
        "- `a ``b <!-- c\n" * 50_000,
        "a %%b " * 100_000,
        "%% a\n" * 100_000,
        "%%\n" * 100_000,
        "<!-- a -->\n" + "".join("`" * i + " " for i in range(1_400)),
        "![](data:a/a;" * 50_000,
        "<script>\n" * 50_000,
        "<h1>\n" * 100_000,
        "---\ntitle: [" + "[" * 100_000 + "\n---\n",
        "- a\n" * 250_000,
        "a\n---\n" * 60_000,
        "".join(" " * i + "- a\n" for i in range(1_400)),
        "".join(">" * i + " a\n" for i in range(1_400)),
        "".join(f"{'#' * (i % 6 + 1)} heading {i}\n\ntext\n\n" for i in range(40_000)),
    ],
    ids=range(26),
)
def test_time_is_linear(text: str) -> None:
    started = time.process_time()
    parsed = parse_markdown(text)
    assert time.process_time() - started < 10, "a second at the worst, and minutes if quadratic"
    assert is_covered(parsed)


def test_preformatted_html_has_no_headings_and_no_code() -> None:
    raw = "<pre>\n# comment\n\n    indented\n```\n</PRE> after"
    expected = [("paragraph", "Text"), ("paragraph", raw), ("heading", "# Heading")]
    assert kinds(f"Text\n{raw}\n# Heading\n") == expected
    assert kinds("<pre>\n# never closed") == [("paragraph", "<pre>\n# never closed")]


def test_blank_lines_do_not_end_indented_code() -> None:
    code = "    a\n\n\n    b"
    text = ("paragraph", "Text")
    assert kinds(f"Text\n\n{code}\n\nText") == [text, ("code", code), text]


FILES = [
    file
    for folder in ("docs", "examples", "tests", "rag_assets")
    for file in (Path(__file__).parents[4] / folder).rglob("*.md")
]


def test_blocks_of_documents_are_those_of_another_parser() -> None:
    other = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    kind_of = {"heading_open": "heading", "fence": "code", "code_block": "code"}
    kind_of |= {"table_open": "table", "front_matter": "front_matter"}
    assert len(FILES) > 100
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        expected = {
            (kind_of[token.type], token.map[0])
            for token in other.parse(text)
            if token.type in kind_of and not token.level and token.map
        }
        blocks = [*MarkdownParser(text).iter_blocks()]
        lines = {(b.kind, text.count("\n", 0, b.start)) for b in blocks}
        assert {line for line in lines if line[0] in kind_of.values()} == expected, file


@pytest.mark.parametrize("first", ["Just a remark", "- an item", "[a link](x.md)", "Wait, why?"])
def test_text_between_thematic_breaks_is_not_front_matter(first: str) -> None:
    read = kinds(f"---\n{first}\n\n---\n\nafter")
    assert "front_matter" not in [kind for kind, _ in read]
    assert any(first in text for _, text in read)


@pytest.mark.parametrize(
    "settings",
    ["---\ntitle: A\n---", "---\n# remark\n\n'a key': 1\n---", "---\n{title: A}\n...", "---\n---",
     '+++\ntitle = "A"\n+++', "+++\n[params]\na = 1\n+++"],
)  # fmt: skip
def test_settings_are_front_matter(settings: str) -> None:
    assert kinds(f"{settings}\ntext")[0] == ("front_matter", settings)


@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("A <!-- x --> b", "A b"),
        ("<!-- x -->\nText", "\nText"),
        ("<!-- x\n\ny --> Text", "\n\nText"),
        ("# Title <!-- {#x} -->\n\nText", "# Title \n\nText"),
        ("- a <!-- x -->\n- b\n\n  <!-- y -->", "- a \n- b\n\n  "),
        ("| a <!-- x --> | b |\n|---|---|\n| 1 | <!-- y -->2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
        ("> Zitat <!-- x -->", "> Zitat "),
        ("`a` <!-- x --> `b`", "`a` `b`"),
        ("C:\\ \\` <!-- x --> \\`", "C:\\ \\` \\`"),
        ("- one `\n- two <!-- x -->\n- three `", "- one `\n- two \n- three `"),
        ("Äh <!-- ✓ geheim 🔒 é --> ja", "Äh ja"),
        ("a %%x%% b\n\n%% x %%", "a b\n\n"),
        ("%%\nx\n\n```\nx\n```\n%%\nText", "\n" * 6 + "\nText"),
        ("![Teich](data:image/png;base64," + "x/" * 5_000 + ") Text", "![Teich]() Text"),
        ("[a]: <data:image/svg+xml;charset=utf-8;base64," + "x" * 99 + ">", "[a]: <>"),
        ('<img alt="A" src="data:image/gif,' + "x" * 99 + '">', '<img alt="A" src="">'),
        ("<script setup>\nx\n\nx\n</script>\n\n# Page\n\n<style>\nx\n</style>\n",
         "\n" * 4 + "\n\n# Page\n\n" + "\n" * 3),
    ],
)  # fmt: skip
def test_what_readers_of_a_page_do_not_see_is_left_out(text: str, visible: str) -> None:
    parsed = parse_markdown(text)
    assert parsed.text == visible
    assert not any("x" in name for block in parsed.blocks for name in block.heading_path)
    assert is_covered(parsed)


@pytest.mark.parametrize(
    "text",
    [
        "`<!-- x -->` and `` ` <!-- x --> ` ``",
        "```html\n<!-- x -->\n```",
        "    <!-- x -->",
        "- a\n\n  ```html\n  <!-- x -->\n\n  <!-- y -->\n  ```\n- b",
        "> ~~~\n> <!-- x -->\n> ~~~",
        "An <!-- unclosed remark",
        "\\<!-- x -->",
        "100%% of 50%% and %d%%",
        "%%time\ncell\n%%bash\ncell",
        "%% Section 1\ntext\n\n%% Section 2",
        "A `data:image/png;base64," + "x" * 99 + "` in code, and data:text/plain,short in text",
        "A <script> tag ends with </script>",
        "{/* only MDX */}",
    ],
)
def test_code_and_text_like_comments_are_kept(text: str) -> None:
    assert parse_markdown(text).text == text


def test_text_behind_a_comment_is_not_indented() -> None:
    text = "<!-- x -->     A remark\n\n- a\n  <!-- x -->   b\n"
    assert [kind for kind, _ in kinds(text)] == ["paragraph", "list"]


def test_a_document_of_comments_only_is_empty() -> None:
    with pytest.raises(DocumentEmpty, match="only comments"):
        parse(b"<!-- x -->\n", MARKDOWN)


MDX_PAGE = """---
title: Page
---
import X from "secret"

# Ä

Text {/* secret é */} more.

{/*
secret

*/}

<Secret>

- `{/* code */}`  <!-- secret --> %%a%%

</Secret>

Last ü.
"""
RST_PAGE = """Manual
======

.. _secret:

First é.

.. A secret
   remark.

.. index:: secret

Last.
"""


@pytest.mark.parametrize(
    ("source", "media_type"),
    [(MDX_PAGE, MDX), (RST_PAGE, RST), ("# A\n\nÄ <!-- secret\n-->\n\n> b\n%%secret%%", MARKDOWN)],
)
@pytest.mark.parametrize("limit", [16, 400])
def test_chunks_have_the_offsets_of_the_file(source: str, media_type: str, limit: int) -> None:
    parsed = parse(source.encode(), media_type)
    assert from_record(to_record(parsed)) == parsed
    parameters = build_chunk_parameters("recursive", max_tokens=limit, overlap=0)
    chunks = chunk_document(parsed, parameters, parsed_digest="d").chunks
    assert chunks
    for chunk in chunks:
        assert "secret" not in chunk.text.lower()
        words = chunk.text.split()[:2]  # no text is left out between these
        assert source.encode()[chunk.byte_start :].split()[:2] == [word.encode() for word in words]
        first = source.encode()[: chunk.byte_start].count(b"\n") + 1
        assert chunk.location.line_start == first
