"""Terms: the words of a text that searches compare."""

from __future__ import annotations

from functools import cache

from rag_assets.storage.index.common_words import COMMON_WORDS, STOP_WORDS
from rag_assets.storage.index.identifiers import lexical_terms


def content_words(text: str, analysis: str = "en") -> frozenset[str]:
    """Return the terms of a text without stop words; a compound yields itself and its parts.

    Args:
        text: a text, or a single word.
        analysis: the analysis of the text that the terms are compared with; see `analysis_of`.
    """
    return frozenset(lexical_terms(text, analysis).split()) - _common(analysis)


@cache
def _common(analysis: str) -> frozenset[str]:
    words = STOP_WORDS.get(analysis, COMMON_WORDS)
    return frozenset(lexical_terms(" ".join(words), analysis).split())
