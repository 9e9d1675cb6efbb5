"""Hits as text for a model: passages between markers, which no passage can imitate."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_assets.retrieval.model import Hit

NOTHING_FOUND = "No relevant documentation found for your query."

# What a reader, and most models, take for the end of a line, and for a blank or nothing at all.
_ENDS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
_LINE = rf"(?:\A|(?<=[{_ENDS}]))"
_UNSEEN = r"\u00ad\u061c\u115f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
_NOTHING = rf"(?:[{_UNSEEN}]|[^\S{_ENDS}])"
_RULE = r"[-_=~*\u00af\u2010-\u2015\u2212\u2500-\u257f\u2e3a\u2e3b\u30fc\ufe58\ufe63\uff0d]"


def _spelled(word: str) -> str:
    """A word with whatever cannot be seen between its letters."""
    return f"{_NOTHING}*".join(word)


_IMITATIONS = re.compile(
    rf"""{_LINE}(?:{_NOTHING}|[>|])*(?={_RULE}(?:{_RULE}|{_NOTHING})*{_spelled("result")}{_NOTHING}*\d)
    |(?=\[{_NOTHING}*/?{_NOTHING}*(?:(?:{_spelled("end")}|{_spelled("begin")}|{_spelled("start")})
        {_NOTHING}+)?{_spelled("context")}{_NOTHING}*\])
    |{_LINE}(?:{_NOTHING}|[>|])*(?=\#{{1,6}}{_NOTHING}*{_spelled("team")}{_NOTHING}+{_spelled("guidelines")})
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Where `--- Result N`, `[END CONTEXT]` and `## Team Guidelines` are imitated."""


def as_results(hits: Sequence[Hit]) -> str:
    """Hits as an agent's tool returns them; a sentence that says so if there are none."""
    if not hits:
        return NOTHING_FOUND
    return "\n\n".join(
        f"--- Result {hit.number} (score: {_score(hit)}, source: {_one_line(hit.uri)}) ---\n"
        f"{neutralised(hit.text)}"
        for hit in hits
    )


def _score(hit: Hit) -> str:
    return "n/a" if hit.score is None else f"{hit.score:.3f}"


def neutralised(text: str) -> str:
    """A text whose imitations of our own markers are escaped by a backslash; else as it is.

    What a document says is data: it must not seem to end a passage, or to begin the next.
    """
    return _IMITATIONS.sub(lambda found: f"{found[0]}\\", text)


def _one_line(uri: str) -> str:
    return " ".join(uri.split())
