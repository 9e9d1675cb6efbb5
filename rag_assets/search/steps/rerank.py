"""Rerank: order the first passages with a cross-encoder."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.protocol import SearchServices


class Rerank:
    """Reranks the top passages if the request or the tenant wants it.

    Args:
        services: services that score passages.
    """

    def __init__(self, services: SearchServices) -> None:
        self._rerankers = services.rerankers

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Reorder the passages; a failure keeps their order and is recorded in the progress.

        In a repeated search, scored passages keep their score, and a failed reranking is not
        retried.
        """
        search = progress.search
        if search.rerank is None or not progress.passages:
            return progress
        with progress.timings.part("rerank"):
            reranking = await self._rerankers.score(
                progress.ref,
                search.rerank,
                search.question,
                progress.passages,
                known=progress.reranking,
            )
        passages = reranking.ordered(
            progress.passages, lambda c: search.prefers(c.uri), progress.fused
        )
        return replace(progress, passages=passages, reranking=reranking)
