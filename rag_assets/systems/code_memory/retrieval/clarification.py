"""Clarifying questions to the user when no passage is near enough to an agent's question."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final

from rag_assets.search.model import Clarification
from rag_assets.systems.code_memory.catalog.found_relations import FoundSymbol
from rag_assets.systems.code_memory.retrieval.view import View

_WORD: Final = re.compile(r"[a-z]{4,40}|[A-Z][a-z]{2,40}|[A-Z]{3,40}")
_MOST_WORDS: Final = 12
_BEGINNINGS: Final = (12, 8, 6)
_BEGINNING, _FEW, _FEWEST = 6, 4, 3
_LONGEST_NAME: Final = 100
_PLAIN: Final = re.compile(r"[^A-Za-z_/{}]+")
"""Characters that are removed before names are compared; digits are among them, as nobody misspells
numbers."""
_LOOKED_AT: Final = 500
_SHOWN: Final = 5
_UNKNOWN: Final = (
    "Nothing in this project that I may read is near this question. Which file, class, route or"
    " table is it about?"
)


def clarification_of(view: View, query: str, *, first: str = "") -> Clarification:
    """Return a question to the user that lists definitions with similar names.

    Args:
        query: the question that had no results.
        first: names with this prefix are listed first.
    """
    names = nearest_names(view, query, first=first)
    if not names:
        return Clarification(_UNKNOWN)
    listed = ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1]
    question = f"Nothing in this project is near this question. Is it about {listed}?"
    return Clarification(question, tuple(names))


def nearest_names(view: View, query: str, *, first: str = "") -> list[str]:
    """Return the names of definitions most similar to a question or a name, the nearest first.

    Args:
        view, query, first: see clarification_of.
    """
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_MOST_WORDS]
    whole = "" if len(query) > _LONGEST_NAME else _PLAIN.sub("", query).lower()
    is_name = bool(whole) and (bool(first) or not any(one.isspace() for one in query.strip()))
    like: list[FoundSymbol] = []
    for tried in _list_search_attempts(words, whole if is_name else ""):
        like = [one for stems in tried for one in view.like(stems, _LOOKED_AT)]
        if any(one.name.startswith(first) for one in like):
            break
    if any(one.name.startswith(first) for one in like):
        like = [one for one in like if one.name.startswith(first)]
    found = {_shorten_name(one): _shorten_name(one).lower() for one in like}
    asked = [whole] if is_name else words
    return sorted(found, key=lambda name: (-_rate_similarity(found[name], asked), name))[:_SHOWN]


def _list_search_attempts(words: list[str], name: str) -> Iterator[list[list[str]]]:
    """Yield parts of names to search for, one attempt after another until one has results.

    Args:
        words: the words of the question.
        name: the whole question, if it is a single name.
    """
    if name:
        # A misspelt name usually starts like the intended one, at least for a few letters.
        yield [[name[:length]] for length in _BEGINNINGS if len(name) >= length]
    for length in (_BEGINNING, _FEW, _FEWEST):
        if words:
            yield [[word.removesuffix("s")[:length] for word in words]]
    if len(name) >= _FEWEST:
        yield [[name[at : at + _FEWEST] for at in range(len(name) - _FEWEST + 1)][:_MOST_WORDS]]


def _shorten_name(one: FoundSymbol) -> str:
    """Return a name in its usual short form."""
    for prefix in ("route:", "table:"):
        if one.name.startswith(prefix):
            return one.name.removeprefix(prefix)
    return one.name.rpartition("\\")[2]


def _rate_similarity(name: str, words: list[str]) -> float:
    """Return the similarity of a name to the words: that of its most similar word."""
    bare = _PLAIN.sub("", name)
    return max(SequenceMatcher(None, word, bare).ratio() for word in words)
