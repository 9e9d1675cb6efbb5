"""Near copies: which passages have the same meaning although their texts differ slightly.

A figure, a negation or a name makes a difference to a reader, so passages that differ in one of
these are not near copies, however similar their words are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from typing import Final

from rag_assets.search.words import MONTHS, SCALES, UNITS, list_inverting_words, parse_word_values

_SHINGLE_WORDS: Final = 3
"""Number of words in a shingle."""
_MIN_SHARED: Final = 0.9
"""Minimum share of shingles that two passages with the same meaning have in common."""
_TOLERANCE: Final = 1e-6
"""Tolerance that is larger than the rounding error of a product of floats, and smaller than one
shingle."""
_MAX_WORD_CHARACTERS: Final = 14
"""Maximum average length of a word, including the space after it, in scripts with spaces."""
_MIN_LONG_WORD: Final = 5
"""Minimum characters of a long word; shorter words occur in most texts."""
_MAX_SHORT_UNIT: Final = 2
"""Maximum letters of a unit that is recognized only after a number, as in 5 m."""
_BEGINNINGS = "لا لم لن ليس لست ما غير بدون دون إلا فقط قبل بعد אין לא בלי ללא רק לפני אחרי"
_INVERTING_BEGINNINGS: Final = tuple(_BEGINNINGS.split())
"""Words in Arabic and Hebrew that invert a sentence or limit its scope, without their endings."""
_PREFIXED_LETTERS: Final = "وفוה"
"""Letters for "and" and similar words, which are attached to the following word."""
_INVERTING_CHARACTERS: Final = "不没沒無无非未勿禁否別别莫只前后後ずんなぬ안않못없아말만"
"""Characters of East Asian words that invert a sentence or limit its scope."""
_WITHOUT_SPACES: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_UNKNOWN_SCRIPTS: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Scripts without spaces between words, in which no single character marks a negation."""
_MARKS: Final = ".,;:!?\"'()[]{}<>«»„“”‚‘’`*_#|~…、。，；：！？「」『』（）《》¿¡।؟،؛-–—/\\+=•"
_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?…])\s|[。！？।؟]")
_PARTS: Final = re.compile(rf"{_WITHOUT_SPACES.pattern}|(?:(?!{_WITHOUT_SPACES.pattern}).)+")
_AROUND_FIGURES: Final = "".join(sign for sign in _MARKS if sign not in "-–—+=<>~")


def _fold_text(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_INVERTING_WORDS: Final = frozenset(map(_fold_text, list_inverting_words()))
"""Words that invert a sentence or limit its scope: negations, permissions, scopes."""


@dataclass(frozen=True)
class Wording:
    """The text of a passage, and its words in the forms that comparisons need."""

    text: str

    @cached_property
    def comparable_parts(self) -> frozenset[str]:
        """Return the long words; in scripts without spaces, all pairs of adjacent characters."""
        runs = self.text.casefold().split()
        if len(self.text) <= _MAX_WORD_CHARACTERS * len(runs):
            return frozenset(run for run in runs if len(run) >= _MIN_LONG_WORD)
        signs = "".join(runs)  # in scripts without spaces
        return frozenset(signs[at : at + 2] for at in range(len(signs)))

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """Return each word, folded and as written; in scripts without blanks, each character."""
        text = unicodedata.normalize("NFKC", self.text)
        parts: Iterable[str] = text.split()
        if _WITHOUT_SPACES.search(text):
            parts = chain.from_iterable(map(_split_words, parts))
        return [(word.casefold(), word) for part in parts if (word := part.strip(_MARKS))]

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Return the set of folded words."""
        return frozenset(folded for folded, _ in self.words)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Return all sequences of _SHINGLE_WORDS consecutive folded words."""
        words = [folded for folded, _ in self.words]
        return frozenset(
            tuple(words[at : at + _SHINGLE_WORDS])
            for at in range(max(1, len(words) - _SHINGLE_WORDS + 1))
        )

    @cached_property
    def first_shingles(self) -> frozenset[tuple[str, ...]]:
        """Return a sample of shingles; the samples of two passages with the same meaning overlap.

        Each of them lacks at most a tenth of the other's shingles. The sample has one more than
        that tenth, the first ones in a fixed order, so at least one is in both.
        """
        max_missing = int((1 - _MIN_SHARED) * len(self.shingles) + _TOLERANCE)
        return frozenset(nsmallest(max_missing + 1, self.shingles, key=hash))

    @cached_property
    def figures(self) -> Counter[str]:
        """Count the figures: runs that contain a digit, each with its sign and the next word."""
        runs = [run.strip(_AROUND_FIGURES) for run in _fold_text(self.text).split()]
        return Counter(
            f"{run} {after}"
            for run, after in zip(runs, [*runs[1:], ""], strict=True)
            if not run.isalpha() and any(sign.isdigit() for sign in run)
        )

    @cached_property
    def sentences(self) -> frozenset[tuple[str, ...]]:
        """Return the folded words of each sentence."""
        parts = (Wording(part).words for part in _SENTENCE_ENDS.split(self.text))
        return frozenset(tuple(folded for folded, _ in words) for words in parts if words)

    @cached_property
    def word_counts(self) -> Counter[str]:
        """Return the number of occurrences of each folded word."""
        return Counter(folded for folded, _ in self.words)


def have_same_meaning(first: Wording, second: Wording) -> bool:
    """Return whether two passages have the same meaning.

    White space, line ends, capitals and punctuation make no difference. One passage may have an
    additional sentence, unless that sentence contains a figure, a unit, a negation or the like.
    """
    longest = max(len(first.words), len(second.words))
    if not longest or len(first.distinct ^ second.distinct) > 2 * (1 - _MIN_SHARED) * longest:
        return False
    larger_count = max(len(first.shingles), len(second.shingles))
    if len(first.shingles & second.shingles) < _MIN_SHARED * larger_count:
        return False
    return first.figures == second.figures and not _differ_in_meaning(first, second)


def _differ_in_meaning(first: Wording, second: Wording) -> bool:
    """Return whether the words in only one of the passages may change its meaning.

    A replaced word may be a name, or the opposite of the other word. Additional words do not change
    the meaning if they form their own sentence.
    """
    more, less = first.word_counts - second.word_counts, second.word_counts - first.word_counts
    if not (more or less):
        return False
    if (more and less) or any(map(_changes_meaning, (*more, *less))):
        return True
    return not (first.sentences <= second.sentences or second.sentences <= first.sentences)


def _changes_meaning(word: str) -> bool:
    if word in _INVERTING_WORDS or word in MONTHS or word.endswith(("n't", "n’t")):
        return True
    if len(word) > _MAX_SHORT_UNIT and (word in SCALES or word in UNITS):
        return True
    if any(value != 1 for value in parse_word_values(word)):  # The word for 1 may be an article.
        return True
    is_unknown = _UNKNOWN_SCRIPTS.search(word) is not None
    begins = word.lstrip(_PREFIXED_LETTERS).startswith(_INVERTING_BEGINNINGS)
    return is_unknown or begins or any(sign in word for sign in _INVERTING_CHARACTERS)


def _split_words(run: str) -> list[str]:
    """Split a run without blanks into characters, if its script has no blanks between words."""
    return [part for part in _PARTS.findall(run) if part] if _WITHOUT_SPACES.search(run) else [run]


def may_be_copies(first: Wording, second: Wording) -> bool:
    """Return whether two passages share at least half of their long words; a fast first check.

    In scripts without spaces, pairs of characters are compared instead of words.
    """
    common = len(first.comparable_parts & second.comparable_parts)
    return 2 * common >= max(len(first.comparable_parts), len(second.comparable_parts))
