"""Weighing: score the candidates of a search by all of its rankings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rag_assets.retrieval.fusion import (
    Votes,
    by_cosine,
    by_rank,
    by_words,
    fuse,
    relative_peak,
)
from rag_assets.retrieval.search_progress import Ranking


def fused(
    rankings: Sequence[Ranking], shown: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """Return the score of every candidate, best first.

    Args:
        rankings: verified or not: only what they hold has any part in it.
        shown: ids of the candidates that others are shown as: the best of these counts.
    """
    scores = [_scores(ranking, shown) for ranking in rankings]
    cosines: Mapping[str, float] = next(
        (
            found
            for ranking, found in zip(rankings, scores, strict=True)
            if ranking.kind == "vector" and not ranking.preferred
        ),
        {},
    )
    return fuse(
        [_votes(ranking, found, cosines) for ranking, found in zip(rankings, scores, strict=True)]
    )


def _scores(ranking: Ranking, shown: Mapping[str, str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for candidate in ranking.candidates:
        scores.setdefault(shown.get(candidate.id, candidate.id), candidate.score)
    return scores


def _votes(ranking: Ranking, scores: Mapping[str, float], cosines: Mapping[str, float]) -> Votes:
    if ranking.preferred:  # the last of them gains as well
        return by_rank([*scores], weight=ranking.weight)
    match ranking.kind:
        case "vector":
            return by_cosine(scores, weight=ranking.weight)
        case "words":
            weight = term_coverage(ranking) * relative_peak(scores, cosines)
            return by_words(scores, weight=ranking.weight * weight)
        case "walk" | "other":
            return by_rank([*scores], weight=ranking.weight)


def term_coverage(ranking: Ranking) -> float:
    """Return the share of query terms that the best match by words contains; 1.0 if unknown.

    A question in other words than the texts' still has some that a passage happens to hold, and
    the best match of those is none. The share is unknown in scripts without spaces and in languages
    other than English, whose terms are neither stemmed nor without common words.
    """
    best = next((candidate.matched for candidate in ranking.candidates), 0)
    return best / ranking.terms if best and ranking.terms else 1.0
