"""A reranker that keeps failing is not called for a while, and then tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rag_assets.common.errors import ConfigurationError, RagAssetsError, RerankFailed
from rag_assets.models.reranking.rerankers import (
    FAILURES,
    OPEN_SECONDS,
    CircuitBreakerReranker,
)

LATE = RerankFailed("late", "late")


class Scripted:
    """A reranker that fails according to a script."""

    reranker_id = "scripted"

    def __init__(self) -> None:
        self.failure: RagAssetsError | None = None
        self.asked = 0

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return [1.0] * len(passages)

    async def close(self) -> None:
        """Do nothing."""


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def ask(reranker: CircuitBreakerReranker) -> str | None:
    """Return why there are no scores; None if there are."""
    try:
        asyncio.run(reranker.score_passages("q", ["p"], seconds=1))
    except RerankFailed as error:
        return error.fault
    return None


def test_it_rests_after_failures_in_a_row_and_one_tries_it_again() -> None:
    scripted, clock = Scripted(), Clock()
    reranker = CircuitBreakerReranker(scripted, clock)
    scripted.failure = LATE
    assert [ask(reranker) for _ in range(FAILURES + 2)] == ["late"] * FAILURES + ["resting"] * 2
    assert scripted.asked == FAILURES
    clock.now += OPEN_SECONDS
    assert [ask(reranker) for _ in range(3)] == ["late", "resting", "resting"]
    clock.now += OPEN_SECONDS
    scripted.failure = None
    assert [ask(reranker) for _ in range(3)] == [None] * 3
    scripted.failure = LATE
    assert ask(reranker) == "late"


def test_a_success_in_between_starts_the_count_anew() -> None:
    scripted = Scripted()
    reranker = CircuitBreakerReranker(scripted, Clock())
    for _ in range(5):
        scripted.failure = LATE
        assert [ask(reranker) for _ in range(FAILURES - 1)] == ["late"] * (FAILURES - 1)
        scripted.failure = None
        assert ask(reranker) is None


def test_while_one_tries_it_again_the_others_go_on_without() -> None:
    scripted, clock = Scripted(), Clock()
    reranker = CircuitBreakerReranker(scripted, clock)
    scripted.failure = LATE
    for _ in range(FAILURES):
        ask(reranker)
    clock.now += OPEN_SECONDS
    scripted.failure = None

    async def at_once() -> list[object]:
        calls = [reranker.score_passages("q", ["p"], seconds=1) for _ in range(5)]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(at_once())
    assert outcomes[0] == [1.0]
    assert [getattr(outcome, "fault", None) for outcome in outcomes[1:]] == ["resting"] * 4


def test_a_model_that_cannot_be_used_is_a_failure_like_others() -> None:
    scripted = Scripted()
    scripted.failure = ConfigurationError("no such folder", hint="make it")
    with pytest.raises(RerankFailed, match="no such folder") as caught:
        asyncio.run(CircuitBreakerReranker(scripted).score_passages("q", ["p"], seconds=1))
    assert (caught.value.fault, caught.value.hint) == ("not usable", "make it")
