"""Fuse: combine several rankings into a single order of distinct texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.search.duplicates import Distinct, collapse
from rag_assets.search.enclosing import Enclosed, group_enclosed
from rag_assets.search.search_progress import Ranking, RankingKind, SearchProgress
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.weighing import fused
from rag_assets.tenants.profiles import profile_of


class Fuse:
    """Fuses rankings by their scores, and groups equal texts."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the verified candidates; request a repeat of the search if too few were fetched."""
        verified = progress.confirmed
        by_id, rankings = verified.by_id, verified.rankings
        scores = fused(rankings)
        within = group_enclosed([by_id[id_] for id_ in scores])
        if within.blocks:
            scores = fused(rankings, {id_: one.id for id_, one in within.shown.items()})
        leading = progress.walked.leading if progress.walked is not None else ()
        found = [by_id[id_] for id_ in dict.fromkeys((*leading, *scores)) if id_ in scores]
        repeats = profile_of(progress.search.tenant.profile).repeats_texts
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
    for one in rankings:
        for candidate in one.candidates if one.kind == kind else ():
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
