"""Names: find the names in a claim that the cited passages lack, by their capital letters.

In most languages, a capital letter within a sentence marks a name. But German capitalizes every
noun, and every sentence starts with a capital. There a name is recognized only if it stands in the
exact place of another name in the passage. Names in scripts without capitals cannot be recognized.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Final, TypeAlias

from rag_assets.search.sentences import blank_addresses
from rag_assets.search.words import MONTHS, NUMBERS, QUANTIFIERS, UNITS
from rag_assets.storage.index.common_words import COMMON_WORDS

_WORD: Final = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_MARKUP: Final = re.compile(r"[*`_~\"“”„«»‘\u00ad\u200b-\u200f\u2060-\u2064\ufeff]")
_BEGINS: Final = re.compile(r"(?:[.!?|•·…]|\n\s*[-+>#]*(?:\d{1,3}[.)])?)\s*\Z")
_AFTER_SIGN: Final = re.compile(r"[:;(\[{–—/>#+=]\s*\Z")
_FIRST: Final = re.compile(r"[\s>#+-]*(?:\d{1,3}[.)])?\s*\Z")
_CAPITAL_WITHIN: Final = re.compile(r"[a-z][A-Z]")
_LOOKBACK_CHARACTERS: Final = 8
_GERMAN_WORDS: Final = (
    "der die das und ist sind nicht ein eine einen einem einer den dem des mit für auf werden wird"
    " von zu zum zur im bei nach oder auch sich als wenn durch über es er sie wir ihr kann muss"
    " wurde hat haben vor aus am dass"
)
_GERMAN: Final = frozenset(_GERMAN_WORDS.split())
_TITLE_WORDS: Final = (
    "mr mrs ms miss dr prof herr frau monsieur madame mme señor señora sr sra sig dott heer mevrouw"
)
_TITLES: Final = frozenset(_TITLE_WORDS.split())
_MIN_GERMAN_SHARE: Final = 0.12
"""Minimum share of German words in a German text; Dutch and Danish texts have fewer of them."""
_TITLE_SHARE: Final = 0.5
"""Share of capitalized words above which a text is a title, or all in capitals. In such a text,
capitals do not mark names."""
_MAX_ENDING_LETTERS: Final = 3
_MIN_STEM_LETTERS: Final = 3
_MIN_JOINED_LETTERS: Final = 4
_MIN_WORDS: Final = 3
_NEIGHBOUR_WORDS: Final = 2
_MIN_NAME_SIMILARITY: Final = 0.55
"""Minimum similarity of a name's forms in two languages, such as Nueva York and New York."""
_Neighbours: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
_NOWHERE: Final[_Neighbours] = ((), ())


@dataclass(frozen=True, slots=True)
class _Word:
    """A word in its sentence.

    Attributes:
        folded: the word in lower case, without compatibility forms.
        begins: whether it is the first word of a sentence, an item or a cell.
        is_first: whether it may have a capital only because of its position.
    """

    written: str
    folded: str
    begins: bool = False
    is_first: bool = False

    @property
    def is_capitalized(self) -> bool:
        """Return whether the word starts with a capital."""
        return self.written[:1].isupper()

    @property
    def is_acronym(self) -> bool:
        """Return whether the word has a capital after its first letter, as in SLA or PostgreSQL."""
        return any(map(str.isupper, self.written[1:]))

    @property
    def is_code(self) -> bool:
        """Return whether the word has a capital after a lower-case letter, as in KeyError."""
        return _CAPITAL_WITHIN.search(self.written) is not None


@dataclass(frozen=True)
class NamedWords:
    """The words of passages, in which the names of claims are looked up.

    Attributes:
        context: further words that the passages were shown with, such as their addresses.
        parts: the merged passages, so that each is parsed only once; empty for a single
            passage.
    """

    text: str
    context: str = ""
    parts: tuple[NamedWords, ...] = ()

    @classmethod
    def merge(cls, parts: Sequence[NamedWords]) -> NamedWords:
        """Combine the words of several passages."""
        return cls("\n".join(part.text for part in parts), parts=tuple(parts))

    @cached_property
    def words(self) -> Sequence[_Word]:
        """Return the words of the passages, in order."""
        if self.parts:
            return tuple(chain.from_iterable(part.words for part in self.parts))
        return tuple(_parse_words(self.text))

    @cached_property
    def vocabulary(self) -> frozenset[str]:
        """Return the words and their parts, and the words of the context, all folded."""
        if self.parts:
            return frozenset[str]().union(*(part.vocabulary for part in self.parts))
        context = (_fold_text(word) for word in re.findall(r"[^\W_]+", self.context))
        parts = (
            part for word in self.words for part in {word.folded, *_split_compound(word.folded)}
        )
        return frozenset(parts) | frozenset(context)

    @cached_property
    def sorted_words(self) -> Sequence[str]:
        """Return the words of the passages in alphabetical order, for lookups by prefix."""
        return sorted(self.vocabulary)

    @cached_property
    def lower_case(self) -> frozenset[str]:
        """Return the words that occur without a capital."""
        if self.parts:
            return frozenset[str]().union(*(part.lower_case for part in self.parts))
        return frozenset(word.folded for word in self.words if not word.is_capitalized)

    @cached_property
    def joined_letters(self) -> str:
        """Return the letters and digits of the passages as one string without separators."""
        if self.parts:
            return "".join(part.joined_letters for part in self.parts)
        return "".join(c for c in _fold_text(self.text) if c.isalnum())

    @cached_property
    def initials(self) -> str:
        """Return the first letters of all words in order, as one string."""
        return "".join(word.folded[0] for word in self.words)

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the capitalized words that are not common words."""
        if self.parts:
            return frozenset[str]().union(*(part.names for part in self.parts))
        named = (word.folded for word in self.words if word.is_capitalized)
        return frozenset(named) - COMMON_WORDS

    @cached_property
    def names_by_beginning(self) -> Mapping[str, Sequence[str]]:
        """Return the names by their first letters, which the inflected forms of a name share."""
        names = defaultdict[str, list[str]](list)
        for name in self.names:
            names[name[:_MIN_STEM_LETTERS]].append(name)
        return names

    @cached_property
    def names_by_neighbours(self) -> Mapping[_Neighbours, Sequence[tuple[str, ...]]]:
        """Return the runs of capitalized words (each once), grouped by the words around them."""
        names_by_place = defaultdict[_Neighbours, dict[tuple[str, ...], None]](dict)
        if self.parts:
            for part in self.parts:
                for place, runs in part.names_by_neighbours.items():
                    names_by_place[place].update(dict.fromkeys(runs))
        else:
            for begin, end in _find_runs(self.words):
                names = tuple(word.folded for word in self.words[begin:end])
                names_by_place[_get_neighbours(self.words, begin, end)][names] = None
        return {place: tuple(runs) for place, runs in names_by_place.items()}

    @cached_property
    def do_capitals_mark_names(self) -> bool:
        """Return whether capitals within sentences mark names in these passages."""
        words, capitals, german = self.capital_counts
        is_german = german >= _MIN_GERMAN_SHARE * max(1, words)
        return not is_german and capitals / max(1, words) <= _TITLE_SHARE

    @cached_property
    def capital_counts(self) -> tuple[int, int, int]:
        """Return the numbers of words, capitalized words and German words."""
        if self.parts:
            words, capitals, german = zip(
                *(part.capital_counts for part in self.parts), strict=True
            )
            return sum(words), sum(capitals), sum(german)
        capitals_count = sum(word.is_capitalized for word in self.words)
        return len(self.words), capitals_count, sum(word.folded in _GERMAN for word in self.words)

    @cached_property
    def scripts(self) -> frozenset[str]:
        """Return the scripts of the words."""
        if self.parts:
            return frozenset[str]().union(*(part.scripts for part in self.parts))
        return frozenset(_get_script(word.folded) for word in self.words)

    def _begins_a_word(self, folded: str) -> bool:
        """Return whether any word of the passages starts with this text."""
        at = bisect_left(self.sorted_words, folded)
        return at < len(self.sorted_words) and self.sorted_words[at].startswith(folded)

    def is_lower(self, folded: str) -> bool:
        """Return whether the passages contain this word without a capital."""
        return folded in self.lower_case

    def resembles(self, folded: str) -> bool:
        """Return whether the passages contain a similar name, such as one in another language."""
        return bool(difflib.get_close_matches(folded, self.names, n=1, cutoff=_MIN_NAME_SIMILARITY))

    def has(self, word: _Word) -> bool:
        """Return whether the passages contain a word, or an inflected or compound form of it."""
        folded = word.folded
        is_word = folded in UNITS if word.is_acronym else _is_ordinary_word(folded)
        if is_word or folded in self.vocabulary:
            return True
        if len(folded) >= _MIN_JOINED_LETTERS and folded.replace("-", "") in self.joined_letters:
            return True
        if word.is_acronym and (folded in self.initials or self._begins_a_word(folded)):
            return True
        parts = _split_compound(folded)
        if len(parts) > 1:
            return all(self.has(_Word(part, part)) for part in parts)
        alike = self.names_by_beginning.get(folded[:_MIN_STEM_LETTERS], ())
        return any(_is_inflection(folded, other) for other in alike)


def find_missing_names(claim: str, cited: NamedWords, everything: NamedWords) -> Iterator[str]:
    """Yield the names in a claim that its cited passages do not have.

    Args:
        everything: all passages; a word that they have without a capital is an ordinary word.
    """
    words = tuple(_parse_words(claim))
    is_title = len(words) > _MIN_WORDS and _compute_capital_share(words) > _TITLE_SHARE
    if is_title and not _is_german(words):
        return
    marks_names = _do_capitals_mark_names(words) and cited.do_capitals_mark_names
    places = _NamePositions(words, cited, everything)
    for at, word in enumerate(words):
        if not word.is_capitalized and not word.is_acronym:
            continue
        if _get_script(word.folded) not in cited.scripts or cited.has(word):
            continue
        if everything.is_lower(word.folded) and not word.is_acronym:
            continue
        is_name = word.is_acronym or (marks_names and not word.is_first)
        if is_name or places.have_another_name(at):
            yield word.written


def find_missing_full_names(claim: str, cited: NamedWords) -> Iterator[str]:
    """Yield the names that cited passages in another language lack, even in a similar form.

    Only names of two or more words and code names such as KeyError are looked up. Other single
    names, such as places and the initials of organizations, are often translated.
    """
    words = tuple(_parse_words(claim))
    if _compute_capital_share(words) > _TITLE_SHARE and not _is_german(words):
        return
    for begin, end in _find_runs(words):
        name = [word for word in words[begin:end] if not _is_ordinary_word(word.folded)]
        missing = [word for word in name if _is_missing(word, cited)]
        yield from (word.written for word in missing if word.is_code)
        if len(missing) == len(name) > 1 and not words[begin].is_first:
            yield " ".join(word.written for word in name)


def _is_missing(word: _Word, cited: NamedWords) -> bool:
    """Return whether the passages lack a word and every similar name.

    A word in a script that the passages do not use never counts as missing.
    """
    is_comparable = _get_script(word.folded) in cited.scripts
    is_like = not word.is_code and cited.resembles(word.folded)
    return is_comparable and not cited.has(word) and not is_like


class _NamePositions:
    """The positions of names in a claim, and the names that passages have in their place."""

    def __init__(self, words: Sequence[_Word], cited: NamedWords, everything: NamedWords) -> None:
        self._words, self._cited, self._everything = words, cited, everything
        self._verdicts: dict[_Neighbours, bool] = {}

    def have_another_name(self, at: int) -> bool:
        """Return whether the passages have a different name between the same neighbouring words."""
        begin, end = self._find_run_around(at)
        place = _get_neighbours(self._words, begin, end)
        if place not in self._verdicts:
            self._verdicts[place] = place != _NOWHERE and any(
                self._claimed_names.isdisjoint(names) and all(map(self._is_name, names))
                for names in self._cited.names_by_neighbours.get(place, ())
            )
        return self._verdicts[place]

    @cached_property
    def _claimed_names(self) -> frozenset[str]:
        return frozenset(word.folded for word in self._words)

    @cached_property
    def _run_by_word(self) -> Mapping[int, tuple[int, int]]:
        """Return, for each capitalized word, the run of capitalized words that contains it."""
        return {at: run for run in _find_runs(self._words) for at in range(*run)}

    def _find_run_around(self, at: int) -> tuple[int, int]:
        """Return the start and end of the run of capitalized words around a word."""
        words = self._words
        if words[at].is_capitalized:
            return self._run_by_word[at]
        begin, end = at, at + 1
        if begin and words[begin - 1].is_capitalized and not words[begin].is_first:
            begin = self._run_by_word[begin - 1][0]
        if end < len(words) and words[end].is_capitalized and not words[end].is_first:
            end = self._run_by_word[end][1]
        return begin, end

    def _is_name(self, folded: str) -> bool:
        return not (_is_ordinary_word(folded) or self._everything.is_lower(folded))


def _get_neighbours(words: Sequence[_Word], begin: int, end: int) -> _Neighbours:
    """Return the words around a run: up to two before it and two after it, within its sentence."""
    before: list[str] = []
    at = begin
    while len(before) < _NEIGHBOUR_WORDS and at and not words[at].begins:
        at -= 1
        before.append(words[at].folded)
    after: list[str] = []
    at = end
    while len(after) < _NEIGHBOUR_WORDS and at < len(words) and not words[at].begins:
        after.append(words[at].folded)
        at += 1
    return tuple(before), tuple(after)


def _find_runs(words: Sequence[_Word]) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each run of capitalized words; no run crosses a sentence end."""
    at = 0
    while at < len(words):
        end = at + 1
        if words[at].is_capitalized:
            while end < len(words) and words[end].is_capitalized and not words[end].is_first:
                end += 1
            yield at, end
        at = end


def _parse_words(text: str) -> Iterator[_Word]:
    plain = blank_addresses(_MARKUP.sub("", unicodedata.normalize("NFKC", text)))
    for match in _WORD.finditer(plain):
        if not any(map(str.isalpha, match[0])):
            continue
        start = match.start()
        before = plain[max(0, start - _LOOKBACK_CHARACTERS) : start]
        begins = bool(_BEGINS.search(before)) or (
            start <= _LOOKBACK_CHARACTERS and bool(_FIRST.fullmatch(before))
        )
        is_first = begins or bool(_AFTER_SIGN.search(before))
        yield _Word(match[0], _fold_text(match[0]), begins, is_first)


def _fold_text(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).replace("’", "'")


def _split_compound(folded: str) -> list[str]:
    """Return the parts of a compound, without a genitive's s."""
    return [part for part in re.split(r"['\-]", folded) if len(part) > 1]


def _is_ordinary_word(folded: str) -> bool:
    is_counted = folded in MONTHS or folded in NUMBERS or folded in UNITS
    is_common = folded in COMMON_WORDS or folded in _GERMAN or folded in _TITLES
    return is_common or is_counted or folded in QUANTIFIERS or len(folded) == 1


def _is_inflection(first: str, second: str) -> bool:
    """Return whether two words differ only by short endings, or one abbreviates the other."""
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    if shared < _MIN_STEM_LETTERS:
        return False
    if shared == min(len(first), len(second)):
        return True
    max_ending = 1 if shared == _MIN_STEM_LETTERS else _MAX_ENDING_LETTERS - 1
    return max(len(first), len(second)) - shared <= max_ending and shared > _MIN_STEM_LETTERS


def _compute_capital_share(words: Sequence[_Word]) -> float:
    return sum(word.is_capitalized for word in words) / max(1, len(words))


def _is_german(words: Sequence[_Word]) -> bool:
    return sum(word.folded in _GERMAN for word in words) >= _MIN_GERMAN_SHARE * max(1, len(words))


def _do_capitals_mark_names(words: Sequence[_Word]) -> bool:
    return not _is_german(words) and _compute_capital_share(words) <= _TITLE_SHARE


def _get_script(folded: str) -> str:
    return unicodedata.name(folded[0], "").partition(" ")[0]
