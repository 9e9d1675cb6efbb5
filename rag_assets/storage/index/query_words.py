"""The words of a query: how they are split, and their weights.

No score by words depends on an entry that the search may not find: terms are weighted by their
frequency among the entries that pass the filter, and an entry's length is compared with a constant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

from rag_assets.storage.index.common_words import significant_words
from rag_assets.storage.index.identifiers import (
    ANALYSES,
    EVERY_ANALYSIS,
    FORMER,
    build_forms,
    is_phrase,
    is_sequence,
    list_symbols,
    list_words,
)

MOST_TERMS: Final = 250
"""Maximum number of a query's words."""
MOST_CLAUSES: Final = 390
"""Maximum number of forms of these words; each form is a clause.

Elasticsearch rejects a query with more clauses than its memory allows, which may be as few as
1,024. Each filter is a clause, too.
"""
MOST_TITLE_WORDS: Final = 140
"""Maximum number of words searched in titles and headings; each of them takes two clauses."""
MOST_WRITTEN_FIELDS: Final = 4
"""Maximum number of fields in which a word is searched as it is written."""
TITLE_WEIGHT: Final = 0.3
"""Weight of a word in title or headings, in addition to its weight as a term.

All passages of a document share its title, so the title must not outweigh a passage's text.
"""


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The words of a query.

    Attributes:
        terms: words as `list_words` returns them, each with its number of occurrences in the query.
        title_words: words of the terms, as they are written in titles and headings, each with its
            terms.
        analyses: the expected analyses of the entries.
    """

    terms: Mapping[str, int]
    title_words: Mapping[str, tuple[str, ...]]
    analyses: tuple[str, ...] = EVERY_ANALYSIS

    @property
    def forms(self) -> frozenset[str]:
        """Return the terms that the words have in the entries."""
        return frozenset(form for word in self.terms for form in build_forms(word, self.analyses))

    @property
    def marks(self) -> tuple[str, ...]:
        """Return the analyses that are marked in entries."""
        return tuple(analysis for analysis in self.analyses if analysis != FORMER)

    @property
    def phrases(self) -> tuple[str, ...]:
        """Return the words that some entries contain only in their texts, as they are written."""
        return tuple(word for word in self.terms if self.is_written(word, self.analyses))

    @staticmethod
    def is_written(word: str, analyses: tuple[str, ...]) -> bool:
        """Return whether a word is searched as it is written, in entries of these analyses."""
        return is_phrase(word) and (FORMER in analyses or not build_forms(word, analyses))


class WeighedWord(NamedTuple):
    """A word as it is searched.

    Attributes:
        weight: the weight of the word.
        forms: the word's terms; only the best match counts.
        is_written: whether it is also searched in the texts as it is written.
    """

    weight: float
    forms: tuple[str, ...]
    is_written: bool


def parse_query_words(query: str, analyses: tuple[str, ...] = EVERY_ANALYSIS) -> QueryWords:
    """Return the words of a query without common words; a very long query is cut off.

    Args:
        query: the query, in any language.
        analyses: the expected analyses of the entries.
    """
    return QueryWords(*_split_words(query), analyses)


@lru_cache(maxsize=64)  # a search asks for the same words several times
def _split_words(query: str) -> tuple[Mapping[str, int], Mapping[str, tuple[str, ...]]]:
    significant = significant_words(query)
    distinct = dict.fromkeys(significant.split())
    parts = {word: tuple(list_words(word)) for word in islice(distinct, MOST_TITLE_WORDS)}
    terms = Counter([*list_symbols(query), *list_words(significant)][:MOST_TERMS])
    written = {
        word: those
        for word, those in parts.items()
        if those and not any(is_phrase(one) or is_sequence(one) for one in those)
    }
    return MappingProxyType(terms), MappingProxyType(written)


def weighed_words(
    words: QueryWords,
    entries: int,
    *,
    forms: Mapping[str, int],
    phrases: Mapping[str, int],
    marks: Mapping[str, int],
) -> dict[str, WeighedWord]:
    """Return the words of a query that some entry contains, each with its weight.

    A word is searched only in the forms that it has in the languages of these entries: a stem of
    another language may be another word.

    Args:
        words: words of the query.
        entries: number of entries that pass the filter.
        forms: by form, the number of these entries that have it among their terms.
        phrases: by word, the number of these entries that contain it as it is written.
        marks: by analysis, the number of these entries that have it.
    """
    analyses = present_analyses(entries, marks)
    weighed: dict[str, WeighedWord] = {}
    clauses = 0
    for word in words.terms:
        searched = tuple(form for form in build_forms(word, analyses) if forms.get(form))
        is_written = words.is_written(word, analyses)
        clauses += len(searched) + MOST_WRITTEN_FIELDS * is_written
        if clauses > MOST_CLAUSES:
            break
        holders = sum(forms[form] for form in searched)
        if is_written:
            holders = max(holders, phrases.get(word, 0))
        if holders:
            weight = rarity(entries, min(holders, entries))
            weighed[word] = WeighedWord(weight, searched, is_written)
    return weighed


def present_analyses(entries: int, marks: Mapping[str, int]) -> tuple[str, ...]:
    """Return the analyses of entries, with FORMER if some entries have no analysis mark.

    Args:
        entries: the number of entries.
        marks: by analysis, the number of these entries that have it.
    """
    present = [analysis for analysis in ANALYSES if marks.get(analysis)]
    return (FORMER, *present) if sum(marks.values()) < entries else tuple(present)


def rarity(entries: int, holders: int) -> float:
    """Return the weight of a term: the inverse document frequency of BM25.

    Args:
        entries: number of entries that pass the filter.
        holders: number of these entries that contain the term.
    """
    return math.log(1 + (entries - holders + 0.5) / (holders + 0.5))
