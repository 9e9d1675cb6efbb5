"""Weighing: score the candidates of a search by all rankings of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rag_assets.search.fusion import (
    FOREIGN_WORDS,
    Votes,
    by_cosine,
    by_rank,
    by_words,
    fuse,
    relative_peak,
)
from rag_assets.search.search_progress import Ranking, RankingKind


def fused(
    rankings: Sequence[Ranking], shown: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """Return the score of every candidate, best first.

    Args:
        rankings: rankings, verified or not; only their candidates are scored.
        shown: maps a candidate's id to the id under which it is shown. The best candidate of
            those shown under one id counts.
    """
    scores = [_scores(ranking, shown) for ranking in rankings]
    weights = hybrid_weights(rankings, scores)
    return fuse(
        [
            _votes(ranking, found, ranking.weight * weights.get(ranking.kind, 1.0))
            for ranking, found in zip(rankings, scores, strict=True)
        ]
    )


def hybrid_weights(
    rankings: Sequence[Ranking], scores: Sequence[Mapping[str, float]]
) -> dict[RankingKind, float]:
    """Return the weights of vectors and words, based on the first ranking of each.

    The sum of both weights is always 1 (for vectors) plus the share of matched terms (for words),
    however it is divided between them. So other rankings, such as a walk, keep their influence.
    """
    first: dict[RankingKind, tuple[Ranking, Mapping[str, float]]] = {}
    for ranking, found in zip(rankings, scores, strict=True):
        if not ranking.preferred:
            first.setdefault(ranking.kind, (ranking, found))
    if "words" not in first:
        return {}
    ranking, words = first["words"]
    share = term_coverage(ranking)
    cosines = first["vector"][1] if "vector" in first else {}
    raised = share * relative_peak(words, cosines) * (FOREIGN_WORDS if ranking.is_foreign else 1)
    scale = (1 + share) / (1 + raised)
    return {"vector": scale, "words": raised * scale}


def _scores(ranking: Ranking, shown: Mapping[str, str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for candidate in ranking.candidates:
        scores.setdefault(shown.get(candidate.id, candidate.id), candidate.score)
    return scores


def _votes(ranking: Ranking, scores: Mapping[str, float], weight: float) -> Votes:
    if ranking.preferred:  # By rank, even the last preferred candidate gains.
        return by_rank([*scores], weight=ranking.weight)
    match ranking.kind:
        case "vector":
            return by_cosine(scores, weight=weight)
        case "words":
            return by_words(scores, weight=weight)
        case "walk" | "other":
            return by_rank([*scores], weight=weight)


def term_coverage(ranking: Ranking) -> float:
    """Return the share of query terms that the best word match contains; 1.0 if unknown.

    A question may be worded differently than the texts, and share only a few incidental words with
    a passage. Then even the best word match is poor. The share is unknown in scripts without spaces
    and in languages other than English, since their terms are not stemmed and include common words.
    """
    best = next((candidate.matched for candidate in ranking.candidates), 0)
    return best / ranking.terms if best and ranking.terms else 1.0
