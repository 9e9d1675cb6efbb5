"""Limits on the words of a long query.

Elasticsearch rejects a query with more clauses than its memory allows, which may be as few as
1,024. Each word is one clause per searched field, and each filter is one.
"""

from __future__ import annotations

import re
from itertools import islice

from rag_assets.storage.index.common_words import significant_words
from rag_assets.storage.index.identifiers import lexical_terms

MOST_WORDS = 140
"""The limit of a query's words as written; each is searched in three fields."""
MOST_TERMS = 250
"""The limit of a query's terms, as this client splits it."""

# At least as many pieces as the standard analyzer's tokens: it splits Chinese and Japanese into
# single characters, splits very long words, and counts emoji as words.
_SINGLE = "\u2e80-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_PIECE = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]{{1,120}}|[^\w\s!-~]")


def leading_words(text: str) -> str:
    """The beginning of a text, up to MOST_WORDS words."""
    following = next(islice(_PIECE.finditer(text), MOST_WORDS, None), None)
    return text if following is None else text[: following.start()]


def searched_terms(query: str) -> list[str]:
    """The terms of a query's significant words, up to MOST_TERMS."""
    return lexical_terms(significant_words(query)).split()[:MOST_TERMS]
