"""Terms: the significant words of a text."""

from __future__ import annotations

from functools import cache

from rag_assets.storage.index.common_words import COMMON_WORDS, STOP_WORDS
from rag_assets.storage.index.identifiers import lexical_terms


def content_words(text: str, analysis: str = "en") -> frozenset[str]:
    """Return the terms of a text, whole and in parts, without common words.

    Args:
        text: or a single word.
        analysis: of the text that it is compared with; see `analysis_of`.
    """
    return frozenset(lexical_terms(text, analysis).split()) - _common(analysis)


@cache
def _common(analysis: str) -> frozenset[str]:
    words = STOP_WORDS.get(analysis, COMMON_WORDS)
    return frozenset(lexical_terms(" ".join(words), analysis).split())
