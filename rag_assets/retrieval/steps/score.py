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

    async def run(self, state: SearchProgress) -> SearchProgress:
        """Keep the texts that are near enough; without a threshold all of them."""
        threshold = state.search.min_cosine
        if state.vector is None or threshold is None:
            return state
        # It may drop any of them, so all are scored before the first are taken.
        missing = [distinct.id for distinct in state.order if distinct.id not in state.cosines]
        with state.timings.part("score"):
            scored = await self._searcher.cosines(
                state.serving.index_name, state.owner, state.vector, missing
            )
        cosines = {**state.cosines, **scored}
        return replace(
            state,
            cosines=cosines,
            unread=state.unread | {d.id for d in state.order if d.id not in cosines},
            order=[d for d in state.order if cosines.get(d.id, _BELOW_ANY) >= threshold],
        )
