"""Terms for lexical search: identifiers split into their parts, and stemmed words.

Elasticsearch's standard analyzer does not split `snake_case_name`, and its core server has no
stemmer. This module does both, with the same function for texts and for queries.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

_WORD = re.compile(r"[^\W_]+(?:[_.\-/:][^\W_]+)*")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
# For words with letters beyond ASCII: split at punctuation and digits, never at an umlaut.
_PLAIN_PART = re.compile(r"[^\W\d_]+|\d+")
_MAX_WORD = 100


@cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def lexical_terms(text: str) -> str:
    """The words of a text, whole and in parts, in lower case and stemmed, separated by spaces.

    `handleHTTPError` gives `handlehttperror handl http error`; repeated words stay repeated, so
    that term frequencies keep their meaning.
    """
    runs = text.split()
    # Longer ones would fill the cache's memory.
    of_run = _terms_of_run if max(map(len, runs), default=0) <= _MAX_WORD else _terms_of_any_run
    return " ".join(filter(None, map(of_run, runs)))


def _terms_of_any_run(run: str) -> str:
    return _terms_of_run(run) if len(run) <= _MAX_WORD else _terms_of_words(run)


# Caches words with the punctuation around them: in a bulk import most of them recur.
@lru_cache(maxsize=1 << 16)
def _terms_of_run(run: str) -> str:
    return _terms_of_words(run)


def _terms_of_words(text: str) -> str:
    return " ".join(filter(None, map(_terms_of, _WORD.findall(text))))


def _terms_of(word: str) -> str:
    if len(word) > _MAX_WORD:
        return ""
    parts = (_PART if word.isascii() else _PLAIN_PART).findall(word)
    terms = [part.lower() for part in parts]
    if len(parts) > 1:
        terms.insert(0, word.lower())
    return " ".join(_stemmer().stemWords(terms))
