"""What a search asks of a reranker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Reranker(Protocol):
    """Reads a question and a passage together, and says how well the one answers the other.

    Slower than comparing vectors and better at it, so it is for the first candidates of a search.
    """

    @property
    def reranker_id(self) -> str:
        """Which model, for people and logs."""
        ...

    async def scores(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        """One finite score for each passage, in their order; a higher one is a better answer.

        Scores are of the model's own scale: they order the passages of one question, and compare
        with nothing else.

        Args:
            question: in words.
            passages: that were found.
            seconds: that it may take; afterwards nothing of it goes on.

        Raises:
            RerankFailed: there are none, and why.
        """
        ...

    async def close(self) -> None:
        """Let go of this loop's connections; a later call opens them again."""
        ...
