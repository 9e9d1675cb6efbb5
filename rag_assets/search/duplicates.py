"""Duplicates: passages with equal texts become one hit, as do a passage and a block within it.

Copies and editions of a document differ little in most passages, and then need only one hit. But a
figure, a negation or a name makes a difference to a reader. So passages that differ in one of these
stay separate, however similar their words are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import chain
from typing import Any, Final

from rag_assets.search.figure_words import MONTHS, SCALES, UNITS, word_values
from rag_assets.search.opposite_words import turning_words
from rag_assets.storage.index.model import Candidate

_SHINGLE: Final = 3
"""Number of words in a shingle."""
_LEAST_SHARED: Final = 0.9
"""Minimum share of shingles that two passages with the same meaning have in common."""
_ROUNDING: Final = 1e-6
"""Tolerance that is larger than the rounding error of a product of floats, and smaller than one
shingle."""
_LONGEST_WORDS: Final = 14
"""Average number of characters of a word, including the space after it."""
_LONG: Final = 5
"""Minimum characters of a word that only few texts have in common."""
_SHORT: Final = 2
"""Maximum letters of a unit that is recognized only after a number, as in 5 m."""


def _fold_text(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


_TURNING: Final = frozenset(map(_fold_text, turning_words()))
"""Words that invert a sentence or limit its scope: negations, permissions, scopes."""
_BEGINNINGS = "لا لم لن ليس لست ما غير بدون دون إلا فقط قبل بعد אין לא בלי ללא רק לפני אחרי"
_TURNING_BEGINNINGS: Final = tuple(_BEGINNINGS.split())
"""The same words in Arabic and Hebrew, without endings, since endings are attached to them."""
_JOINED: Final = "وفוה"
"""Letters for "and" and similar words, which are attached to the following word."""
_TURNING_SIGNS: Final = "不没沒無无非未勿禁否別别莫只前后後ずんなぬ안않못없아말만"
"""The same for East Asian scripts: characters that are part of a word."""
_WITHOUT_SPACES: Final = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_UNKNOWN_SCRIPTS: Final = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Scripts without spaces between words, in which no single character marks a negation."""
_MARKS: Final = ".,;:!?\"'()[]{}<>«»„“”‚‘’`*_#|~…、。，；：！？「」『』（）《》¿¡।؟،؛-–—/\\+=•"


@dataclass(frozen=True, slots=True)
class Distinct:
    """A candidate, and the other documents that hold its text.

    Attributes:
        also: uris of these other documents, in order of rank.
        block: the best block of the candidate that was found.
    """

    candidate: Candidate
    also: tuple[str, ...] = ()
    block: Candidate | None = None

    @property
    def id(self) -> str:
        """Return the id of the candidate."""
        return self.candidate.id

    def with_fields(
        self, fields: Mapping[str, Any], block_fields: Mapping[str, Any] | None = None
    ) -> Passage:
        """Return the passage with its own stored fields and the stored fields of its block."""
        return Passage(self.candidate, self.also, fields, block_fields)


@dataclass(frozen=True, slots=True)
class Passage:
    """A distinct text with its stored fields.

    Attributes:
        candidate: the candidate that has this text.
        also: see Distinct.
        fields: fields of the entry, as stored.
        block_fields: stored fields of the block that the question is about, if one was found.
        parts: the passages that it was merged from, in document order; empty if it is a single
            entry.
    """

    candidate: Candidate
    also: tuple[str, ...]
    fields: Mapping[str, Any]
    block_fields: Mapping[str, Any] | None = None
    parts: tuple[Passage, ...] = ()

    @property
    def id(self) -> str:
        """Return the id of the candidate."""
        return self.candidate.id


def collapse(candidates: Sequence[Candidate]) -> list[Distinct]:
    """Keep the first candidate of each text, with the uris of the other documents that have it.

    Among equally good candidates, one that is adjacent to a kept candidate wins, so that hits do
    not alternate between two copies of a document.

    If both a passage and blocks in it were found, the entry that ranks first stays: the passage
    without these blocks, or the block without this passage.

    Args:
        candidates: best first; only those that the caller may read.
    """
    equal: dict[str, list[Candidate]] = {}
    for candidate in _outermost_first(candidates):
        equal.setdefault(candidate.text_key, []).append(candidate)
    distinct: list[Distinct] = []
    kept: set[tuple[str, str, int]] = set()
    for same in equal.values():
        first = _beside(same, kept) if len(same) > 1 else same[0]
        kept.add((first.document_id, first.index_key, first.ordinal))
        distinct.append(Distinct(first, _uris(first, same) if len(same) > 1 else ()))
    return distinct


def _beside(same: Sequence[Candidate], kept: Collection[tuple[str, str, int]]) -> Candidate:
    """Return the first of equally good candidates that adjoins a kept one, or else the first."""
    for one in same:
        beside = {(one.document_id, one.index_key, one.ordinal + step) for step in (-1, 1)}
        if one.score == same[0].score and not beside.isdisjoint(kept):
            return one
    return same[0]


def _outermost_first(candidates: Sequence[Candidate]) -> Iterator[Candidate]:
    """Yield candidates, except those that contain or lie within a higher-ranked candidate."""
    held: set[tuple[str, str, int]] = set()
    kept: set[tuple[str, str, int]] = set()
    for candidate in candidates:
        version = candidate.document_id, candidate.index_key
        around = [(*version, ordinal) for ordinal in candidate.within]
        own = (*version, candidate.ordinal)
        if own in held or not kept.isdisjoint(around):
            continue
        kept.add(own)
        held.update(around)
        yield candidate


def _uris(first: Candidate, others: Sequence[Candidate]) -> tuple[str, ...]:
    uris = dict.fromkeys(other.uri for other in others if other.uri)
    uris.pop(first.uri, None)
    return tuple(uris)


@dataclass(frozen=True)
class Wording:
    """The words of a passage, prepared for comparison."""

    text: str

    @cached_property
    def long_runs(self) -> frozenset[str]:
        """Return the long words between blanks; without blanks, pairs of adjacent characters."""
        runs = self.text.casefold().split()
        if len(self.text) <= _LONGEST_WORDS * len(runs):
            return frozenset(run for run in runs if len(run) >= _LONG)
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
        """Return the distinct words."""
        return frozenset(folded for folded, _ in self.words)

    @cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        """Return all sequences of _SHINGLE words."""
        words = [folded for folded, _ in self.words]
        return frozenset(
            tuple(words[at : at + _SHINGLE]) for at in range(max(1, len(words) - _SHINGLE + 1))
        )

    @cached_property
    def first_shingles(self) -> frozenset[tuple[str, ...]]:
        """Return a sample of shingles; the samples of two passages with the same meaning overlap.

        Of two such passages, each lacks at most a tenth of the other's shingles. Take the first
        shingles in any fixed order, one more than that tenth: at least one of them is in both
        passages.
        """
        missing = int((1 - _LEAST_SHARED) * len(self.shingles) + _ROUNDING)
        return frozenset(nsmallest(missing + 1, self.shingles, key=hash))

    @cached_property
    def figures(self) -> Counter[str]:
        """Return the character runs that contain digits, with their signs and the next word."""
        runs = [run.strip(_AROUND_FIGURES) for run in _fold_text(self.text).split()]
        return Counter(
            f"{run} {after}"
            for run, after in zip(runs, [*runs[1:], ""], strict=True)
            if not run.isalpha() and any(sign.isdigit() for sign in run)
        )

    @cached_property
    def sentences(self) -> frozenset[tuple[str, ...]]:
        """Return the words of each sentence."""
        parts = (Wording(part).words for part in _SENTENCE_ENDS.split(self.text))
        return frozenset(tuple(folded for folded, _ in words) for words in parts if words)

    @cached_property
    def counted(self) -> Counter[str]:
        """Return the number of occurrences of each word."""
        return Counter(folded for folded, _ in self.words)


def are_alike(one: Wording, other: Wording) -> bool:
    """Return whether two passages have the same meaning.

    White space, line ends, capitals and punctuation make no difference. One passage may have an
    additional sentence, unless that sentence contains a figure, a unit, a negation or the like.
    """
    longest = max(len(one.words), len(other.words))
    if not longest or len(one.distinct ^ other.distinct) > 2 * (1 - _LEAST_SHARED) * longest:
        return False
    most = max(len(one.shingles), len(other.shingles))
    if len(one.shingles & other.shingles) < _LEAST_SHARED * most:
        return False
    return one.figures == other.figures and not _are_turned(one, other)


def _are_turned(one: Wording, other: Wording) -> bool:
    """Return whether words that only one of the passages has may change its meaning.

    A replaced word may be a name, or the opposite of the other word. Additional words do not change
    the meaning if they form a sentence of their own.
    """
    more, less = one.counted - other.counted, other.counted - one.counted
    if not (more or less):
        return False
    if (more and less) or any(map(_is_turning, (*more, *less))):
        return True
    return not (one.sentences <= other.sentences or other.sentences <= one.sentences)


def _is_turning(word: str) -> bool:
    if word in _TURNING or word in MONTHS or word.endswith(("n't", "n’t")):
        return True
    if len(word) > _SHORT and (word in SCALES or word in UNITS):
        return True
    if any(value != 1 for value in word_values(word)):  # The word for 1 may be an article.
        return True
    is_unknown = _UNKNOWN_SCRIPTS.search(word) is not None
    begins = word.lstrip(_JOINED).startswith(_TURNING_BEGINNINGS)
    return is_unknown or begins or any(sign in word for sign in _TURNING_SIGNS)


def _split_words(run: str) -> list[str]:
    """Return the words of a run without blanks; in a script without blanks, each character."""
    return [part for part in _PARTS.findall(run) if part] if _WITHOUT_SPACES.search(run) else [run]


_SENTENCE_ENDS: Final = re.compile(r"(?<=[.!?…])\s|[。！？।؟]")
_PARTS: Final = re.compile(rf"{_WITHOUT_SPACES.pattern}|(?:(?!{_WITHOUT_SPACES.pattern}).)+")
_AROUND_FIGURES: Final = "".join(sign for sign in _MARKS if sign not in "-–—+=<>~")
