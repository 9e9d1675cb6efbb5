"""MDX, plain text, source code: the source is the text, and offsets are offsets into it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.registry import PARSERS, parse
from tests.unit.ingest.parsing.office_files import is_covered

PYTHON = "text/x-python"


def blocks_of(text: str, media_type: str) -> list[tuple[str, str]]:
    parsed = parse(text.encode(), media_type)
    assert parsed.text == text or parsed.gaps
    assert parsed.has_lines
    return [(block.kind, parsed.text[block.start : block.end]) for block in parsed.blocks]


MDX = """\
---
title: Install
---
import { Tabs, Tab } from "./tabs"
import Card from './card'

export const versions = {
  stable: [
    "1.0",

    "1.1",
  ],
}

{/* # not a heading
   either */}

# Install the agent

<Tabs>
  <Tab title="Linux">
    Run **this** first:

    ```sh
    # no heading
    <Tabs>
    ```
  </Tab>
</Tabs>

<Card
  href="/next"
  icon="x"
/>

Text with <b>tags</b>, imports and exports.

import your data in the tool
"""


def test_mdx_leaves_programs_out_and_keeps_what_is_read() -> None:
    assert blocks_of(MDX, media_types.MDX) == [
        ("front_matter", "---\ntitle: Install\n---"),
        ("heading", "# Install the agent"),
        ("paragraph", '<Tabs>\n  <Tab title="Linux">'),
        ("paragraph", "    Run **this** first:"),
        ("code", "    ```sh\n    # no heading\n    <Tabs>\n    ```"),
        ("paragraph", "Text with <b>tags</b>, imports and exports."),
        ("paragraph", "import your data in the tool"),
    ]
    parsed = parse(MDX.encode(), media_types.MDX)
    assert parsed.title == "Install"
    assert parsed.blocks[4].heading_path == ("Install the agent",)


def test_plain_text_is_its_paragraphs() -> None:
    text = "# no heading\r\nsecond line\r\n\r\n  \r\nCAPITALS\n--------\n\n\n  last"
    assert blocks_of(text, media_types.PLAIN) == [
        ("paragraph", "# no heading\r\nsecond line"),
        ("paragraph", "CAPITALS\n--------"),
        ("paragraph", "  last"),
    ]
    assert parse(text.encode(), media_types.PLAIN).title is None
    assert blocks_of("= Title\n\ntext", media_types.ASCIIDOC)[1] == ("paragraph", "text")


def test_source_code_is_cut_before_definitions_only() -> None:
    text = (
        "import os\n\n\n# about f\ndef f(\n    a,\n\n    b,\n):\n    return a\n\n    # more\n\n"
        "class C:\n    x = 1\n\n\n}\n"
    )
    assert blocks_of(text, PYTHON) == [
        ("code", "import os"),
        ("code", text[text.index("# about") : text.index("\n\nclass")]),
        ("code", text[text.index("class C") :].rstrip()),
    ]
    parsed = parse(text.encode(), PYTHON)
    assert (parsed.title, parsed.media_type) == (None, PYTHON)


def test_every_suffix_has_a_parser() -> None:
    assert set(PARSERS) == {*media_types.SUFFIXES.values(), "text/x-derived", "text/x-run-event"}
    assert {".md", ".rst", ".txt", ".docx"} <= set(media_types.DOCUMENT_SUFFIXES)
    assert not {".py", ".json", ".ts"} & set(media_types.DOCUMENT_SUFFIXES)


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [(b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-16")],
)
def test_utf_16_is_read_where_its_mark_is(mark: bytes, encoding: str) -> None:
    assert parse(mark + "Größe\n\nzwei".encode(encoding), media_types.PLAIN).text == "Größe\n\nzwei"


@pytest.mark.parametrize("kind", [media_types.MDX, media_types.PLAIN, PYTHON])
@given(text=st.text(alphabet="ab<>/{*}=\n \t#-`import ", min_size=1, max_size=100))
def test_every_visible_character_is_in_exactly_one_block(kind: str, text: str) -> None:
    if text.strip():
        assert is_covered(parse(b"x\n" + text.encode(), kind))


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("kind", [media_types.MDX, media_types.PLAIN, PYTHON])
@pytest.mark.parametrize(
    "line",
    ["> > > ", "[[[[", "* * *\n", "```\n", "`", "{/*\n", "<a\n", "<a<a", "import {\n", "x\n\n",
     "export {\n\n", "<Tabs>\n", "    <A\n\n"],
)  # fmt: skip
def test_the_time_is_linear(kind: str, line: str) -> None:
    started = time.process_time()
    parse(f"text\n\n{line * (300_000 // len(line))}".encode(), kind)
    assert time.process_time() - started < 8


def test_single_bytes_of_latin_1_in_source_code_are_read() -> None:
    data = b"<?php\n// Ren\xe9 wrote this for caf\xe9 owners, long ago and far away.\nclass A {}\n"
    parsed = parse(data, "text/x-php")
    assert "René wrote this for café" in parsed.text
    assert any("2 bytes" in note for note in parsed.notes)


def test_source_code_in_another_encoding_is_rejected() -> None:
    data = "// Это комментарий на русском языке, целиком в другой кодировке\n".encode("cp1251")
    with pytest.raises(DocumentRejected, match="not UTF-8"):
        parse(data, "text/x-php")
