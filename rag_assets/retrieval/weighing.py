"""Weighing: what the rankings of a search say together of their candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from rag_assets.retrieval.fusion import Votes, by_cosine, by_rank, by_words, fuse, telling
from rag_assets.retrieval.search_progress import Ranking

_FIELDS: Final = 2
"""Where a term counts in a ranking by words: as written, and as this client splits and stems it."""


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
            best = max(found.values(), default=0.0)
            share = telling(best, ranking.terms, fields=_FIELDS)
            return by_words(found, weight=ranking.weight * share)
        case "walk" | "other":
            return by_rank([*found], weight=ranking.weight)
