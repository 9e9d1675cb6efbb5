"""Fuses what vectors find with what words find; words know exact names and flags."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rag_assets.indexing.passages import DocChunk, SearchResult
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.terms import content_words
from rag_assets.storage.index.identifiers import lexical_terms

_K1: Final = 1.2
_B: Final = 0.75


def fused(
    ranked: Sequence[str], nearest: Sequence[SearchResult], top_k: int, *, first: int
) -> list[SearchResult]:
    """The best of two rankings; scores stay cosines.

    Args:
        ranked: ids of passages, by words.
        nearest: all passages of an index, by their vectors.
        top_k: how many are wanted.
        first: how many of each ranking are fused.
    """
    by_id = {one.chunk.id: one for one in nearest}
    order = fuse([[one.chunk.id for one in nearest[:first]], ranked[:first]])
    # An index that was replaced between the two rankings may lack some.
    return [by_id[id_] for id_ in order if id_ in by_id][:top_k]


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

    def ranked(self, query: str) -> list[str]:
        """Ids of passages that have a word of a question, best first (BM25), ties by id.

        Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
        """
        # Of a question of common words alone, such as `git add -A`, they are what there is.
        wanted = content_words(query) or frozenset(lexical_terms(query).split())
        number = len(self.ids)
        mean = sum(self.lengths) / max(1, number) or 1.0
        scores: dict[int, float] = {}
        for term in sorted(wanted & self.places.keys()):
            having = self.places[term]
            weight = math.log(1 + (number - len(having) + 0.5) / (len(having) + 0.5))
            for at, count in zip(having, self.counts[term], strict=True):
                damped = _K1 * (1 - _B + _B * self.lengths[at] / mean)
                scores[at] = scores.get(at, 0.0) + weight * count * (_K1 + 1) / (count + damped)
        order = sorted((-round(score, 9), self.ids[at]) for at, score in scores.items())
        return [id_ for _, id_ in order]
