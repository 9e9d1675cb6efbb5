"""Rerank: order the first passages with a cross-encoder."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices


class Rerank:
    """Reranks the top passages where the request or the tenant wants it.

    Args:
        services: score passages.
    """

    def __init__(self, services: SearchServices) -> None:
        self._rerankers = services.rerankers

    async def run(self, state: SearchProgress) -> SearchProgress:
        """Order the passages anew; a failure keeps their order, and is in the state."""
        search = state.search
        if search.rerank is None or not state.passages:
            return state
        with state.timings.part("rerank"):
            reranking = await self._rerankers.score(
                state.ref, search.rerank, search.question, state.passages
            )
        passages = reranking.ordered(state.passages, lambda c: search.prefers(c.uri))
        return replace(state, passages=passages, reranking=reranking)
