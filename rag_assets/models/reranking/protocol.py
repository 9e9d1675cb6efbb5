"""The interface of rerankers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

MODELS: Final = Path(__file__).parent / "models"
MS_MARCO: Final = "ms-marco-minilm-l12"
"""The name of the shipped cross-encoder, and of its folder."""


class Reranker(Protocol):
    """Reads a question and a passage together, and scores how well the passage answers it.

    A reranker is slower and more accurate than a comparison of vectors, so it is used only for a
    search's top candidates.
    """

    @property
    def reranker_id(self) -> str:
        """Return the model's name, for people and logs."""
        ...

    async def scores(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one finite score for each passage, in the order of the passages; higher is better.

        If the time ends before all passages are scored, the first passages have a score, and the
        others None. Scores have the model's own scale: they order the passages of one question, but
        cannot be compared across questions.

        Args:
            question: question of the search.
            passages: texts of the candidates.
            seconds: time limit; afterwards no work continues.

        Raises:
            RerankFailed: scoring failed; the message has the reason.
        """
        ...

    async def close(self) -> None:
        """Close this event loop's connections; a later call opens them again."""
        ...
