"""Grapheme boundaries: positions where a cut does not split a visible character.

The rules are the part of UAX 29 that matters in practice (marks, joiners, modifiers, flags, Hangul
syllables, Indic conjuncts, CR LF). The data is the standard library's own Unicode tables.
"""

from __future__ import annotations

import unicodedata

# A longer cluster is decoration (or an attack), and may be split.
LONGEST_CLUSTER = 64

_ZWJ = "\u200d"
_VIRAMA = 9  # canonical combining class of the sign that joins two consonants
_FIRST_MARK = "\u0300"  # of the characters below it, only CR LF belong together


def is_boundary(text: str, pos: int) -> bool:
    """Return whether a cut at pos does not split a visible character."""
    if pos <= 0 or pos >= len(text):
        return True
    before, after = text[pos - 1], text[pos]
    if after < _FIRST_MARK:
        return not (before == "\r" and after == "\n")
    if before in "\r\n":
        return True
    if _extends(after) or before == _ZWJ:
        return False
    if _is_flag_half(after) and _is_flag_half(before):
        return _flag_halves_before(text, pos) % 2 == 0
    return not (_joins_hangul(before, after) or _joins_conjunct(before, after))


def boundary_before(text: str, pos: int, floor: int) -> int | None:
    """Return the last boundary at or before pos and after floor; None if there is none nearby."""
    lowest = max(floor + 1, pos - LONGEST_CLUSTER)
    return next((at for at in range(pos, lowest - 1, -1) if is_boundary(text, at)), None)


def _extends(char: str) -> bool:
    if char == _ZWJ or "\U0001f3fb" <= char <= "\U0001f3ff" or char in "\u200c\uff9e\uff9f":
        return True
    return unicodedata.category(char) in {"Mn", "Me", "Mc"} or "\U000e0020" <= char <= "\U000e007f"


def _is_flag_half(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _flag_halves_before(text: str, pos: int) -> int:
    halves = 0
    while halves < LONGEST_CLUSTER and pos - halves > 0 and _is_flag_half(text[pos - halves - 1]):
        halves += 1
    return halves


def _joins_hangul(before: str, after: str) -> bool:
    """Return whether both characters belong to one Hangul syllable.

    A syllable is a leading consonant, a vowel, and possibly a final consonant.
    """
    if not "\u1100" <= after <= "\u11ff" and not "\uac00" <= after <= "\ud7a3":
        return False
    if "\u1100" <= before <= "\u115f":
        return after <= "\u11a7" or after >= "\uac00"
    open_syllable = "\uac00" <= before <= "\ud7a3" and (ord(before) - 0xAC00) % 28 == 0
    if open_syllable or "\u1160" <= before <= "\u11a7":
        return "\u1160" <= after <= "\u11ff"
    closed_syllable = "\uac00" <= before <= "\ud7a3" or "\u11a8" <= before <= "\u11ff"
    return closed_syllable and "\u11a8" <= after <= "\u11ff"


def _joins_conjunct(before: str, after: str) -> bool:
    return unicodedata.combining(before) == _VIRAMA and unicodedata.category(after) == "Lo"
