"""AsciiDoc: its blocks, and the text without what only programs read."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import DocumentEmpty
from rag_assets.ingest.parsing.asciidoc import parse_asciidoc
from tests.unit.ingest.parsing.office_files import is_covered, lines

MANUAL = """\
= Pump Manual
Jane Doe <jane@example.org>
:toc:
:icons: font

// a secret
////
== secret

////

[[install]]
== Install

NOTE: Only at night.

[source,bash]
----
== not a heading

npm i
----

=== Linux
. one
+
more of one
.. nested

[cols="1,1"]
|===
|Name |Value

|A |1
|===

Use[[use]]
----------

[stem]
++++
x^2
++++

After.
"""


def test_blocks_and_headings() -> None:
    parsed = parse_asciidoc(MANUAL)
    assert lines(parsed) == [
        ("heading1", "= Pump Manual"), ("paragraph", "Jane Doe <jane@example.org>"),
        ("heading2", "== Install"), ("paragraph", "NOTE: Only at night."),
        ("code", "----\n== not a heading\n\nnpm i\n----"), ("heading3", "=== Linux"),
        ("list", ". one\n+\nmore of one\n.. nested"), ("table", "|Name |Value\n\n|A |1"),
        ("heading2", "Use[[use]]\n----------"), ("code", "++++\nx^2\n++++"),
        ("paragraph", "After."),
    ]  # fmt: skip
    assert parsed.title == "Pump Manual"
    assert parsed.blocks[7].heading_path == ("Pump Manual", "Install", "Linux")
    assert parsed.blocks[-1].heading_path == ("Pump Manual", "Use")
    assert "secret" not in parsed.text
    assert parsed.text.count("\n") == MANUAL.count("\n")
    assert len(parsed.text) + sum(gap.bytes for gap in parsed.gaps) == len(MANUAL)


@pytest.mark.parametrize(
    "text",
    ["a\n\n----\nnever closed", "Text\n====\nof an example\n====", "two lines\nof text\n----\nx"],
)
def test_what_is_no_title_and_no_listing(text: str) -> None:
    parsed = parse_asciidoc(text)
    assert parsed.text == text
    assert "code" not in [block.kind for block in parsed.blocks]
    assert parsed.blocks[0].level == (1 if text.startswith("Text") else 0)


def test_a_document_of_comments_only_is_empty() -> None:
    with pytest.raises(DocumentEmpty, match="only comments"):
        parse_asciidoc("// one\n:toc:\n")


@given(st.text(alphabet="=-+|/*.:[]a1 \n", min_size=1, max_size=100))
def test_every_visible_character_is_in_exactly_one_block(text: str) -> None:
    assert is_covered(parse_asciidoc(f"x\n\n{text}"))


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["----\n", "|===\n", "////\n", "= a\n", "* a\n\n", "//\n", "[a]\n", "a\n--\n"]
)
def test_the_time_is_linear(line: str) -> None:
    started = time.process_time()
    parse_asciidoc("x\n\n" + line * (300_000 // len(line)))
    assert time.process_time() - started < 8
