from __future__ import annotations

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.chunking.model import describe_location
from rag_assets.search.hits import _find_best_range, build_excerpt
from rag_assets.search.model import Hit

FILLER = "The depot opens early and everybody drinks tea. " * 12


def hit(**places: object) -> Hit:
    names = ("page", "slide", "sheet", "row_start", "row_end", "line_start", "line_end")
    return Hit(
        number=1,
        ordinal=0,
        score=0.5,
        text="",
        excerpt="",
        uri="files/a",
        title=None,
        heading_path=(),
        media_type="",
        language=None,
        modified_at=None,
        start=0,
        end=0,
        document_id="",
        chunk_id="",
        source_sha256=None,
        stale=False,
        **{name: places.get(name) for name in names},
    )


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        ({}, ""),
        ({"page": 13}, "page 13"),
        ({"slide": 4}, "slide 4"),
        ({"sheet": "Volumes"}, "sheet Volumes"),
        ({"sheet": "Volumes", "row_start": 2, "row_end": 7}, "sheet Volumes, rows 2 to 7"),
        ({"row_start": 5, "row_end": 5}, "row 5"),
        ({"line_start": 1, "line_end": 9}, "lines 1 to 9"),
        ({"page": 2, "line_start": 1, "line_end": 9}, "page 2"),
    ],
)
def test_a_location_is_described_in_the_terms_of_the_format(
    places: dict[str, object], shown: str
) -> None:
    assert describe_location(hit(**places)) == shown


def test_an_excerpt_surrounds_the_words_of_the_question() -> None:
    text = f"{FILLER}A red logger means that the box is not delivered. {FILLER}"
    shown = build_excerpt(text, "May we deliver a box whose logger is red?")
    assert "red logger means that the box is not delivered" in shown
    assert shown.startswith("[...] ")
    assert shown.endswith(" [...]")
    before, _, behind = shown.partition("logger")
    assert abs(len(before) - len(behind)) < 80


def test_an_excerpt_is_found_by_stems_and_not_by_common_words() -> None:
    text = f"What is it that you do? {FILLER} Refunding takes two days."
    assert "Refunding takes" in build_excerpt(text, "What is it that you refunded?", 60)


@pytest.mark.parametrize("length", [10, 60, 280])
def test_an_excerpt_keeps_its_length(length: int) -> None:
    shown = build_excerpt(f"{FILLER}A red logger. {FILLER}", "red logger", length)
    assert len(shown.removeprefix("[...] ").removesuffix(" [...]")) <= length


@pytest.mark.parametrize(
    ("text", "shown"),
    [("A short text", "A short text"), ("with\n\twhite  space", "with white space")],
)
def test_a_short_text_is_shown_as_it_is(text: str, shown: str) -> None:
    assert build_excerpt(text, "nothing of it") == shown


def test_without_any_word_in_common_the_beginning_is_shown() -> None:
    assert build_excerpt(FILLER, "zebra", 20) == "The depot opens [...]"


def test_one_endless_word_is_shown_whole() -> None:
    assert build_excerpt("x" * 500, "x" * 500) == "x" * 500


@given(st.lists(st.sampled_from(["", "", "a", "b", "c", "d", "ab", "bcd"]), max_size=40))
def test_the_part_with_most_different_words_is_the_first_of_such_parts(marks: list[str]) -> None:
    # Each mark is a word of two letters; its letters are the words of the question that it has.
    found = [(at, frozenset(mark)) for at, mark in enumerate(marks) if mark]
    places = [0, *accumulate(3 for _ in marks)]
    parts = [
        (len(frozenset().union(*(terms for at, terms in found if start <= at < end))), start, end)
        for start, _ in found
        for end in range(start + 1, len(marks) + 1)
        if end == start + 1 or places[end] - places[start] <= 20
    ]
    most = max((part[0] for part in parts), default=0)
    first = min((part[1:] for part in parts if part[0] == most), default=(0, min(1, len(marks))))
    assert _find_best_range(found, places, 20) == first


def test_an_excerpt_is_found_by_forms_of_words_in_the_language_of_the_text() -> None:
    filler = "Der Betrieb öffnet um sieben, und die Fahrer melden sich bei der Zentrale an. " * 6
    text = f"{filler}Die Häuser werden geprüft. {filler}"
    assert "Häuser werden geprüft" in build_excerpt(text, "Wer hat das Haus prüfen lassen?", 60)
