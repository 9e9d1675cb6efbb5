"""What to ask the user, where no passage is near enough to what an agent asked."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import Final

from rag_assets.retrieval.code_view import View
from rag_assets.retrieval.model import Clarification
from rag_assets.storage.catalog.found_relations import FoundSymbol

_WORD: Final = re.compile(r"[a-z]{4,40}|[A-Z][a-z]{2,40}|[A-Z]{3,40}")
_MOST_WORDS: Final = 12
_BEGINNING: Final = 6
_LOOKED_AT: Final = 500
_SHOWN: Final = 5
_UNKNOWN: Final = (
    "Nothing in this project that I may read is near this question. Which file, class, route or"
    " table is it about?"
)


def clarification_of(view: View, query: str) -> Clarification:
    """A question that names what is called alike.

    Args:
        view: what the caller may read.
        query: the question that nothing was found for.
    """
    words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_MOST_WORDS]
    # What is misspelt begins like what is meant.
    stems = [word.removesuffix("s")[:_BEGINNING] for word in words]
    found = {_shown(one): _shown(one).lower() for one in view.like(stems, _LOOKED_AT)}
    names = sorted(found, key=lambda name: (-_likeness(found[name], words), name))[:_SHOWN]
    if not names:
        return Clarification(_UNKNOWN)
    listed = ", ".join(names[:-1]) + (" or " if len(names) > 1 else "") + names[-1]
    question = f"Nothing in this project is near this question. Is it about {listed}?"
    return Clarification(question, tuple(names))


def _shown(one: FoundSymbol) -> str:
    """A name as people say it."""
    for prefix in ("route:", "table:"):
        if one.name.startswith(prefix):
            return one.name.removeprefix(prefix)
    return one.name.rpartition("\\")[2]


def _likeness(name: str, words: list[str]) -> float:
    """How much of a name is like the words, the best of them first."""
    return max(SequenceMatcher(None, word, name).ratio() for word in words)
