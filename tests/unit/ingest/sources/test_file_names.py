"""Names of uploaded files are cleaned of paths and misleading characters."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.sources.uploads import MAX_NAME_LENGTH, clean_file_name


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("Guide.pdf", "Guide.pdf"),
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\eve\\notes.md", "notes.md"),
        ("/", ""),
        ("..", ""),
        ("a\x00b\x1b[31m\r\n.md", "ab[31m .md"),
        ("invoice\u202egpj.pdf", "invoicegpj.pdf"),
        ("\u2066\u200f\ufeff", ""),
        ("  two   blanks.md ", "two blanks.md"),
        ("e\u0301t\u00e9.md", "\u00e9t\u00e9.md"),
        ("\ud83d.md", ".md"),
    ],
)
def test_what_cannot_be_shown_is_left_out(given_name: str, shown: str) -> None:
    assert clean_file_name(given_name) == shown


def test_a_long_name_keeps_the_suffix_that_tells_what_it_is() -> None:
    name = clean_file_name("x" * 10_000 + ".docx")
    assert len(name) == MAX_NAME_LENGTH
    assert name.endswith("x.docx")
    assert len(clean_file_name("." + "y" * 10_000)) == MAX_NAME_LENGTH


@given(st.text())
def test_every_name_becomes_one_that_is_short_and_harmless(text: str) -> None:
    name = clean_file_name(text)
    assert len(name) <= MAX_NAME_LENGTH
    assert not {"/", "\\"} & set(name)
    assert name not in {".", ".."}
    assert not any(unicodedata.category(character).startswith("C") for character in name)
    assert clean_file_name(name) == name
