"""Fuse: make one order of distinct texts out of several rankings."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.retrieval.duplicates import collapse
from rag_assets.retrieval.fusion import fuse
from rag_assets.retrieval.search_progress import SearchProgress
from rag_assets.retrieval.steps.protocol import SearchServices


class Fuse:
    """Fuses rankings by reciprocal rank, and takes equal texts together."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Order the verified candidates."""
        verified = progress.confirmed
        by_id = verified.by_id
        fused = fuse([[c.id for c in ranking.candidates] for ranking in verified.rankings])
        return replace(
            progress,
            fused=fused,
            order=collapse([by_id[id_] for id_ in fused]),
            cosines={
                candidate.id: candidate.score
                for ranking in verified.rankings
                if ranking.kind == "vector"
                for candidate in ranking.candidates
            },
        )
