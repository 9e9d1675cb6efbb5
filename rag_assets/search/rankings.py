"""The step `fuse`: weigh the rankings of a search, fuse them, and merge equal texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from rag_assets.search.gathering import Enclosed, collapse, group_enclosed
from rag_assets.search.progress import Distinct, Ranking, RankingKind, SearchProgress
from rag_assets.search.services import SearchServices
from rag_assets.tenants.profiles import get_profile


def fuse_rankings(
    rankings: Sequence[Ranking], shown: Mapping[str, str] = MappingProxyType({})
) -> dict[str, float]:
    """Return the score of every candidate, best first.

    Args:
        rankings: rankings, verified or not; only their candidates are scored.
        shown: maps a candidate's id to the id under which it is shown. The best candidate of
            those shown under one id counts.
    """
    scores = [_scores_by_id(ranking, shown) for ranking in rankings]
    weights = weigh_rankings(rankings, scores)
    return fuse(
        [
            _normalize_ranking(ranking, score, ranking.weight * weights.get(ranking.kind, 1.0))
            for ranking, score in zip(rankings, scores, strict=True)
        ]
    )


def weigh_rankings(
    rankings: Sequence[Ranking], scores: Sequence[Mapping[str, float]]
) -> dict[RankingKind, float]:
    """Return the weights of vectors and words, based on the first ranking of each.

    The sum of both weights is always 1 (for vectors) plus the share of matched terms (for words),
    however it is divided between them. So other rankings, such as a walk, keep their influence.
    """
    first: dict[RankingKind, tuple[Ranking, Mapping[str, float]]] = {}
    for ranking, score in zip(rankings, scores, strict=True):
        if not ranking.preferred:
            first.setdefault(ranking.kind, (ranking, score))
    if "words" not in first:
        return {}
    ranking, words = first["words"]
    share = term_coverage(ranking)
    cosines = first["vector"][1] if "vector" in first else {}
    raised = share * relative_peak(words, cosines) * (FOREIGN_WORDS if ranking.is_foreign else 1)
    scale = (1 + share) / (1 + raised)
    return {"vector": scale, "words": raised * scale}


def _scores_by_id(ranking: Ranking, shown: Mapping[str, str]) -> dict[str, float]:
    scores: dict[str, float] = {}
    for candidate in ranking.candidates:
        scores.setdefault(shown.get(candidate.id, candidate.id), candidate.score)
    return scores


def _normalize_ranking(ranking: Ranking, scores: Mapping[str, float], weight: float) -> Votes:
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


class Fuse:
    """Fuses rankings by their scores, and groups equal texts."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the verified candidates; request a repeat of the search if too few were fetched."""
        verified = progress.confirmed
        by_id, rankings = verified.by_id, verified.rankings
        scores = fuse_rankings(rankings)
        within = group_enclosed([by_id[id_] for id_ in scores])
        if within.blocks:
            scores = fuse_rankings(rankings, {id_: one.id for id_, one in within.shown.items()})
        leading = progress.walked.leading if progress.walked is not None else ()
        found = [by_id[id_] for id_ in dict.fromkeys((*leading, *scores)) if id_ in scores]
        repeats = get_profile(progress.search.tenant.profile).repeats_texts
        order = [Distinct(one) for one in found] if repeats else collapse(found)
        if _lacks_candidates(progress, order, len(found)):
            return replace(progress, whole=True, repeat=True)
        return replace(
            progress,
            fused=scores,
            order=[replace(one, block=within.blocks.get(one.id)) for one in order],
            cosines=_best_scores("vector", rankings, within),
            word_scores=_best_scores("words", rankings, within),
        )


def _best_scores(
    kind: RankingKind, rankings: Sequence[Ranking], within: Enclosed
) -> dict[str, float]:
    """Return each candidate's score in the rankings of one kind.

    A passage that is shown in place of its blocks has the highest of their scores.
    """
    scores: dict[str, float] = {}
    for ranking in rankings:
        for candidate in ranking.candidates if ranking.kind == kind else ():
            for id_ in {candidate.id, within.shown[candidate.id].id}:
                scores[id_] = max(candidate.score, scores.get(id_, candidate.score))
    return scores


def _lacks_candidates(progress: SearchProgress, order: Sequence[Distinct], found: int) -> bool:
    """Return whether candidates not fetched could change the hits, or be named by them.

    Args:
        progress: the search.
        order: distinct texts, best first.
        found: number of candidates before equal texts were grouped.
    """
    verified, depth = progress.confirmed, progress.search.depth
    if not any(ranking.is_cut for ranking in verified.rankings):
        return False
    if len(order) <= depth or len(order) < found:
        return True
    # Candidates with equal scores at the limit can only be ordered if all of them were fetched.
    return order[-1].candidate.score == order[depth - 1].candidate.score
