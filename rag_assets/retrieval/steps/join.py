"""Join: all documents that hold a text that will be a hit, in tenants that read source code.

Copies of a file in many places are one hit that names them all. A ranking has so many candidates:
of a text that is in a hundred places it may hold two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.search_progress import Ranking, SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices
from rag_assets.retrieval.steps.recall import entry_filter_of
from rag_assets.storage.index.model import EqualTexts, RankingRequest

_MOST: Final = 1_000
"""Entries with the texts of all hits."""


class Join:
    """Finds the other places of the first candidates' texts.

    Args:
        services: search the index.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Add the candidates with the same texts as the first ones; they change no order."""
        if not progress.search.tenant.reads_code or not progress.rankings:
            return progress
        by_id = {c.id: c for one in progress.rankings for c in one.candidates}
        order = fuse(
            [[c.id for c in one.candidates] for one in progress.rankings],
            [one.weight for one in progress.rankings],
        )
        keys = dict.fromkeys(by_id[id_].text_key for id_ in order)
        first = tuple(keys)[: progress.search.depth]
        if not first:
            return progress
        with progress.timings.part("search"):
            filters = entry_filter_of(progress)
            wanted = RankingRequest(EqualTexts(first), _MOST, filters, symbols=True)
            [found] = await self._searcher.rankings(
                progress.serving.index_name, progress.owner, [wanted]
            )
        others = [one for one in found if one.id not in by_id]
        if not others:
            return progress
        ranking = Ranking("other", others, weight=0.0)
        return replace(progress, rankings=[*progress.rankings, ranking])
