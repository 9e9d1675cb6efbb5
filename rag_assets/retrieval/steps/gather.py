"""Gather: make hits of passages that belong together, and give every document its places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.retrieval.duplicates import Passage
from rag_assets.retrieval.gathering import (
    are_adjoining,
    are_overlapping,
    document_id,
    is_gathered,
    is_spread,
    joined,
    merge,
    share_places,
    spread,
)
from rag_assets.retrieval.hits import order_scores
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.join import Join
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.read import Read


class Gather:
    """Merges passages of one document, and has near copies of a passage share a place.

    Args:
        services: read the index and the catalog.
    """

    def __init__(self, services: SearchServices) -> None:
        self._read = Read(services)
        self._join = Join(services)

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Replace passages by the hits that they are; more are read where hits are too few.

        The search is repeated where the index has more candidates than were fetched.
        """
        search = progress.search
        if not is_gathered(search.tenant):
            return progress
        found = _gathered(progress)
        tried = {passage.id for passage in progress.passages}
        while len(found) < search.limit:
            left = [one for one in progress.order if one.id not in tried]
            if not left:
                break
            wanted = left[: 2 * (search.limit - len(found))]
            tried |= {one.id for one in wanted}
            progress = await self._read.more(progress, wanted)
            if progress.joined:
                progress = await self._join.run(progress)
            found = _gathered(progress)
        is_cut = any(ranking.is_cut for ranking in progress.confirmed.rankings)
        if len(found) < search.limit and is_cut and not progress.whole:
            return replace(progress, whole=True, repeat=True)
        return replace(progress, passages=found[: search.limit])


def _gathered(progress: SearchProgress) -> Sequence[Passage]:
    """Return the hits that passages are, best first."""
    search, passages = progress.search, progress.passages
    if not is_spread(search.tenant):
        groups = joined(passages, document_id, are_overlapping, most=search.limit)
        return [*map(merge, groups)]
    _, scores = order_scores(progress, passages)
    by_id = {passage.id: score for passage, score in zip(passages, scores, strict=True)}
    # Falling scores are equal behind a preferred path as well: fused ones show which are.
    ranks = {id_: (score, progress.fused.get(id_)) for id_, score in by_id.items()}
    shown = share_places(passages, ranks)
    merged = [*map(merge, joined(shown, document_id, are_adjoining, most=search.limit))]
    return spread(merged, document_id, [by_id[one.id] for one in merged])
