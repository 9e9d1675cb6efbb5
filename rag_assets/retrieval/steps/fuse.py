"""Fuse: make one order of distinct texts out of several rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.retrieval.duplicates import Distinct, collapse
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.tenants.profiles import profile_of


class Fuse:
    """Fuses rankings by reciprocal rank, and takes equal texts together."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the verified candidates; the search is repeated where too few were fetched."""
        verified = progress.confirmed
        by_id = verified.by_id
        fused = fuse(
            [[c.id for c in ranking.candidates] for ranking in verified.rankings],
            [ranking.weight for ranking in verified.rankings],
        )
        found = [by_id[id_] for id_ in fused]
        repeats = profile_of(progress.search.tenant.profile).repeats_texts
        order = [Distinct(one) for one in found] if repeats else collapse(found)
        if _lacks_candidates(progress, order):
            return replace(progress, whole=True, repeat=True)
        return replace(
            progress,
            fused=fused,
            order=order,
            cosines={
                candidate.id: candidate.score
                for ranking in verified.rankings
                if ranking.kind == "vector"
                for candidate in ranking.candidates
            },
        )


def _lacks_candidates(progress: SearchProgress, order: Sequence[Distinct]) -> bool:
    """Whether candidates that were not fetched could change the hits, or be named by them."""
    verified, depth = progress.confirmed, progress.search.depth
    if not any(ranking.is_cut for ranking in verified.rankings):
        return False
    if len(order) <= depth or len(order) < len(verified.by_id):
        return True
    # Equal scores are ordered among all that have them.
    return order[-1].candidate.score == order[depth - 1].candidate.score
