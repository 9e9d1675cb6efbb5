"""Common English words, which do not help to find a passage."""

from __future__ import annotations

import re

_COMMON = (
    "a about am an and any are as at be been but by can could did do does for from had has have he"
    " her here him his how i if in into is it its itself may me might must my no nor not of off on"
    " or our ours shall she should so some such than that the their them then there these they"
    " this those to too us was we were what when where which who whom whose why will with would you"
    " your yours"
)
COMMON_WORDS = frozenset(_COMMON.split())
"""In lower case."""

_ENGLISH_SHARE = 0.25
"""Of 400 English questions, 96 % have that share of common words; of German ones 3 %."""
_WORD = re.compile(r"[^\W_]+(?:[_.\-/:'’][^\W_]+)*")


def significant_words(query: str) -> str:
    """A query without its common words; the query itself if no other word is in it.

    Documents seldom contain questions, so a ranking by words would count `what` and `how` as rare
    and therefore important. A word in capitals, such as IT or US, is kept as a name.

    Args:
        query: text to search for; in languages other than English nearly all of it is kept.
    """
    words = _WORD.findall(query)
    significant = [word for word in words if _is_name(word) or word.lower() not in COMMON_WORDS]
    return " ".join(significant) or query


def is_english(query: str) -> bool:
    """Return whether a query is a sentence in English: at least a quarter of it is common words."""
    words = _WORD.findall(query)
    common = sum(word.lower() in COMMON_WORDS for word in words)
    return common >= _ENGLISH_SHARE * max(1, len(words))


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
