import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.parsing.rst import parse_rst
from tests.unit.ingest.parsing.office_files import is_covered, lines


def paths(text: str) -> list[tuple[str, ...]]:
    return [b.heading_path for b in parse_rst(text).blocks if b.kind == "heading"]


MANUAL = """\
.. comment for authors
   goes on

======
Manual
======

Intro.

Part one
--------

Words
of one paragraph.

Deeper
~~~~~~

More.

Part two
--------
"""


def test_styles_of_adornment_are_levels_in_order_of_appearance() -> None:
    parsed = parse_rst(MANUAL)
    assert parsed.title == "Manual"
    assert [(b.level, b.heading_path) for b in parsed.blocks if b.level] == [
        (1, ("Manual",)),
        (2, ("Manual", "Part one")),
        (3, ("Manual", "Part one", "Deeper")),
        (2, ("Manual", "Part two")),
    ]
    assert lines(parsed)[0] == ("heading1", "======\nManual\n======")
    assert ("paragraph", "Words\nof one paragraph.") in lines(parsed)
    # With and without an overline are two styles.
    assert paths("==\na\n==\n\nb\n==\n") == [("a",), ("a", "b")]


@pytest.mark.parametrize(
    "text",
    ["Words\n\n----\n\nmore", "a\n\n::\n\n  code", "two lines\nof text\n=======", "Title\n--",
     "====\n====", " Indented\n=========", "====== =====\na      b\n====== =====",
     "=====\nTitle\n-----\n"],
)  # fmt: skip
def test_what_is_no_title(text: str) -> None:
    assert paths(text) == []


@pytest.mark.parametrize(
    ("text", "blocks"),
    [
        ("Like this::\n\n  a\n\n  b\n\nafter",
         [("paragraph", "Like this::"), ("code", "a\n\n  b"), ("paragraph", "after")]),
        ("Quoted:\n\n  words",
         [("paragraph", "Quoted:"), ("paragraph", "words")]),
        (".. code-block:: python\n   :linenos:\n\n   x = 1\n\n   y = 2\n\nafter",
         [("code", ".. code-block:: python\n   :linenos:\n\n   x = 1\n\n   y = 2"),
          ("paragraph", "after")]),
        (".. note:: Mind\n   the gap.", [("paragraph", ".. note:: Mind\n   the gap.")]),
        (".. csv-table:: Rates\n\n   a, b", [("table", ".. csv-table:: Rates\n\n   a, b")]),
        (".. toctree::\n\n   a\n   b\n\ntext",
         [("paragraph", "text")]),
        (".. _target:\n\ntext", [("paragraph", "text")]),
        (".. [1] A footnote.", [("paragraph", ".. [1] A footnote.")]),
        (".. |logo| image:: x.png", [("paragraph", ".. |logo| image:: x.png")]),
        ("- one\n- two\n\n  more of two\n\n- three\n\nafter",
         [("list", "- one\n- two\n\n  more of two\n\n- three"), ("paragraph", "after")]),
        ("1. one\n2. two\n#. three", [("list", "1. one\n2. two\n#. three")]),
        (":author: Me\n:date: today", [("list", ":author: Me\n:date: today")]),
        (":ref:`x` begins a sentence", [("paragraph", ":ref:`x` begins a sentence")]),
        ("+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+\n\nx",
         [("table", "+---+---+\n| a | b |\n+===+===+\n| 1 | 2 |\n+---+---+"),
          ("paragraph", "x")]),
        ("=== ===\n a   b\n=== ===\n 1   2\n\n 3   4\n=== ===\n\nx",
         [("table", "=== ===\n a   b\n=== ===\n 1   2\n\n 3   4\n=== ==="), ("paragraph", "x")]),
        (">>> 1 + 1\n2\n\nx", [("code", ">>> 1 + 1\n2"), ("paragraph", "x")]),
        ("term\n  what it means", [("paragraph", "term\n  what it means")]),
    ],
)  # fmt: skip
def test_blocks(text: str, blocks: list[tuple[str, str]]) -> None:
    # A block begins with its line, indentation included.
    assert [(kind, found.strip()) for kind, found in lines(parse_rst(text))] == blocks


@given(st.text(alphabet="ab =-~.:+|*>\n\t_1", max_size=120))
def test_every_visible_character_is_in_exactly_one_block(text: str) -> None:
    assert is_covered(parse_rst(f"{text}\n\nend"))


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["=" * 200_000, "==\n" * 50_000, "a\n==\n" * 20_000, "- a\n" * 30_000, ".. a::\n" * 20_000,
     ".. |" * 40_000, "=== " * 40_000, "=== ===\n" * 20_000, "+-" * 80_000, ":a" * 80_000,
     "i" * 200_000, "a::\n\n b\n\n" * 10_000,
     "\n".join(" " * (i % 200) + "- x" for i in range(20_000))],
)  # fmt: skip
def test_the_time_is_linear(text: str) -> None:
    started = time.process_time()
    parse_rst(f"{text}\n\nend")
    assert time.process_time() - started < 8
