"""Fuses what vectors find with what words find; words know exact names and flags."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rag_assets.models.embedding.coverage import Reading
from rag_assets.retrieval.fusion import FOREIGN_WORDS, by_cosine, by_words, fuse, relative_peak
from rag_assets.storage.index.identifiers import analysis_of, forms_of, lexical_terms
from rag_assets.storage.index.query_words import words_of
from rag_assets.systems.agent_docs.stores import DocChunk, SearchResult

_K1: Final = 1.2
_B: Final = 0.75
_FUSED: Final = 50
"""Passages of each ranking that are fused, besides those that are wanted."""


def fused(
    query: str,
    words: WordIndex,
    nearest: Sequence[SearchResult],
    top_k: int,
    *,
    reading: Reading = "known",
) -> list[SearchResult]:
    """Return the best of two rankings; scores stay cosines.

    Args:
        query: the question.
        words: of the passages.
        nearest: all passages of an index, by their vectors.
        top_k: how many are wanted.
        reading: how well the embedder reads the question; unread, words alone rank.
    """
    by_id = {one.chunk.id: one for one in nearest}
    searched = tuple(words_of(query).terms)
    found = words.scores(searched)
    first = top_k + _FUSED
    best = next(iter(found), None)
    share = words.share(best, searched) if best is not None else 0.0
    cosines = {one.chunk.id: one.score for one in nearest[:first]}
    by_term = dict(islice(found.items(), first))
    weight = share * relative_peak(by_term, cosines)
    if reading == "foreign":
        weight *= FOREIGN_WORDS
    votes = [by_words(by_term, weight=weight)]
    order = fuse(votes if reading == "unread" else [by_cosine(cosines), *votes])
    # An index that was replaced between the two rankings may lack some.
    return [by_id[id_] for id_ in order if id_ in by_id][:top_k]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The words of passages, counted once.

    Attributes:
        ids: of the passages.
        lengths: of each, in words.
        places, counts: of each term, the passages that have it, and how often.
        analyses: of the passages; words are searched in the forms that these have.
    """

    ids: Sequence[str]
    lengths: array[int]
    places: dict[str, array[int]]
    counts: dict[str, array[int]]
    analyses: frozenset[str]

    @classmethod
    def of(cls, passages: Iterable[DocChunk]) -> WordIndex:
        """The words of passages."""
        ids: list[str] = []
        lengths = array("I")
        places: dict[str, array[int]] = {}
        counts: dict[str, array[int]] = {}
        analyses: set[str] = set()
        for at, passage in enumerate(passages):
            analysis = analysis_of(passage.content, None)
            analyses.add(analysis)
            terms = lexical_terms(passage.content, analysis).split()
            ids.append(passage.id)
            lengths.append(len(terms))
            for term, count in Counter(terms).items():
                if term not in places:
                    places[term], counts[term] = array("I"), array("I")
                places[term].append(at)
                counts[term].append(count)
        return cls(ids, lengths, places, counts, frozenset(analyses))

    def scores(self, words: Iterable[str]) -> dict[str, float]:
        """BM25 of the passages that have a word, by id, best first, ties by id.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
        """
        number = len(self.ids)
        mean = sum(self.lengths) / max(1, number) or 1.0
        scores: dict[int, float] = {}
        for word in sorted(words):
            times = self._times(word)
            weight = math.log(1 + (number - len(times) + 0.5) / (len(times) + 0.5))
            for at, count in times.items():
                damped = _K1 * (1 - _B + _B * self.lengths[at] / mean)
                scores[at] = scores.get(at, 0.0) + weight * count * (_K1 + 1) / (count + damped)
        order = sorted((-round(score, 9), self.ids[at]) for at, score in scores.items())
        return {id_: -score for score, id_ in order}

    def share(self, id_: str, words: Collection[str]) -> float:
        """The share of some words that a passage has."""
        at = self.ids.index(id_)
        return sum(at in self._times(word) for word in words) / len(words)

    def _times(self, word: str) -> dict[int, int]:
        """Return how often each passage that has a word has it, in its most frequent form."""
        times: dict[int, int] = {}
        for form, analyses in forms_of(word).items():
            if form in self.places and not self.analyses.isdisjoint(analyses):
                for at, count in zip(self.places[form], self.counts[form], strict=True):
                    times[at] = max(count, times.get(at, 0))
        return times
