"""Terms: the significant words of a text."""

from __future__ import annotations

from functools import cache

from rag_assets.storage.index.common_words import COMMON_WORDS
from rag_assets.storage.index.identifiers import lexical_terms


def content_words(text: str) -> frozenset[str]:
    """The stems of a text's words, whole and in parts, without those of any text."""
    return frozenset(lexical_terms(text).split()) - _common()


@cache
def _common() -> frozenset[str]:
    return frozenset(lexical_terms(" ".join(COMMON_WORDS)).split())
