"""Words of any English text and question, which tell nothing of where an answer is."""

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

_WORD = re.compile(r"[^\W_]+(?:[_.\-/:'’][^\W_]+)*")


def significant_words(query: str) -> str:
    """The words of a question that a passage with the answer may hold; all if none would be left.

    Documents seldom ask, so that a ranking by words takes `what` and `how` for rare, and with that
    for important. A word in capitals, as IT or US, is a name.

    Args:
        query: in words; of another language than English nearly nothing is left out.
    """
    words = _WORD.findall(query)
    telling = [word for word in words if _is_name(word) or word.lower() not in COMMON_WORDS]
    return " ".join(telling) or query


def _is_name(word: str) -> bool:
    return len(word) > 1 and word.isupper()
