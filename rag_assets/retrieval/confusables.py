"""Texts as a reader takes them: letters by their looks, without what cannot be seen."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate

_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_RULES = frozenset(
    "-_=~*\u00af\u02c9\u05be\u2010\u2011\u2012\u2013\u2014\u2015\u203e\u2043\u2212\u2e3a\u2e3b"
    "\u30fb\u30fc"
)
_BOX_DRAWING = range(0x2500, 0x2580)
# The looks of a blank, in categories of what can be seen.
_BLANK = frozenset("\u115f\u1160\u2800")
_MOST_REMEMBERED = 4_096

_TWINS = str.maketrans(
    {
        twin: letter
        for letter, twins in {
            # Cyrillic, Greek, Armenian, Cherokee, Lisu and small capitals, as casefolded.
            "a": "\u0430\u03b1\u0251\u1d00\u13aa\ua4ee",
            "b": "\u0432\u03b2\u044c\u0299\u13f4\ua4d0",
            "c": "\u0441\u03f2\u1d04\u13df\ua4da",
            "d": "\u0501\u1d05\u13a0\ua4d3",
            "e": "\u0435\u03b5\u0454\u1d07\u13ac\ua4f0",
            "g": "\u0261\u0581\u0262\u13c0\ua4d6",
            "i": "\u0456\u03b9\u0131\u026a\u04cf\u01c0\u1d35\ua4f2",
            "l": "\u029f\u13de\ua4e1",
            "m": "\u043c\u03bc\u1d0d\u13b7\ua4df",
            "n": "\u03bd\u03b7\u0274\u057c\u0578\u043f\ua4e0",
            "o": "\u043e\u03bf\u0585\u03c3\u1d0f\ua4f3",
            "p": "\u0440\u03c1\u1d18\u13e2\ua4d1",
            "r": "\u0433\u0280\u13a1\u13d2\ua4e3",
            "s": "\u0455\ua731\u13da\ua4e2",
            "t": "\u0442\u03c4\u1d1b\u13a2\ua4d4",
            "u": "\u057d\u03c5\u1d1c\ua4f4",
            "x": "\u0445\u03c7\ua4eb",
            "[": "\u3010\u3016\u3014\u3018\u301a\u27e6\u2045\u2772",
            "]": "\u3011\u3017\u3015\u3019\u301b\u27e7\u2046\u2773",
            "/": "\u2044\u2215\u29f8",
            "<": "\u2039\u2329\u276c\u276e\u2770\u27e8\u3008\u02c2\u1438",
            ">": "\u203a\u232a\u276d\u276f\u2771\u27e9\u3009\u02c3\u1433",
            "|": "\u2223\u2758\u23d0",
            ":": "\u2236\ua789\u02d0\u0589\u205a",
            "#": "\u266f",
        }.items()
        for twin in twins
    }
)
"""What looks like a letter or a sign of our markers, and is another."""


def folded(text: str) -> str:
    """A text by its looks, in time that grows as its length does.

    Lower case; compatible forms and letters of other scripts are what they look like; blanks,
    accents and what cannot be seen are left out. Every end of a line is a line feed, every dash a
    hyphen.
    """
    return text.translate({ord(character): _folded(character) for character in set(text)})


def escaped(text: str, places: Iterable[int]) -> str:
    """The text with a backslash before each of these places of its folded copy."""
    wanted = sorted(set(places))
    if not wanted:
        return text
    ends = list(accumulate(len(_folded(character)) for character in text))
    # A character that folds to several is escaped once.
    cuts = sorted({bisect_right(ends, place) for place in wanted})
    return "\\".join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))


@lru_cache(_MOST_REMEMBERED)
def _folded(character: str) -> str:
    if character in _LINE_ENDS:
        return "\n"
    if _is_rule(character):
        return "-"
    compatible = unicodedata.normalize("NFKD", character).casefold()
    return "".join(map(_seen, unicodedata.normalize("NFKD", compatible)))


def _seen(character: str) -> str:
    # Marks, separators and "other": what joins, directs, varies or tags, and what is not assigned.
    if character in _BLANK or unicodedata.category(character)[0] in "MZC":
        return ""
    return "-" if _is_rule(character) else character.translate(_TWINS)


def _is_rule(character: str) -> bool:
    return character in _RULES or ord(character) in _BOX_DRAWING
