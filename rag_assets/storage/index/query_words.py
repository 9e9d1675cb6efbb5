"""The words of a query: how they are split, and how much each counts.

No score by words depends on an entry that the search may not find: terms are weighed by their
frequency among the entries that pass the filter, and lengths are compared with a constant.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

from rag_assets.storage.index.common_words import significant_words
from rag_assets.storage.index.identifiers import lexical_terms

MOST_TERMS: Final = 250
"""Limit of a query's terms, each of which is a clause.

Elasticsearch rejects a query with more clauses than its memory allows, which may be as few as
1,024. Each filter is one, too.
"""
MOST_PHRASES: Final = 140
"""Limit of a query's phrases and title words together, each of which is up to three clauses."""
TITLE_WEIGHT: Final = 0.3
"""Weight of a word in title or headings, beside its weight as a term.

All passages of a document share its title: it must not outweigh a passage's text.
"""
HALVING_TOKENS: Final = 450
"""Length of an entry whose words count half as much as those of a very short one."""

_IDEOGRAPHS: Final = "\u2e80-\u309f\u31f0-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Signs of Chinese and Japanese that the standard analyzer splits into single ones."""
_KATAKANA: Final = "\u30a0-\u30ff\uff66-\uff9f"
_INDIC: Final = "\u0900-\u0dff"
"""Scripts whose vowel signs are no letters to Python, so that `lexical_terms` cuts words there."""
_SYMBOLS: Final = "\u2600-\u27bf\U0001f000-\U0001faff"
_SIGN: Final = re.compile(rf"[{_KATAKANA}]{{1,100}}|[{_IDEOGRAPHS}]")
_WRITTEN: Final = re.compile(
    rf"[{_IDEOGRAPHS}{_KATAKANA}]+|[{_INDIC}][{_INDIC}\u200c\u200d]{{0,99}}|[{_SYMBOLS}]"
)


@dataclass(frozen=True, slots=True)
class QueryWords:
    """The words of a query in the forms in which they are searched.

    Attributes:
        terms: as `lexical_terms` makes them, each with its number of occurrences in the query.
        phrases: of scripts that `lexical_terms` cannot split, as they are written: words, or pairs
            of adjacent signs.
        title_words: the words of the terms, as they are written in titles and headings, each with
            its terms.
    """

    terms: Mapping[str, int]
    phrases: tuple[str, ...]
    title_words: Mapping[str, tuple[str, ...]]


def words_of(query: str) -> QueryWords:
    """Return the words of a query, without common ones; of a very long query the first ones."""
    phrases = tuple(dict.fromkeys(islice(_phrases(query), MOST_PHRASES)))
    rest = _WRITTEN.sub(" ", query)
    significant = significant_words(rest)
    words = dict.fromkeys(significant.split())
    return QueryWords(
        Counter(lexical_terms(significant).split()[:MOST_TERMS]),
        phrases,
        {
            word: tuple(terms)
            for word in islice(words, MOST_PHRASES - len(phrases))
            if (terms := lexical_terms(word).split())
        },
    )


def rarity(entries: int, holders: int) -> float:
    """Return the weight of a term: the inverse document frequency of BM25.

    Args:
        entries: number of entries that pass the filter.
        holders: number of these that hold the term.
    """
    return math.log(1 + (entries - holders + 0.5) / (holders + 0.5))


def _phrases(query: str) -> Iterator[str]:
    for found in _WRITTEN.finditer(query):
        signs = _SIGN.findall(found.group())
        if len(signs) > 1:
            yield from (first + second for first, second in pairwise(signs))
        else:
            yield found.group()
