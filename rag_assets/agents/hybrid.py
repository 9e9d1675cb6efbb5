"""Fuses what vectors find with what words find; words know exact names and flags."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice
from typing import Final

from rag_assets.indexing.passages import DocChunk, SearchResult
from rag_assets.retrieval.fusion import by_cosine, by_words, fuse, relative_peak
from rag_assets.retrieval.terms import content_words
from rag_assets.storage.index.identifiers import lexical_terms

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
    is_read: bool = True,
) -> list[SearchResult]:
    """Return the best of two rankings; scores stay cosines.

    Args:
        query: the question.
        words: of the passages.
        nearest: all passages of an index, by their vectors.
        top_k: how many are wanted.
        is_read: whether the embedder reads the question's script; else words alone rank.
    """
    by_id = {one.chunk.id: one for one in nearest}
    terms = searched_words(query)
    found = words.scores(terms)
    first = top_k + _FUSED
    best = next(iter(found), None)
    share = words.share(best, terms) if best is not None else 0.0
    cosines = {one.chunk.id: one.score for one in nearest[:first]}
    by_term = dict(islice(found.items(), first))
    weight = share * relative_peak(by_term, cosines)
    votes = [by_words(by_term, weight=weight)]
    order = fuse([by_cosine(cosines), *votes] if is_read else votes)
    # An index that was replaced between the two rankings may lack some.
    return [by_id[id_] for id_ in order if id_ in by_id][:top_k]


def searched_words(query: str) -> frozenset[str]:
    """The terms that passages are ranked by.

    Of a question of common words alone, such as `git add -A`, they are what there is.
    """
    return content_words(query) or frozenset(lexical_terms(query).split())


@dataclass(frozen=True, slots=True)
class WordIndex:
    """The words of passages, counted once.

    Attributes:
        ids: of the passages.
        lengths: of each, in words.
        places, counts: of each word, the passages that have it, and how often.
    """

    ids: Sequence[str]
    lengths: array[int]
    places: dict[str, array[int]]
    counts: dict[str, array[int]]

    @classmethod
    def of(cls, passages: Iterable[DocChunk]) -> WordIndex:
        """The words of passages."""
        ids: list[str] = []
        lengths = array("I")
        places: dict[str, array[int]] = {}
        counts: dict[str, array[int]] = {}
        for at, passage in enumerate(passages):
            terms = lexical_terms(passage.content).split()
            ids.append(passage.id)
            lengths.append(len(terms))
            for term, count in Counter(terms).items():
                if term not in places:
                    places[term], counts[term] = array("I"), array("I")
                places[term].append(at)
                counts[term].append(count)
        return cls(ids, lengths, places, counts)

    def scores(self, terms: AbstractSet[str]) -> dict[str, float]:
        """BM25 of the passages that have a term, by id, best first, ties by id.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
        """
        number = len(self.ids)
        mean = sum(self.lengths) / max(1, number) or 1.0
        scores: dict[int, float] = {}
        for term in sorted(terms & self.places.keys()):
            having = self.places[term]
            weight = math.log(1 + (number - len(having) + 0.5) / (len(having) + 0.5))
            for at, count in zip(having, self.counts[term], strict=True):
                damped = _K1 * (1 - _B + _B * self.lengths[at] / mean)
                scores[at] = scores.get(at, 0.0) + weight * count * (_K1 + 1) / (count + damped)
        order = sorted((-round(score, 9), self.ids[at]) for at, score in scores.items())
        return {id_: -score for score, id_ in order}

    def share(self, id_: str, terms: AbstractSet[str]) -> float:
        """The share of some terms that a passage has."""
        at = self.ids.index(id_)
        return sum(at in self.places.get(term, ()) for term in terms) / len(terms)
