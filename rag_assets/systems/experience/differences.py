"""Finds differences between solutions that embeddings do not show.

Embeddings place `before the deployment` nearer to `after the deployment` than to a paraphrase. So
two solutions are only merged if these rules find no difference:

- both have the same numbers, units, names and negations
- no word in one is the opposite of a word in the other
- the text before and after words like `before` and `instead of` is not swapped
- no single word between equal words is replaced by another
- at least half of the words in each occur in the other, or have a synonym there

In doubt, solutions are not merged: a missing merge makes a count too low, but a wrong merge can
reverse the advice.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import Any

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
"""A capitalized word within a sentence."""
_MIN_MATCHED_SHARE = 0.5
_MAX_REPLACED_WORDS = 2
_MIN_SHARED_SHARE = 0.5
"""Minimum share of content words in each text that the other contains, or has a synonym for."""
_SHORT_STEM_CHARACTERS = 2
_NEAR_WORDS = 3


@lru_cache(maxsize=1)
def load_words() -> Mapping[str, Any]:
    """Return the content of words.toml; the file documents each of its word lists."""
    text = files("rag_assets.systems.experience").joinpath("words.toml").read_text("utf-8")
    return tomllib.loads(text)


@lru_cache(maxsize=3)
def _load_kinds(table: str) -> Mapping[str, frozenset[str]]:
    """Return the words of each kind in one table (scopes, hinges or units) of words.toml."""
    return {kind: frozenset(words.split()) for kind, words in load_words()[table].items()}


@lru_cache(maxsize=1)
def _load_units() -> Mapping[str, str]:
    """Return the unit that each unit word in words.toml stands for, by word."""
    return {word: unit for unit, words in _load_kinds("units").items() for word in words}


@lru_cache(maxsize=1)
def _load_function_words() -> frozenset[str]:
    return frozenset(load_words()["function_words"].split())


def find_problem_difference(first: str, second: str) -> str | None:
    """Return how two similar problems differ; None if no rule finds a difference.

    Descriptions of one problem vary in detail, so only contradictions count: each text has a number
    or a name that the other text lacks, or they have opposite words in the same position.
    """
    first_text, second_text = _ComparedText(first), _ComparedText(second)
    if first_text.numbers - second_text.numbers and second_text.numbers - first_text.numbers:
        return "a number or a version"
    if first_text.names - second_text.names and second_text.names - first_text.names:
        return "an identifier"
    replaced = _find_replacements(first_text.stems, second_text.stems)
    return "a word" if any(_have_opposite_words(here, there) for here, there in replaced) else None


def find_solution_difference(first: str, second: str) -> str | None:
    """Return how two similar solutions differ; None if no rule finds a difference."""
    first_text, second_text = _ComparedText(first), _ComparedText(second)
    if first_text.numbers != second_text.numbers or first_text.units != second_text.units:
        return "a number or a version"
    if (
        first_text.identifiers != second_text.identifiers
        or first_text.lacks_name_of(second_text)
        or second_text.lacks_name_of(first_text)
    ):
        return "an identifier"
    if first_text.scopes != second_text.scopes or _have_opposite_words(
        first_text.stems, second_text.stems
    ):
        return "a negation"
    if _is_swapped(first_text, second_text):
        return "an order"
    if (
        _has_replaced_word(first_text.stems, second_text.stems)
        or _compute_shared_share(first_text, second_text) < _MIN_SHARED_SHARE
    ):
        return "a word"
    return None


@dataclass(frozen=True)
class _ComparedText:
    text: str

    @cached_property
    def plain(self) -> str:
        return unicodedata.normalize("NFKC", self.text).replace("\u2019", "'")

    @cached_property
    def words(self) -> list[str]:
        return _WORD.findall(self.plain.casefold())

    @cached_property
    def clauses(self) -> list[list[str]]:
        """Return the words, names and numbers of each clause between punctuation marks."""
        return [_TOKEN.findall(clause) for clause in _MARKS.split(self.plain.casefold()) if clause]

    @cached_property
    def stems(self) -> list[str]:
        return [_stem(word) for word in self.words]

    @cached_property
    def numbers(self) -> frozenset[str]:
        numbers = load_words()["numbers"]
        written_numbers = {numbers[word] for word in self.words if word in numbers}
        return frozenset(written_numbers).union(_NUMBER.findall(self.plain))

    @cached_property
    def units(self) -> frozenset[str]:
        units = _load_units()
        behind = (unit.casefold() for unit in _AFTER_NUMBER.findall(self.plain) if unit)
        return frozenset(units[unit] for unit in (*behind, *self.words) if unit in units)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        identifiers = {match.group().strip("()") for match in _IDENTIFIER.finditer(self.plain)}
        identifiers |= {match.group(1).strip() for match in _QUOTED.finditer(self.plain)}
        return frozenset(
            name.strip("-./:").casefold() for name in identifiers if not name.isdigit()
        )

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the identifiers, and the capitalized words within sentences."""
        return self.identifiers | {name.casefold() for name in _NAME.findall(self.plain)}

    @cached_property
    def scopes(self) -> dict[str, int]:
        """Return how many words negate or restrict (such as `not` and `only`), by kind."""
        return {
            kind: sum(
                word in words or (kind == "not" and word.endswith("n't")) for word in self.words
            )
            for kind, words in _load_kinds("scopes").items()
        }

    def lacks_name_of(self, other: _ComparedText) -> bool:
        """Return whether the other text has a name or compound that this text lacks."""
        letters = "".join(self.words)
        names = {_stem(name.casefold()) for name in _NAME.findall(other.plain)}
        compounds = {word.replace("-", "") for word in _COMPOUND.findall(other.plain.casefold())}
        return not names <= set(self.stems) or any(
            compound not in letters for compound in compounds
        )


def _have_opposite_words(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether one text contains the opposite of a word in the other text."""
    if _negates_a_word(first, second) or _negates_a_word(second, first):
        return True
    for pole, opposite in _load_opposite_stems():
        more = _count_stems(first, pole) - _count_stems(second, pole)
        if more * (_count_stems(first, opposite) - _count_stems(second, opposite)) < 0:
            return True
    return False


def _count_stems(stems: Sequence[str], wanted_stems: frozenset[str]) -> int:
    return sum(stem in wanted_stems for stem in stems)


@lru_cache(maxsize=1)
def _load_opposite_stems() -> list[tuple[frozenset[str], frozenset[str]]]:
    pairs = (line.split(" / ") for line in load_words()["opposites"].strip().splitlines())
    return [(_stem_words(pole), _stem_words(opposite)) for pole, opposite in pairs]


def _negates_a_word(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether the second text contains a word of the first with a negating prefix."""
    there, prefixes = set(second), load_words()["negating_prefixes"].split()
    alone = [stem for stem in set(first) - there if len(stem) > _SHORT_STEM_CHARACTERS]
    return any(prefix + stem in there for stem in alone for prefix in prefixes)


def _is_swapped(first: _ComparedText, second: _ComparedText) -> bool:
    """Return whether the second text has words of the first in swapped positions.

    The compared positions are before and after a hinge word (such as `before`), and inside and
    outside the scope of a scope word (such as `only`).
    """
    for words in _load_kinds("hinges").values():
        for find in (_find_words_near_hinges, _find_words_around_hinge):
            if _are_crossed(find(first, words), find(second, words)):
                return True
    return any(
        _are_crossed(_find_words_in_scope(first, words), _find_words_in_scope(second, words))
        for words in _load_kinds("scopes").values()
    )


_Sides = tuple[set[str], set[str]]


def _are_crossed(first: _Sides, second: _Sides) -> bool:
    straight = len(first[0] & second[0]) + len(first[1] & second[1])
    return len(first[0] & second[1]) + len(first[1] & second[0]) > straight


def _find_words_around_hinge(text: _ComparedText, hinge: frozenset[str]) -> _Sides:
    """Return the stems before and after the first hinge; empty sets without a hinge."""
    words = text.words
    at = next((at for at, word in enumerate(words) if word in hinge), 0)
    return (
        (_collect_content_stems(words[:at]), _collect_content_stems(words[at + 1 :]))
        if at
        else (set(), set())
    )


def _find_words_near_hinges(text: _ComparedText, hinge: frozenset[str]) -> _Sides:
    """Return the stems right before and right after each hinge, within its clause."""
    before, behind = set[str](), set[str]()
    for clause in text.clauses:
        for at, word in enumerate(clause):
            if word in hinge:
                before |= _collect_content_stems(clause[:at][::-1], _NEAR_WORDS)
                behind |= _collect_content_stems(clause[at + 1 :], _NEAR_WORDS)
    return before, behind


def _find_words_in_scope(text: _ComparedText, scope: frozenset[str]) -> _Sides:
    """Return the stems right after scope words in their clauses, and all other stems.

    Both sets are empty if the text has no scope word.
    """
    about, others = set[str](), set[str]()
    for clause in text.clauses:
        at = next((at for at, word in enumerate(clause) if word in scope), len(clause))
        about |= _collect_content_stems(clause[at + 1 :], _NEAR_WORDS + 1)
        others |= _collect_content_stems(clause[:at]) | _collect_content_stems(
            clause[at + 1 :][_NEAR_WORDS + 1 :]
        )
    return (about, others - about) if about else (set(), set())


def _collect_content_stems(words: Sequence[str], most: int | None = None) -> set[str]:
    """Return the stems of the first `most` words that are not function words."""
    content = [word for word in words if word not in _load_function_words()]
    return set(map(_stem, content[:most]))


def _has_replaced_word(first: Sequence[str], second: Sequence[str]) -> bool:
    """Return whether a content word between equal words is replaced by a non-synonym."""
    return any(
        not all(any(_are_synonyms(a, b) for b in there) for a in here)
        for here, there in _find_replacements(first, second)
    )


def _find_replacements(
    first: Sequence[str], second: Sequence[str]
) -> Iterator[tuple[list[str], list[str]]]:
    """Yield each run of stems that the second text replaces, with the replacing stems.

    Dissimilar texts yield nothing.
    """
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    if matcher.ratio() < _MIN_MATCHED_SHARE:
        return
    function_words = _load_function_word_stems()
    for tag, begin, end, from_, to in matcher.get_opcodes():
        here = [stem for stem in first[begin:end] if stem not in function_words]
        there = [stem for stem in second[from_:to] if stem not in function_words]
        if (
            tag == "replace"
            and here
            and there
            and max(len(here), len(there)) <= _MAX_REPLACED_WORDS
        ):
            yield here, there


def _compute_shared_share(first: _ComparedText, second: _ComparedText) -> float:
    """Return the lower of two shares: the content words of each text that the other has."""
    here, there = _collect_content_stems(first.words), _collect_content_stems(second.words)
    return min(_compute_contained_share(here, there), _compute_contained_share(there, here))


def _compute_contained_share(words: set[str], others: set[str]) -> float:
    contained = sum(any(_are_synonyms(word, other) for other in others) for word in words)
    return contained / len(words) if words else 1.0


def _are_synonyms(first: str, second: str) -> bool:
    return first == second or any(
        first in group and second in group for group in _load_synonym_stems()
    )


@lru_cache(maxsize=1)
def _load_synonym_stems() -> list[frozenset[str]]:
    return [_stem_words(group) for group in load_words()["synonyms"].strip().splitlines()]


@lru_cache(maxsize=1)
def _load_function_word_stems() -> frozenset[str]:
    # Scope words are compared by their number.
    words = _load_function_words().union(*_load_kinds("scopes").values())
    return frozenset(map(_stem, words))


@lru_cache(maxsize=1)
def _load_stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def _stem(word: str) -> str:
    stem: str = _load_stemmer().stemWord(word)
    return stem


def _stem_words(words: str) -> frozenset[str]:
    return frozenset(map(_stem, words.split()))
