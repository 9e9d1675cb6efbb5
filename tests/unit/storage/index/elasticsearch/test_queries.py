"""Searches as Elasticsearch takes them: what narrows them, and how much of a question they hold."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assets.storage.index.elasticsearch.queries import filter_clauses, ranking
from rag_assets.storage.index.elasticsearch.query_limits import MOST_TERMS, MOST_WORDS
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest, is_within

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 0, 0, 5_000, UTC)


def test_what_is_not_given_narrows_nothing() -> None:
    assert filter_clauses(EntryFilter()) == []


def test_one_of_several_languages_is_enough() -> None:
    clause = {"terms": {"language": ["de", "python"]}}
    assert filter_clauses(EntryFilter(languages=("de", "python"))) == [clause]


@pytest.mark.parametrize("path", ["handbook/code", "handbook/code/"])
def test_a_path_is_a_file_or_a_folder_and_never_half_a_name(path: str) -> None:
    [clause] = filter_clauses(EntryFilter(paths=(path,)))
    either = [{"terms": {"uri": ["handbook/code"]}}, {"prefix": {"uri": "handbook/code/"}}]
    assert clause["bool"]["should"] == either
    uris = ["handbook/code", "handbook/code/a.md", "handbook/code-review.md", "handbook"]
    assert [uri for uri in uris if is_within(uri, path)] == uris[:2]


def test_a_span_of_time_includes_its_beginning_and_not_its_end() -> None:
    both = filter_clauses(EntryFilter(modified_after=NOON, modified_before=LATER))
    span = {"gte": "2026-11-21T12:00:00.000Z", "lt": "2026-11-21T12:00:00.005Z"}
    assert both == [{"range": {"modified_at": span}}]
    [since] = filter_clauses(EntryFilter(modified_after=NOON))
    assert since == {"range": {"modified_at": {"gte": "2026-11-21T12:00:00.000Z"}}}
    [until] = filter_clauses(EntryFilter(modified_before=NOON))
    assert until == {"range": {"modified_at": {"lt": "2026-11-21T12:00:00.000Z"}}}


LONG = {
    "words": " ".join(f"w{number:x}" for number in range(3_600)),
    "one word again and again": "x " * 10_000,
    "identifiers": " ".join(f"a{number:x}_B{number:x}.c-{number:x}" for number in range(1_400)),
    "signs": "".join(chr(0x4E00 + number) for number in range(9_990)),
    "syllables": "".join(chr(0x3041 + number % 80) for number in range(9_990)),
    "faces": "".join(chr(0x1F300 + number) for number in range(700)) * 20,
}
FILTERED = EntryFilter(
    scopes=frozenset({"public"}),
    source_types=("files",),
    documents=("d",),
    paths=tuple(f"files/{number}" for number in range(200)),
    languages=("de",),
    modified_after=NOON,
    tags=tuple(f"tag {number}" for number in range(100)),
    metadata={f"key {number}": "value" for number in range(20)},
)
LEAST_LIMIT = 1_024
"""Of clauses, however little memory Elasticsearch has."""


def texts(body: Any, name: str) -> Iterator[str]:
    """Values of the key of that name, wherever they stand."""
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if key == name and isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from texts(value, name)


def test_as_many_words_as_are_taken_of_a_question_fit_beside_all_filters() -> None:
    filters = [*filter_clauses(FILTERED)]
    prefixes = next(f["bool"]["should"] for f in filters if "bool" in f)
    owned = 3
    clauses = owned + len(filters) - 1 + len(prefixes) + 3 * MOST_WORDS + MOST_TERMS
    assert clauses <= LEAST_LIMIT


@pytest.mark.parametrize("question", LONG.values(), ids=LONG)
def test_only_the_beginning_of_a_very_long_question_is_looked_for(question: str) -> None:
    prose, terms = texts(ranking(Owner("t", 1, 1), RankingRequest(question, 10)), "query")
    # As the standard analyzer splits: signs one by one, words at what is neither letter nor digit.
    signs = [c for c in prose if ord(c) > 0x2E80]
    words = "".join(c if c.isalnum() and c not in signs else " " for c in prose).split()
    assert 0 < len(words) + len(signs) <= MOST_WORDS
    assert len(terms.split()) <= MOST_TERMS


def test_a_question_of_usual_length_is_looked_for_whole() -> None:
    question = " ".join(f"valve-{number} opens" for number in range(46))
    prose, terms = texts(ranking(Owner("t", 1, 1), RankingRequest(question, 10)), "query")
    assert prose == question
    assert terms.split()[-1] == "open"
