"""Weighing: what the rankings of a search say together of their candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rag_assets.retrieval.fusion import Votes, by_cosine, by_rank, by_words, fuse
from rag_assets.retrieval.search_progress import Ranking


def fused(
    rankings: Sequence[Ranking], shown: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """The score of every candidate, best first.

    Args:
        rankings: verified or not: only what they hold has any part in it.
        shown: ids of the candidates that others are shown as: the best of these counts.
    """
    return fuse([_votes(ranking, shown) for ranking in rankings])


def _votes(ranking: Ranking, shown: Mapping[str, str]) -> Votes:
    found: dict[str, float] = {}
    for one in ranking.candidates:
        found.setdefault(shown.get(one.id, one.id), one.score)
    if ranking.preferred:  # the last of them gains as well
        return by_rank([*found], weight=ranking.weight)
    match ranking.kind:
        case "vector":
            return by_cosine(found, weight=ranking.weight)
        case "words":
            return by_words(found, weight=ranking.weight * _matched(ranking))
        case "walk" | "other":
            return by_rank([*found], weight=ranking.weight)


def _matched(ranking: Ranking) -> float:
    """The share of the terms that the best candidate of a ranking by words has.

    A question in other words than the texts' still has some that a passage happens to hold, and
    the best match of those is none. The share is unknown, and words count wholly, in scripts
    without spaces and in languages other than English, whose terms are neither stemmed nor without
    common words.
    """
    best = next((one.matched for one in ranking.candidates), 0)
    return best / ranking.terms if best and ranking.terms else 1.0
