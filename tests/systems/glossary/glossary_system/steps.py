"""A search step: the definition of exactly the requested term comes first."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.search.progress import SearchProgress
from rag_assets.search.services import SearchServices


class ExactTerm:
    """Ranks the definition of a term first if the question consists of the term."""

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, state: SearchProgress) -> SearchProgress:
        """Reorder the passages."""
        term = state.search.question.strip().casefold()
        first = f"{term}:"
        passages = sorted(
            state.passages, key=lambda p: not str(p.fields["text"]).casefold().startswith(first)
        )
        return replace(state, passages=passages)
