"""The interface of rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

MODELS: Final = Path(__file__).parent / "models"
MS_MARCO: Final = "ms-marco-minilm-l12"
"""The name, and the folder, of the cross-encoder that is shipped."""


class Reranker(Protocol):
    """Reads a question and a passage together, and scores how well the passage answers it.

    It is slower and more accurate than comparing vectors: it is for the top candidates of a search.
    """

    @property
    def reranker_id(self) -> str:
        """Return the model's name, for people and logs."""
        ...

    async def scores(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one finite score for each passage, in their order; a higher one is better.

        The first passages have a score, the others None, if the time ends before all are scored.
        Scores have the model's own scale: they order the passages of one question, and cannot be
        compared with others.

        Args:
            question: of the search.
            passages: of the candidates.
            seconds: time limit; afterwards no work continues.

        Raises:
            RerankFailed: there are no scores; with the reason.
        """
        ...

    async def close(self) -> None:
        """Close this loop's connections; a later call opens them again."""
        ...
