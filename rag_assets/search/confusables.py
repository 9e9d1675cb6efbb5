"""Texts as a reader sees them: letters by appearance, without invisible characters.

The lookalikes are Unicode's own data (UTS 39, confusables.txt), as shipped by the package
confusable-homoglyphs.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import accumulate

_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029")
_RULES = frozenset(
    "-_=~*\u00af\u02c9\u05be\u2010\u2011\u2012\u2013\u2014\u2015\u203e\u2043\u2212\u2e3a\u2e3b"
    "\u30fb\u30fc"
)
_BOX_DRAWING = range(0x2500, 0x2580)
# Characters that look blank although Unicode puts them in categories of visible characters.
_BLANK = frozenset("\u115f\u1160\u2800")
_MOST_REMEMBERED = 4_096

# Characters that a model or a hasty reader takes for these ASCII characters. Unicode's data maps
# them to no ASCII character, or to a different one.
_ADDED: Mapping[str, str] = {
    twin: sign
    for sign, twins in {
        "b": "\u0432\u03b2\u044c",
        "e": "\u03b5\u0454",
        "i": "\ua4f2",
        "m": "\u043c\u03bc",
        "n": "\u03b7\u043f",
        "t": "\u0442\u03c4",
        "x": "\u03c7",
        "[": "\u3010\u3016\u3014\u3018\u301a\u27e6\u2045\u2772",
        "]": "\u3011\u3017\u3015\u3019\u301b\u27e7\u2046\u2773",
        "<": "\u2329\u276c\u2770\u27e8\u3008",
        ">": "\u232a\u276d\u2771\u27e9\u3009",
        "|": "\u01c0\u2223\u2758\u23d0\u2502\u2503\uffe8",
        ":": "\ufe30",
        "#": "\u266f",
    }.items()
    for twin in twins
}


def folded(text: str) -> str:
    """Return a text by its appearance, in linear time.

    The result is in lower case. Compatibility forms and letters of other scripts are replaced by
    the ASCII characters they look like. Blanks, accents and invisible characters are removed. Every
    line end becomes a line feed, every dash a hyphen.
    """
    return text.translate({ord(character): _fold_character(character) for character in set(text)})


def escaped(text: str, places: Iterable[int]) -> str:
    """Return the text with a backslash before each of the given positions of its folded copy."""
    wanted = sorted(set(places))
    if not wanted:
        return text
    ends = list(accumulate(len(_fold_character(character)) for character in text))
    # A character that is folded to several characters is escaped only once.
    cuts = sorted({bisect_right(ends, place) for place in wanted})
    return "\\".join(text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True))


@lru_cache(_MOST_REMEMBERED)
def _fold_character(character: str) -> str:
    if character in _LINE_ENDS:
        return "\n"
    if _is_rule(character):
        return "-"
    compatible = unicodedata.normalize("NFKD", character)
    whole = None if compatible.isascii() else _prototype(character)
    # Unicode's data maps both the capital I and the small l to the same letter.
    if whole is not None and whole != "l":
        return whole
    return _ADDED.get(character) or "".join(map(_lookalike_of, compatible))


def _lookalike_of(character: str) -> str:
    """Return, in lower case, what a compatibility form looks like; empty if it is invisible."""
    if _is_rule(character):
        return "-"
    category = unicodedata.category(character)
    # Marks, separators and the category "other": characters that join, direct, vary or tag text,
    # and unassigned ones.
    if character in _BLANK or (category[0] in "MZC" and category != "Mc"):
        return ""
    found = _prototype(character)
    if found is not None:
        return found
    small = unicodedata.normalize("NFKD", character.casefold())
    seen = [each for each in small if unicodedata.category(each)[0] not in "MZC"]
    return "".join(_prototype(each) or each for each in seen)


def _prototype(character: str) -> str | None:
    """Return the lower-case ASCII letter, digit or symbol that a character looks like, or None."""
    if character.isascii():
        return character.casefold()
    if character in _ADDED:
        return _ADDED[character]
    found = _prototypes().get(character)
    if found == "l" and character.casefold() != character:  # A capital I of any alphabet.
        return "i"
    return found or _small_capital(character)


@lru_cache(maxsize=1)
def _prototypes() -> Mapping[str, str]:
    """Return Unicode's lookalikes of single ASCII characters, each with its ASCII character."""
    from confusable_homoglyphs.confusables import confusables_data

    return {
        character: other["c"].casefold()
        for character, others in confusables_data.items()
        for other in others
        if len(character) == len(other["c"]) == 1
        and other["c"].isascii()
        and not character.isascii()
        and not other["c"].isspace()
    }


def _small_capital(character: str) -> str | None:
    """Return the letter of a small capital such as \u1d00: Unicode compares capitals only."""
    _, small, letter = unicodedata.name(character, "").partition("LETTER SMALL CAPITAL ")
    return letter.lower() if small and len(letter) == 1 else None


def _is_rule(character: str) -> bool:
    drawn = ord(character) in _BOX_DRAWING and character not in _ADDED
    return drawn or character in _RULES
