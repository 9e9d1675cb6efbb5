"""Hybrid search: combine the ranking by vectors with a ranking by words.

Words match exact names and flags, which vectors may miss.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rag_assets.models.embedding.coverage import Reading
from rag_assets.search.fusion import FOREIGN_WORDS, by_cosine, by_words, fuse, relative_peak
from rag_assets.storage.index.identifiers import analysis_of, build_forms, lexical_terms
from rag_assets.storage.index.query_words import words_of
from rag_assets.systems.agent_docs.stores import DocChunk, SearchResult

_K1: Final = 1.2
_B: Final = 0.75
"""The two constants of BM25."""
_EXTRA_CANDIDATES: Final = 50
"""Number of passages of each ranking that are combined, in addition to the requested number.

All other passages are dropped.
"""


def fuse_rankings(
    query: str,
    words: WordIndex,
    nearest: Sequence[SearchResult],
    top_k: int,
    *,
    reading: Reading = "known",
) -> list[SearchResult]:
    """Order passages by vectors and words together; scores stay cosines.

    Args:
        nearest: all passages of the index, ranked by vector.
        reading: how well the embedder understands the question; if "unread", only words count.
    """
    by_id = {result.chunk.id: result for result in nearest}
    terms = tuple(words_of(query).terms)
    scores = words.score_passages(terms)
    limit = top_k + _EXTRA_CANDIDATES
    best = next(iter(scores), None)
    coverage = words.term_coverage(best, terms) if best is not None else 0.0
    cosines = {result.chunk.id: result.score for result in nearest[:limit]}
    top_scores = dict(islice(scores.items(), limit))
    weight = coverage * relative_peak(top_scores, cosines)
    if reading == "foreign":
        weight *= FOREIGN_WORDS
    votes = [by_words(top_scores, weight=weight)]
    order = fuse(votes if reading == "unread" else [by_cosine(cosines), *votes])
    # If the index was replaced between the two rankings, a passage may be missing from one.
    return [by_id[id_] for id_ in order if id_ in by_id][:top_k]


@dataclass(frozen=True, slots=True)
class WordIndex:
    """An inverted index of passages.

    Attributes:
        ids: ids of the passages.
        lengths: number of words in each passage.
        positions: for each term, the passages that contain it.
        counts: for each term, how often each of these passages contains it.
        analyses: the text analyses used for the passages; they decide the forms of query words.
    """

    ids: Sequence[str]
    lengths: array[int]
    positions: dict[str, array[int]]
    counts: dict[str, array[int]]
    analyses: frozenset[str]

    @classmethod
    def from_passages(cls, passages: Iterable[DocChunk]) -> WordIndex:
        """Count the words of passages."""
        index = cls([], array("I"), {}, {}, frozenset())
        ids: list[str] = []
        analyses: set[str] = set()
        for position, passage in enumerate(passages):
            analysis = analysis_of(passage.content, None)
            analyses.add(analysis)
            terms = lexical_terms(passage.content, analysis).split()
            ids.append(passage.id)
            index.lengths.append(len(terms))
            for term, count in Counter(terms).items():
                index.positions.setdefault(term, array("I")).append(position)
                index.counts.setdefault(term, array("I")).append(count)
        return cls(ids, index.lengths, index.positions, index.counts, frozenset(analyses))

    def score_passages(self, words: Iterable[str]) -> dict[str, float]:
        """Return the BM25 score of each passage that contains a word, best first, ties by id.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
        """
        total = len(self.ids)
        mean = sum(self.lengths) / max(1, total) or 1.0
        scores: dict[int, float] = {}
        for word in sorted(words):
            counts = self._count_word(word)
            weight = math.log(1 + (total - len(counts) + 0.5) / (len(counts) + 0.5))
            for position, count in counts.items():
                saturation = _K1 * (1 - _B + _B * self.lengths[position] / mean)
                score = weight * count * (_K1 + 1) / (count + saturation)
                scores[position] = scores.get(position, 0.0) + score
        order = sorted((-round(score, 9), self.ids[position]) for position, score in scores.items())
        return {id_: -score for score, id_ in order}

    def term_coverage(self, id_: str, words: Collection[str]) -> float:
        """Return the share of the given words that occur in a passage."""
        position = self.ids.index(id_)
        return sum(position in self._count_word(word) for word in words) / len(words)

    def _count_word(self, word: str) -> dict[int, int]:
        """Return how often a word occurs in each passage that contains it.

        If a word has several forms, only the form that is most frequent in the passage counts.
        """
        counts: dict[int, int] = {}
        for form, analyses in build_forms(word).items():
            if form in self.positions and not self.analyses.isdisjoint(analyses):
                for at, count in zip(self.positions[form], self.counts[form], strict=True):
                    counts[at] = max(count, counts.get(at, 0))
        return counts
