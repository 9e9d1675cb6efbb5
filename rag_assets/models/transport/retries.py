"""Asking a provider until it answers, or for as long as that is worth while."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rag_assets.common.errors import EmbedderUnavailable, EmbeddingError, OutOfTime
from rag_assets.models.transport.traffic import Traffic

_LONGEST_SHARED_PAUSE = 300.0
"""A person may have changed what the provider minds long before it thought of that itself."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is worth while.

    Attributes:
        turn: seconds to wait at most until its first attempt may go out.
        tries: attempts at most.
        seconds: for all attempts and the pauses between them.
        least: seconds that an attempt after the first must have left, or it does not begin.
        first_pause: seconds before the second attempt at most; doubled before every further one.
        longest_pause: what that grows to, unless the provider asks for more.
    """

    turn: float
    tries: int
    seconds: float
    least: float
    first_pause: float = 1.0
    longest_pause: float = 20.0

    def pause(self, attempts: int) -> float:
        """Seconds to wait when so many attempts have failed.

        Drawn evenly from zero to a bound that doubles ("full jitter"), so that callers who failed
        together do not return together.
        """
        bound = min(self.longest_pause, self.first_pause * 2.0 ** (attempts - 1))
        return random.uniform(0.0, bound)  # noqa: S311


# Providers count by the minute, and a Retry-After is as a rule no longer than that.
DOCUMENT_RETRIES = RetryPolicy(turn=66.0, tries=8, seconds=66.0, least=5.0)
"""For documents: they can wait, and a failure puts them off for longer."""
QUERY_RETRIES = RetryPolicy(turn=3.0, tries=4, seconds=7.0, least=1.0, first_pause=0.25)
"""For a question: somebody waits for the answer, ten seconds all in all."""


class Charged(Protocol):
    """What a provider answers."""

    @property
    def tokens(self) -> int:
        """That it is charged for."""
        ...


AnswerT = TypeVar("AnswerT", bound=Charged)


class RetriedCall(Generic[AnswerT]):
    """One call to a provider: attempts when it is our turn, until one succeeds.

    Args:
        ask: one attempt.
        traffic: tells whose turn it is; learns how long the provider wants to be left alone.
        tokens: that an attempt is expected to count for.
        patience: how long to go on.
        source: who is asked, for messages.
    """

    def __init__(
        self,
        ask: Callable[[], Awaitable[AnswerT]],
        traffic: Traffic,
        *,
        tokens: int,
        patience: RetryPolicy,
        source: str,
    ) -> None:
        self._ask = ask
        self._traffic = traffic
        self._tokens = tokens
        self._patience = patience
        self._source = source
        self._attempts = 0
        self._give_up = 0.0
        self._failure: EmbedderUnavailable | None = None

    @property
    def attempts(self) -> int:
        """Requests that went out by now."""
        return self._attempts

    async def answer(self, deadline: float | None) -> AnswerT:
        """The first answer that comes.

        Args:
            deadline: time.monotonic() after which the first attempt need not go out.

        Raises:
            OutOfTime: the first attempt could not go out before the deadline.
            EmbeddingError: what the last attempt raised, with the number of attempts.
        """
        until = time.monotonic() + self._patience.turn
        try:
            answer = await self._attempt(until if deadline is None else min(until, deadline))
        except OutOfTime:
            if deadline is not None and deadline < until:
                raise
            raise self._never_sent() from None
        while answer is None:
            await self._wait()
            try:
                answer = await self._attempt(self._give_up - self._patience.least)
            except OutOfTime:
                raise self._failed() from None
        return answer

    async def _attempt(self, until: float) -> AnswerT | None:
        """Ask once; None after a failure that may pass."""
        try:
            async with self._traffic.turn(self._tokens, until) as turn:
                if not self._attempts:
                    self._give_up = time.monotonic() + self._patience.seconds
                self._attempts += 1
                async with asyncio.timeout(self._give_up - time.monotonic()):
                    answer = await self._ask()
                turn.tokens = answer.tokens
                return answer
        except TimeoutError:
            self._failure = EmbedderUnavailable(f"{self._source} does not answer in time")
        except EmbedderUnavailable as error:
            self._failure = error
        except OutOfTime:
            raise
        except EmbeddingError as error:  # none was made where there is no key to make it with
            error.requests += self._attempts - 1
            raise
        return None

    async def _wait(self) -> None:
        """Let time pass before the next attempt, if one is worth while.

        Raises:
            EmbedderUnavailable: none is.
        """
        failure = self._failed()
        pause = self._patience.pause(self._attempts)
        if failure.retry_after is not None:
            pause = max(pause, failure.retry_after)
            self._traffic.pause(min(pause, _LONGEST_SHARED_PAUSE))
        latest = self._give_up - self._patience.least
        if self._attempts >= self._patience.tries or time.monotonic() + pause > latest:
            raise failure
        await asyncio.sleep(pause)

    def _failed(self) -> EmbedderUnavailable:
        failure = self._failure or EmbedderUnavailable(f"{self._source} does not answer")
        failure.requests = self._attempts
        return failure

    def _never_sent(self) -> EmbedderUnavailable:
        pause = self._traffic.pause_left
        reason = "asks not to be called for now" if pause else "takes no further call for now"
        error = EmbedderUnavailable(f"{self._source} {reason}", retry_after=pause or None)
        error.requests = 0
        return error
