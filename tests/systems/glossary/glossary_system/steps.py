"""A step of searches: the term that was named exactly comes first."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices


class ExactTerm:
    """Ranks the definition of the very term that a question consists of before all others."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, state: SearchProgress) -> SearchProgress:
        """Order the passages."""
        term = state.search.question.strip().casefold()
        first = f"{term}:"
        passages = sorted(
            state.passages, key=lambda p: not str(p.fields["text"]).casefold().startswith(first)
        )
        return replace(state, passages=passages)
