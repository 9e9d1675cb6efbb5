"""Words that searches and checks of claims compare, from the lists in words.toml.

The lists cover the most common languages of passages, and only certain cases. A word that is
missing never makes a true claim wrong, since unlisted words are not compared. Words are stemmed
before they are compared, so only irregular forms are listed separately.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from rag_assets.storage.index.common_words import COMMON_WORDS, STOP_WORDS
from rag_assets.storage.index.terms import compute_lexical_terms

_LISTS: Final[Mapping[str, Any]] = tomllib.loads(
    files("rag_assets.search").joinpath("words.toml").read_text("utf-8")
)

Unit: TypeAlias = tuple[str, float]
"""A dimension, and the factor that converts a value to the dimension's base unit."""


def extract_content_words(text: str, analysis: str = "en") -> frozenset[str]:
    """Return the search terms in a text except stop words; compounds also yield their parts."""
    return frozenset(compute_lexical_terms(text, analysis).split()) - _get_stop_terms(analysis)


@cache
def _get_stop_terms(analysis: str) -> frozenset[str]:
    words = STOP_WORDS.get(analysis, COMMON_WORDS)
    return frozenset(compute_lexical_terms(" ".join(words), analysis).split())


def _parse_values(table: Mapping[str, str]) -> Mapping[str, frozenset[float]]:
    values: dict[str, frozenset[float]] = {}
    for value, words in table.items():
        for word in words.split():
            values[word] = values.get(word, frozenset()) | {float(value)}
    return MappingProxyType(values)


def _read_units() -> Mapping[str, frozenset[Unit]]:
    units: dict[str, frozenset[Unit]] = {}
    for dimension, factors in _LISTS["units"].items():
        for factor, words in factors.items():
            for word in words.split():
                units[word] = units.get(word, frozenset()) | {(dimension, float(factor))}
    return MappingProxyType(units)


NUMBERS: Final = _parse_values(_LISTS["numbers"])
"""Values of number words, in lower case."""
SCALES: Final = _parse_values(_LISTS["scales"])
"""By word after a number, the factor that multiplies the number; `billion` is ambiguous."""
UNITS: Final = _read_units()
"""By name or symbol, the units it may stand for; `m` is ambiguous."""
MONTHS: Final[Mapping[str, int]] = MappingProxyType(
    {word: int(number) for number, words in _LISTS["months"].items() for word in words.split()}
)
ORDINAL_ENDS: Final = frozenset("st nd rd th er ère re eme ème e º ª o a x".split())  # noqa: SIM905
"""Endings of a number that do not change its value: 2nd, 3x."""

_TENS_PATTERN = "|".join(word for word, of in NUMBERS.items() if min(of) in range(20, 100, 10))
_ONES_PATTERN = "|".join(word for word, of in NUMBERS.items() if min(of) in range(1, 20))
_COMPOUND = re.compile(
    rf"(?P<tens>{_TENS_PATTERN})(?:[-\s]|\s?(?:y|e|et|and)\s|-et-)?(?P<ones>{_ONES_PATTERN})"
)
_GERMAN_COMPOUND = re.compile(rf"(?P<ones>{_ONES_PATTERN})(?:und|en|ën)(?P<tens>{_TENS_PATTERN})")
_HAN_DIGITS: Final = dict(zip("零一二三四五六七八九〇两兩", [*range(10), 0, 2, 2], strict=True))
_HAN_SCALES: Final = {"十": 10, "百": 100, "千": 1_000}
HAN_NUMBER: Final = re.compile(r"[零〇一二两兩三四五六七八九十百千]{1,12}")


def parse_word_values(word: str) -> frozenset[float]:
    """Return the numbers that a lower-case word stands for: forty-five, zwölf, 三十."""
    if (single := NUMBERS.get(word)) is not None:
        return single
    for pattern in (_COMPOUND, _GERMAN_COMPOUND):
        if (compound := pattern.fullmatch(word)) is not None:
            ones, tens = (min(NUMBERS[compound[name]]) for name in ("ones", "tens"))
            return frozenset({tens + ones})
    return (
        frozenset({float(_parse_han_number(word))}) if HAN_NUMBER.fullmatch(word) else frozenset()
    )


def _parse_han_number(word: str) -> int:
    total = digit = 0
    for sign in word:
        if sign in _HAN_SCALES:
            total += (digit or 1) * _HAN_SCALES[sign]
            digit = 0
        else:
            digit = digit * 10 + _HAN_DIGITS[sign]
    return total + digit


def _get_word_set(name: str) -> frozenset[str]:
    return frozenset(_LISTS["sets"][name].split())


JOINS: Final = _get_word_set("joins")
EXCEPTIVES: Final = _get_word_set("exceptives")
LACKING: Final = _get_word_set("lacking")
UNIVERSALS: Final = _get_word_set("universals")
QUANTIFIERS: Final = _get_word_set("quantifiers")
RELATIVES: Final = _get_word_set("relatives")
CONTRASTS: Final = _get_word_set("contrasts")
ARTICLES: Final = _get_word_set("articles")
DETERMINERS: Final = _get_word_set("determiners")
CONJUNCTIONS: Final = _get_word_set("conjunctions")
BOUNDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {name: tuple(phrases) for name, phrases in _LISTS["bounds"].items()}
)
"""Phrases that make a number a bound: `low` and `high` before it, `low_after` and `high_after`
after it."""
IRREGULAR: Final[Mapping[str, str]] = MappingProxyType(
    {word: base for base, words in _LISTS["irregular"].items() for word in words.split()}
)
"""Base forms of English verbs by irregular form."""
NECESSITY: Final = "must"
"""The word as which all words for a necessity are compared."""
UNSPACED: Final = frozenset({"zh", "ja"})
"""Languages written without blanks between words."""
CLAUSE_LANGUAGES: Final = frozenset(_LISTS["clauses"])
"""Languages with blanks between words that have word lists."""


@cache
def get_word_list(table: str, language: str) -> frozenset[str]:
    """Return a language's words in a table such as `negators`; empty if the table lacks it."""
    return frozenset(_LISTS[table].get(language, "").split())


@cache
def list_inverting_words() -> frozenset[str]:
    """Return words, except Arabic ones, that invert a sentence or limit its scope."""
    tables = ("negators", "necessary")
    lists = (
        get_word_list(name, code) for name in tables for code in {*_LISTS[name]} - UNSPACED - {"ar"}
    )
    return (EXCEPTIVES | LACKING | QUANTIFIERS | _get_word_set("scopes")).union(*lists)


@cache
def find_stemmer(language: str) -> Any:
    """Return the stemmer of a language; None if it has none."""
    import Stemmer

    name = _LISTS["stemmers"].get(language)
    return None if name is None else Stemmer.Stemmer(name)


def _stem_words(text: str, language: str) -> frozenset[str]:
    stemmer, words = find_stemmer(language), text.split()
    return frozenset(stemmer.stemWords(words) if stemmer else words)


@cache
def list_negative_stems(language: str) -> frozenset[str]:
    """Return the stems of a language's words with a negative meaning."""
    return _stem_words(_LISTS["denying"].get(language, ""), language)


@cache
def get_counterparts(language: str) -> Mapping[str, frozenset[str]]:
    """Return the stems of a role's counterparts, by its stem: "landlord" for "tenant"."""
    counterparts: dict[str, frozenset[str]] = {}
    for pair in _LISTS["roles"].get(language, "").splitlines():
        sides = [_stem_words(side, language) for side in pair.split(":")]
        for side, other in zip(sides, reversed(sides), strict=True):
            for stem in side:
                counterparts[stem] = counterparts.get(stem, frozenset()) | other
    return counterparts


@cache
def list_opposites(language: str) -> tuple[tuple[bool, tuple[frozenset[str], ...]], ...]:
    """Return a language's groups of opposites.

    A group consists of a flag, whether the opposites are converses (such as buy and sell), and
    the stems of each side.
    """

    def stems(side: str) -> frozenset[str]:
        bases = (IRREGULAR.get(word, word) for word in side.split())
        return _stem_words(" ".join(bases), language)

    groups = _LISTS["opposites"].get(language, "").splitlines()
    return tuple(
        (group.startswith("~"), tuple(map(stems, group.lstrip("~").split(":")))) for group in groups
    )
