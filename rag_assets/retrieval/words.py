"""The words of a text that tell what it is about."""

from __future__ import annotations

from functools import cache

from rag_assets.indexing.identifiers import lexical_terms

_COMMON = (
    "a an and any are as at be by can did do does for from had has have how i if in is it its may"
    " me must my no not of on or our than that the them then they this to us was we were what when"
    " where which who why will with you your"
)
"""Words that stand in every text, and so tell nothing of where the answer is."""


def content_words(text: str) -> frozenset[str]:
    """The stems of a text's words, whole and in parts, without those of any text."""
    return frozenset(lexical_terms(text).split()) - _common()


@cache
def _common() -> frozenset[str]:
    return frozenset(lexical_terms(_COMMON).split())
