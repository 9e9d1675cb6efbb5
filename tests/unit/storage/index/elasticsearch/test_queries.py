"""Queries for Elasticsearch: their filters, and their limits on words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from rag_assets.storage.index.elasticsearch.queries import filter_clauses, ranking
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest, is_within
from rag_assets.storage.index.query_limits import MOST_TERMS, MOST_WORDS

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 0, 0, 5_000, UTC)


def test_an_empty_filter_has_no_clauses() -> None:
    assert filter_clauses(EntryFilter()) == []


def test_several_languages_are_alternatives() -> None:
    clause = {"terms": {"language": ["de", "python"]}}
    assert filter_clauses(EntryFilter(languages=("de", "python"))) == [clause]


@pytest.mark.parametrize("path", ["handbook/code", "handbook/code/"])
def test_a_path_matches_a_file_or_a_folder_and_no_partial_name(path: str) -> None:
    [clause] = filter_clauses(EntryFilter(paths=(path,)))
    either = [{"terms": {"uri": ["handbook/code"]}}, {"prefix": {"uri": "handbook/code/"}}]
    assert clause["bool"]["should"] == either
    uris = ["handbook/code", "handbook/code/a.md", "handbook/code-review.md", "handbook"]
    assert [uri for uri in uris if is_within(uri, path)] == uris[:2]


def test_a_time_range_includes_its_start_and_excludes_its_end() -> None:
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
    metadata={f"key {number}": ("value", None) for number in range(20)},
    without_metadata={f"other {number}": ("value",) for number in range(5)},
)
LEAST_LIMIT = 1_024
"""The least limit of clauses that Elasticsearch sets, with little memory."""


def texts(body: Any, name: str) -> Iterator[str]:
    """The texts under a key, at any depth."""
    for key, value in body.items() if isinstance(body, dict) else enumerate(body):
        if key == name and isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            yield from texts(value, name)


def searched(question: str) -> tuple[str, list[str]]:
    """What a question is searched by: its words as written, and its terms."""
    body = ranking(Owner("t", 1, 1), RankingRequest(question, 10))
    [prose] = texts(body, "query")
    return prose, [*texts(body, "_name")]


def test_the_most_words_and_filters_fit_the_limit_of_clauses() -> None:
    filters = sum(map(leaves, filter_clauses(FILTERED)))
    owned = 3
    assert owned + filters + 3 * MOST_WORDS + MOST_TERMS <= LEAST_LIMIT


def leaves(clause: Any) -> int:
    """The clauses in one, those of compound ones counted apart."""
    inner = [
        one for part in clause.get("bool", {}).values() if isinstance(part, list) for one in part
    ]
    return sum(map(leaves, inner)) or 1


@pytest.mark.parametrize("question", LONG.values(), ids=LONG)
def test_only_the_beginning_of_a_very_long_query_is_searched(question: str) -> None:
    prose, terms = searched(question)
    # Split as by the standard analyzer: ideographs one by one, words at punctuation and spaces.
    signs = [c for c in prose if ord(c) > 0x2E80]
    words = "".join(c if c.isalnum() and c not in signs else " " for c in prose).split()
    assert 0 < len(words) + len(signs) <= MOST_WORDS
    assert len(terms) <= MOST_TERMS


def test_a_query_of_usual_length_is_searched_whole() -> None:
    question = " ".join(f"valve-{number} opens" for number in range(46))
    prose, terms = searched(question)
    assert prose == question
    assert terms[-1] == "45"
    assert "open" in terms
