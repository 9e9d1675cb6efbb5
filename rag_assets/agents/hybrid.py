"""Fuses what vectors find with what words find; words know exact names and flags."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

from rag_assets.indexing.passages import SearchResult
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.terms import content_words
from rag_assets.storage.index.identifiers import lexical_terms

_K1: Final = 1.2
_B: Final = 0.75


def fused(
    query: str, nearest: Sequence[SearchResult], top_k: int, *, first: int
) -> list[SearchResult]:
    """The best of two rankings; scores stay cosines.

    Args:
        query: the question.
        nearest: all passages of an index, by their vectors.
        top_k: how many are wanted.
        first: how many of each ranking are fused.
    """
    by_id = {one.chunk.id: one for one in nearest}
    ranked = ranked_by_words(query, [(one.chunk.id, one.chunk.content) for one in nearest])
    order = fuse([[one.chunk.id for one in nearest[:first]], ranked[:first]])
    return [by_id[id_] for id_ in list(order)[:top_k]]


def ranked_by_words(query: str, passages: Sequence[tuple[str, str]]) -> list[str]:
    """Ids of passages that have a word of a question, best first (BM25), ties by id.

    Args:
        query: the question.
        passages: id and text of each.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework, 2009.
    """
    # Of a question of common words alone, such as `git add -A`, they are what there is.
    wanted = content_words(query) or frozenset(lexical_terms(query).split())
    counts = [(id_, lexical_terms(text).split()) for id_, text in passages]
    mean = sum(len(terms) for _, terms in counts) / max(1, len(counts)) or 1.0
    present = [(id_, len(terms), _only(terms, wanted)) for id_, terms in counts]
    spread = Counter(term for _, _, found in present for term in found)
    scores: list[tuple[float, str]] = []
    for id_, length, found in present:
        score = sum(
            math.log(1 + (len(counts) - spread[term] + 0.5) / (spread[term] + 0.5))
            * (count * (_K1 + 1))
            / (count + _K1 * (1 - _B + _B * length / mean))
            for term, count in found.items()
        )
        if found:
            scores.append((-round(score, 9), id_))
    return [id_ for _, id_ in sorted(scores)]


def _only(terms: Sequence[str], wanted: frozenset[str]) -> Counter[str]:
    return Counter(term for term in terms if term in wanted)
