"""Budget: build hits from the first passages, as many as fit into a token budget."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.search.budget import fit_whole_chains, within_budget
from rag_assets.search.hits import hits_of
from rag_assets.search.search_progress import SearchProgress
from rag_assets.search.steps.protocol import SearchServices


class Budget:
    """Keeps hits within the request's token budget."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Build the hits; without a budget, from all passages."""
        search, walked = progress.search, progress.walked
        with progress.timings.part("pack"):
            hits = hits_of(progress)
            if search.token_budget is not None and walked is not None:
                hits = fit_whole_chains(hits, search.token_budget, walked.paths)
            elif search.token_budget is not None:
                hits = within_budget(hits, search.token_budget, search.request.query)
        return replace(progress, hits=hits)
