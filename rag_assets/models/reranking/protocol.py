"""The interface of rerankers, and a circuit breaker that skips a failing reranker."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, Protocol

from rag_assets.common.errors import RagAssetsError, RerankFailed

MODELS: Final = Path(__file__).parent / "models"
MS_MARCO: Final = "ms-marco-minilm-l12"
"""The name of the shipped cross-encoder, and of its folder."""


class Reranker(Protocol):
    """A model that reads a question and a passage together, and scores the passage as an answer.

    A reranker is slower and more accurate than a comparison of vectors, so it is used only for a
    search's top candidates.
    """

    @property
    def reranker_id(self) -> str:
        """Return the model's name, as shown to people and in logs."""
        ...

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one finite score for each passage, in the order of the passages; higher is better.

        If the time ends early, the first passages have a score, and the other entries are None.
        Scores have the model's own scale: they order the passages of one question, but cannot be
        compared across questions.

        Args:
            seconds: time limit; afterwards no work continues.
        """
        ...

    async def close(self) -> None:
        """Close this event loop's connections; a later call opens them again."""
        ...


FAILURES = 3
"""Number of consecutive failures after which the circuit opens."""

OPEN_SECONDS = 30.0
"""Seconds for which the circuit stays open; afterwards one search tries the reranker."""


class CircuitBreakerReranker:
    """A reranker that is not called for a while after several failures in a row."""

    def __init__(self, reranker: Reranker, clock: Callable[[], float] = time.monotonic) -> None:
        self._reranker = reranker
        self._clock = clock
        self._failures = 0
        self._open_until = 0.0

    @property
    def reranker_id(self) -> str:
        """Return the id of the wrapped reranker."""
        return self._reranker.reranker_id

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> Sequence[float | None]:
        """Return one score for each passage; see Reranker.score_passages.

        Raises RerankFailed also while the circuit is open.
        """
        self._require_closed()
        try:
            scores = await self._reranker.score_passages(question, passages, seconds=seconds)
        except RerankFailed:
            self._count_failure()
            raise
        except RagAssetsError as error:
            self._count_failure()
            raise RerankFailed(error.message, "not usable", hint=error.hint) from error
        self._failures = 0
        return scores

    async def close(self) -> None:
        """Close the wrapped reranker's connections; see Reranker.close."""
        await self._reranker.close()

    def _require_closed(self) -> None:
        if self._failures < FAILURES:
            return
        now = self._clock()
        if now < self._open_until:
            raise RerankFailed(f"{self.reranker_id} failed {self._failures} times", "resting")
        # One search tries the reranker; until that succeeds, other searches do not wait for it.
        self._open_until = now + OPEN_SECONDS

    def _count_failure(self) -> None:
        self._failures += 1
        if self._failures >= FAILURES:
            self._open_until = self._clock() + OPEN_SECONDS
