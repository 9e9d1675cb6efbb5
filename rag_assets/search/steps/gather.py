"""Gather: merge passages that belong together into hits, and limit the hits of one document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from anyio.to_thread import run_sync

from rag_assets.search.duplicates import Passage
from rag_assets.search.gathering import (
    are_adjoining,
    are_overlapping,
    document_id,
    is_crowded,
    is_gathered,
    is_spread,
    joined,
    least_near_score,
    merge,
    share_places,
    spread,
)
from rag_assets.search.hits import order_scores
from rag_assets.search.search_progress import Ranking, SearchProgress
from rag_assets.search.steps.join import Join
from rag_assets.search.steps.protocol import SearchServices
from rag_assets.search.steps.read import Read
from rag_assets.search.steps.recall import recall_limit

_MORE: Final = 4
"""Factor by which the next attempt fetches more candidates."""
_MOST_FOR_HITS: Final = 16
"""Highest fetch factor if there are too few hits."""
_MOST_FOR_DOCUMENTS: Final = 4
"""Highest fetch factor if one document has more of the first positions than allowed."""
_MOST_AT_ONCE: Final = 100
"""Maximum passages to compare in the event loop; more are compared in a thread."""


class Gather:
    """Merges passages of one document, and shows near copies of a passage as one hit.

    Args:
        services: read the index and the catalog.
    """

    def __init__(self, services: SearchServices) -> None:
        self._read = Read(services)
        self._join = Join(services)
        self._reader = services.reader

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Replace passages by merged hits; read more passages if there are too few hits.

        The search is repeated with more candidates if the index may have further hits, or another
        document for the first places; a few times at most.
        """
        search = progress.search
        if not is_gathered(search.tenant):
            return progress
        found, others_may_be_near = await _gather_in_thread(progress)
        tried = {passage.id for passage in progress.passages}
        while len(found) < search.limit:
            left = [one for one in progress.order if one.id not in tried]
            if not left:
                break
            # Read at least as many as were read so far, since there may be many near copies.
            wanted = left[: max(2 * (search.limit - len(found)), len(tried))]
            tried |= {one.id for one in wanted}
            progress = await self._read.more(progress, wanted)
            if progress.joined:
                progress = await self._join.run(progress)
            found, others_may_be_near = await _gather_in_thread(progress)
        if len(found) < search.limit:
            is_cut = any(ranking.is_cut for ranking in progress.confirmed.rankings)
            if is_cut and not progress.whole:
                return replace(progress, whole=True, repeat=True)
            further = _with_more_candidates(progress, _MOST_FOR_HITS)
        else:
            is_worth_it = others_may_be_near and await self._may_have_others(progress)
            most = _MOST_FOR_DOCUMENTS if is_worth_it else 0
            further = _with_more_candidates(progress, most)
        return further or replace(progress, passages=found[: search.limit])

    async def _may_have_others(self, progress: SearchProgress) -> bool:
        """Return whether a search may find documents other than those of its candidates."""
        if len({one.document_id for one in progress.confirmed.by_id.values()}) > 1:
            return True
        documents = progress.search.request.filters.documents
        if documents is not None and len(documents) == 1:
            return False
        with progress.timings.part("catalog"):
            return await self._reader.has_several_documents(
                progress.ref.id, progress.serving.number
            )


async def _gather_in_thread(progress: SearchProgress) -> tuple[Sequence[Passage], bool]:
    """Gather passages, in a thread if there are many, so that other searches are not delayed."""
    if len(progress.passages) <= _MOST_AT_ONCE:
        return _gather_passages(progress)
    return await run_sync(_gather_passages, progress)


def _gather_passages(progress: SearchProgress) -> tuple[Sequence[Passage], bool]:
    """Return the merged hits, best first, and whether candidates not fetched may be better.

    They may be better if one document has more than two of the first positions, and if candidates
    that were not fetched may be near.
    """
    search, passages = progress.search, progress.passages
    if not is_spread(search.tenant):
        groups = joined(passages, document_id, are_overlapping, most=search.limit)
        return [*map(merge, groups)], False
    if not passages:
        return [], False
    last = progress.order[-1].with_fields({}) if progress.order else passages[-1]
    _, (*scores, lowest) = order_scores(progress, [*passages, last])
    by_id = {passage.id: score for passage, score in zip(passages, scores, strict=True)}
    # Scores that never increase may also be equal after a preferred path. The fused scores show
    # which scores are really equal.
    ranks = {id_: (score, progress.fused.get(id_)) for id_, score in by_id.items()}
    shown = share_places(passages, ranks)
    merged = [*map(merge, joined(shown, document_id, are_adjoining, most=search.limit))]
    ordered = [by_id[one.id] for one in merged]
    hits = spread(merged, document_id, ordered)
    return hits, is_crowded(hits[: search.limit]) and lowest >= least_near_score(ordered)


def _with_more_candidates(progress: SearchProgress, most: int) -> SearchProgress | None:
    """Return the search, to be repeated with more candidates; None if there are no more.

    Args:
        progress: the search.
        most: highest factor of the number of candidates in the first attempt.
    """
    factor = _MORE * progress.fetch_factor
    if factor > most or not any(_may_go_on(progress, one) for one in progress.rankings):
        return None
    if recall_limit(again := replace(progress, fetch_factor=factor)) <= recall_limit(progress):
        return None
    return replace(again, whole=True, repeat=True)


def _may_go_on(progress: SearchProgress, ranking: Ranking) -> bool:
    """Return whether the index may have further candidates of a ranking that could be hits."""
    if ranking.kind not in {"vector", "words"}:
        return False
    if not ranking.is_cut and len(ranking.candidates) < recall_limit(progress):
        return False
    threshold = progress.search.min_cosine
    if threshold is None or progress.vector is None:
        return True
    if ranking.kind == "vector":
        return ranking.candidates[-1].score >= threshold
    # The fetched candidates are the nearest, so they include all that are near enough.
    cosines = progress.cosines
    is_only_kind = all(one.kind != "vector" for one in progress.rankings)
    return is_only_kind and all(cosines.get(id_, -1.0) >= threshold for id_ in progress.fused)
