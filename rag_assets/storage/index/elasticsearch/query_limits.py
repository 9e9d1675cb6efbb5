"""What a ranking by words takes of a long question.

Elasticsearch refuses a query of more clauses than its memory allows for, which may be as few as
1,024; every word is a clause for each field that it is looked for in, and every filter is one.
"""

from __future__ import annotations

import re
from itertools import islice

MOST_WORDS = 140
"""Of a question as it is written; each is looked for in three fields."""
MOST_TERMS = 260
"""Of a question as the client splits it."""

# At least as many as the standard analyzer makes: it takes Chinese and Japanese signs one by one,
# cuts what is very long, and takes pictures for words.
_SINGLE = "\u2e80-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
_PIECE = re.compile(rf"[{_SINGLE}]|[^\W_{_SINGLE}]{{1,120}}|[^\w\s!-~]")


def leading_words(text: str) -> str:
    """The beginning of a text, as far as it is no more than MOST_WORDS words."""
    following = next(islice(_PIECE.finditer(text), MOST_WORDS, None), None)
    return text if following is None else text[: following.start()]


def leading_terms(terms: str) -> str:
    """The first MOST_TERMS of terms that are separated by spaces."""
    return " ".join(terms.split()[:MOST_TERMS])
