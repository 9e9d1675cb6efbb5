"""What keeps two solutions apart that vectors hardly tell apart.

An embedding puts `before the deployment` and `after the deployment` nearer to each other than two
ways to say either. So two solutions are only the same if neither has a number, a unit, a name or a
negation that the other lacks, no word of the one is the opposite of one in the other, what stands
before and behind words like `before` and `instead of` has not changed places, no word in the midst
of equal ones is replaced by another, and half of the words of each have their like in the other.
What is not sure keeps them apart: a merge that is missing costs a count, a wrong one tells an agent
to do the contrary.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import Any

from rag_assets.systems.experience.opposites import (
    FUNCTION_WORDS,
    HINGES,
    NEGATING_PREFIXES,
    NUMBERS,
    OPPOSITES,
    SCOPES,
    SYNONYMS,
    UNITS,
)

_NUMBER = re.compile(r"\d+(?:[.,:/]\d+)*")
_AFTER_NUMBER = re.compile(r"\d(ms|s|min|h|d|kb|mb|gb|kib|mib|gib|px|k|m|g|%)?(?![\w.])", re.I)
_IDENTIFIER = re.compile(
    r"""(?<![\w./-])(?:
        --?[A-Za-z][\w-]*                     # flags
      | [A-Za-z_$][\w$]*(?:\(\))              # calls
      | [\w$@-]+(?:[./:\\][\w$@*-]+)+         # paths, qualified names
      | [A-Z]\w*(?:-[A-Z]\w*)+                # headers
      | [A-Za-z]+_[\w]+                       # snake case
      | [a-z]+[A-Z]\w*                        # camel case
      | [A-Z][a-z]+[A-Z]\w*                   # Pascal case
      | [A-Z][A-Z0-9_]{2,}                    # constants
    )""",
    re.VERBOSE,
)
_QUOTED = re.compile(r"(?<!\w)[`'\"]([^`'\"\n]{1,80})[`'\"](?!\w)")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
_TOKEN = re.compile(r"[^\W_][\w./'-]*")
_MARKS = re.compile(r"[,;:!?()\n]|\.(?=\s|$)")
_COMPOUND = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)+")
_NAME = re.compile(r"(?<=[\w,;)] )[A-Z][\w]*")
"""A word with a capital that does not begin a sentence."""
_LEAST_MATCHED = 0.5
_MOST_REPLACED = 2
_LEAST_SHARED = 0.5
"""Of the words of each that say something."""
_SHORT = 2
_BESIDE = 3


def problems_differ(first: str, second: str) -> str | None:
    """In what two problems differ that are near; None: in nothing of the kind.

    Of one problem people tell more and less, so only what stands against something else counts: a
    number or a name that each has and the other has not, and an opposite in the same place.
    """
    one, other = _Text(first), _Text(second)
    if one.numbers - other.numbers and other.numbers - one.numbers:
        return "a number or a version"
    if one.names - other.names and other.names - one.names:
        return "an identifier"
    replaced = _replaced(one.stems, other.stems)
    return "a word" if any(_are_opposed(here, there) for here, there in replaced) else None


def differ(first: str, second: str) -> str | None:
    """In what two solutions differ that vectors hardly tell apart; None: in nothing of the kind."""
    one, other = _Text(first), _Text(second)
    if one.numbers != other.numbers or one.units != other.units:
        return "a number or a version"
    if one.identifiers != other.identifiers or one.lacks(other) or other.lacks(one):
        return "an identifier"
    if one.scopes != other.scopes or _are_opposed(one.stems, other.stems):
        return "a negation"
    if _is_turned(one, other):
        return "an order"
    if _is_replaced(one.stems, other.stems) or _shared(one, other) < _LEAST_SHARED:
        return "a word"
    return None


@dataclass(frozen=True)
class _Text:
    text: str

    @cached_property
    def plain(self) -> str:
        return unicodedata.normalize("NFKC", self.text).replace("\u2019", "'")

    @cached_property
    def words(self) -> list[str]:
        return _WORD.findall(self.plain.casefold())

    @cached_property
    def clauses(self) -> list[list[str]]:
        """Words, names and numbers between marks of punctuation."""
        return [_TOKEN.findall(clause) for clause in _MARKS.split(self.plain.casefold()) if clause]

    @cached_property
    def stems(self) -> list[str]:
        return [_stem(word) for word in self.words]

    @cached_property
    def numbers(self) -> frozenset[str]:
        return frozenset(_NUMBER.findall(self.plain)) | {
            NUMBERS[word] for word in self.words if word in NUMBERS
        }

    @cached_property
    def units(self) -> frozenset[str]:
        behind = (unit.casefold() for unit in _AFTER_NUMBER.findall(self.plain) if unit)
        return frozenset(UNITS.get(unit, unit) for unit in (*behind, *self.words) if unit in UNITS)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        named = {match.group().strip("()") for match in _IDENTIFIER.finditer(self.plain)}
        named |= {match.group(1).strip() for match in _QUOTED.finditer(self.plain)}
        return frozenset(name.strip("-./:").casefold() for name in named if not name.isdigit())

    @cached_property
    def names(self) -> frozenset[str]:
        """Identifiers, and words with a capital that do not begin a sentence."""
        return self.identifiers | {name.casefold() for name in _NAME.findall(self.plain)}

    @cached_property
    def scopes(self) -> dict[str, int]:
        """How often the text is turned round in each way."""
        found = dict.fromkeys(SCOPES, 0)
        for word in self.words:
            for way, words in SCOPES.items():
                found[way] += word in words or (way == "not" and word.endswith("n't"))
        return found

    def lacks(self, other: _Text) -> bool:
        """Whether the other text has a name that this one does not have."""
        letters = "".join(self.words)
        names = {_stem(name.casefold()) for name in _NAME.findall(other.plain)}
        compounds = {one.replace("-", "") for one in _COMPOUND.findall(other.plain.casefold())}
        return not names <= set(self.stems) or any(one not in letters for one in compounds)


def _are_opposed(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether one text has something more often, and the other the opposite of it."""
    if _negates(first, second) or _negates(second, first):
        return True
    for pole, opposite in _opposites():
        more = _count(first, pole) - _count(second, pole)
        if more * (_count(first, opposite) - _count(second, opposite)) < 0:
            return True
    return False


def _count(stems: Sequence[str], wanted: frozenset[str]) -> int:
    return sum(stem in wanted for stem in stems)


@lru_cache(maxsize=1)
def _opposites() -> list[tuple[frozenset[str], frozenset[str]]]:
    return [
        (frozenset(map(_stem, pole)), frozenset(map(_stem, opposite)))
        for pole, opposite in OPPOSITES
    ]


def _negates(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a word of the first text is there in the second one with a prefix that negates it."""
    there = set(second)
    alone = [stem for stem in set(first) - there if len(stem) > _SHORT]
    return any(prefix + stem in there for stem in alone for prefix in NEGATING_PREFIXES)


def _is_turned(first: _Text, second: _Text) -> bool:
    """Whether the sides of a hinge, or what a word of scope is about, have changed places."""
    for words in HINGES.values():
        for near in (_beside, _around):
            if _are_crossed(near(first, words), near(second, words)):
                return True
    return any(
        _are_crossed(_about(first, words), _about(second, words)) for words in SCOPES.values()
    )


_Sides = tuple[set[str], set[str]]


def _are_crossed(one: _Sides, other: _Sides) -> bool:
    straight = len(one[0] & other[0]) + len(one[1] & other[1])
    return len(one[0] & other[1]) + len(one[1] & other[0]) > straight


def _around(text: _Text, hinge: frozenset[str]) -> _Sides:
    """All that stands before and behind the first hinge; nothing if there is none."""
    words = text.words
    at = next((at for at, word in enumerate(words) if word in hinge), 0)
    return (_content(words[:at]), _content(words[at + 1 :])) if at else (set(), set())


def _beside(text: _Text, hinge: frozenset[str]) -> _Sides:
    """What stands right before and right behind each hinge, in its clause."""
    before, behind = set[str](), set[str]()
    for clause in text.clauses:
        for at, word in enumerate(clause):
            if word in hinge:
                before |= _content(clause[:at][::-1], _BESIDE)
                behind |= _content(clause[at + 1 :], _BESIDE)
    return before, behind


def _about(text: _Text, scope: frozenset[str]) -> _Sides:
    """What words of scope are about, behind them in their clause; and all else."""
    about, others = set[str](), set[str]()
    for clause in text.clauses:
        at = next((at for at, word in enumerate(clause) if word in scope), len(clause))
        about |= _content(clause[at + 1 :], _BESIDE + 1)
        others |= _content(clause[:at]) | _content(clause[at + 1 :][_BESIDE + 1 :])
    return (about, others - about) if about else (set(), set())


def _content(words: Sequence[str], most: int | None = None) -> set[str]:
    """The stems of the first words that say something."""
    return {_stem(one) for one in [word for word in words if word not in FUNCTION_WORDS][:most]}


def _is_replaced(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether a word that says something stands in the place of another one between equal ones."""
    return any(
        not all(any(_are_synonyms(a, b) for b in there) for a in here)
        for here, there in _replaced(first, second)
    )


def _replaced(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the few stems that stand in each other's place between equal ones.

    Args:
        first, second: stems of texts; of texts that are not alike nothing has the same place.
    """
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.ratio() < _LEAST_MATCHED:
        return
    function_words = _function_stems()
    for tag, begin, end, from_, to in matcher.get_opcodes():
        here = [stem for stem in first[begin:end] if stem not in function_words]
        there = [stem for stem in second[from_:to] if stem not in function_words]
        if tag == "replace" and here and there and max(len(here), len(there)) <= _MOST_REPLACED:
            yield here, there


def _shared(one: _Text, other: _Text) -> float:
    """The lesser share of words that say something and have their like in the other text."""
    here, there = _content(one.words), _content(other.words)
    return min(_covered(here, there), _covered(there, here))


def _covered(words: set[str], others: set[str]) -> float:
    found = sum(any(_are_synonyms(word, one) for one in others) for word in words)
    return found / len(words) if words else 1.0


def _are_synonyms(one: str, other: str) -> bool:
    return one == other or any(one in group and other in group for group in _synonyms())


@lru_cache(maxsize=1)
def _synonyms() -> list[frozenset[str]]:
    return [frozenset(map(_stem, group)) for group in SYNONYMS]


@lru_cache(maxsize=1)
def _function_stems() -> frozenset[str]:
    # Words of scope are compared by how often they occur.
    return frozenset(map(_stem, FUNCTION_WORDS.union(*SCOPES.values())))


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _stem(word: str) -> str:
    stem: str = _stemmer().stemWord(word)
    return stem
