"""Score: leave out what is below the threshold of cosines."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices

_BELOW_ANY = -2.0


class Score:
    """Scores every text by its cosine where there is a threshold.

    Args:
        services: compute cosines in the index.
    """

    def __init__(self, services: SearchServices) -> None:
        self._searcher = services.searcher

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Keep the texts that are near enough; without a threshold all of them."""
        threshold = progress.search.min_cosine
        if progress.vector is None or threshold is None:
            return progress
        # It may drop any of them, so all are scored before the first are taken.
        missing = [
            distinct.id for distinct in progress.order if distinct.id not in progress.cosines
        ]
        with progress.timings.part("score"):
            scored = await self._searcher.cosines(
                progress.serving.index_name, progress.owner, progress.vector, missing
            )
        cosines = {**progress.cosines, **scored}
        named = progress.walked.ids if progress.walked is not None else frozenset()
        return replace(
            progress,
            cosines=cosines,
            unread=progress.unread | {d.id for d in progress.order if d.id not in cosines},
            order=[
                d
                for d in progress.order
                if d.id in named or cosines.get(d.id, _BELOW_ANY) >= threshold
            ],
        )
