"""Retries of requests to a provider."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rag_assets.common.errors import DeadlineExceeded, ProviderError, ProviderUnavailable
from rag_assets.models.transport.traffic import Traffic

_LONGEST_SHARED_PAUSE = 300.0
"""Maximum seconds of a pause, since the cause may be gone long before the time that a provider
requires."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of a call's attempts.

    Attributes:
        turn: maximum seconds until the first attempt may be sent.
        tries: maximum number of attempts.
        seconds: maximum seconds of all attempts and the pauses between them.
        least: seconds that must be left for a further attempt to start.
        first_pause: maximum seconds of the pause before the second attempt; doubled before
            every further attempt.
        longest_pause: value beyond which that maximum does not grow, unless the provider
            requires a longer pause.
    """

    turn: float
    tries: int
    seconds: float
    least: float
    first_pause: float = 1.0
    longest_pause: float = 20.0

    def pause(self, attempts: int) -> float:
        """Return the seconds to wait after a number of failed attempts.

        They are drawn evenly between zero and a maximum that doubles with each attempt ("full
        jitter"), so that callers that failed together do not retry together.
        """
        bound = min(self.longest_pause, self.first_pause * 2.0 ** (attempts - 1))
        return random.uniform(0.0, bound)  # noqa: S311


# Providers count requests by the minute, and a Retry-After is rarely longer.
DOCUMENT_RETRIES = RetryPolicy(turn=66.0, tries=8, seconds=66.0, least=5.0)
"""Limits for documents, which can wait: giving up would delay them for longer."""
QUERY_RETRIES = RetryPolicy(turn=3.0, tries=4, seconds=7.0, least=1.0, first_pause=0.25)
"""Limits for queries, for which callers wait: ten seconds in total."""


class Charged(Protocol):
    """A response of a provider."""

    @property
    def tokens(self) -> int:
        """Return the tokens charged."""
        ...


AnswerT = TypeVar("AnswerT", bound=Charged)


class RetriedCall(Generic[AnswerT]):
    """A call to a provider: it is attempted until it succeeds or reaches its limits.

    Args:
        send: makes an attempt.
        traffic: limits attempts, and observes the pauses that the provider requires.
        tokens: estimated tokens of an attempt.
        policy: limits of attempts and time.
        is_bulk: see Traffic.turn.
        source: provider and model, for messages.
    """

    def __init__(
        self,
        send: Callable[[], Awaitable[AnswerT]],
        traffic: Traffic,
        *,
        tokens: int,
        policy: RetryPolicy,
        source: str,
        is_bulk: bool = False,
    ) -> None:
        self._send = send
        self._traffic = traffic
        self._tokens = tokens
        self._policy = policy
        self._source = source
        self._is_bulk = is_bulk
        self._attempts = 0
        self._give_up = 0.0
        self._failure: ProviderUnavailable | None = None

    @property
    def attempts(self) -> int:
        """Return the number of requests sent so far."""
        return self._attempts

    async def answer(self, deadline: float | None) -> AnswerT:
        """Make attempts until one succeeds.

        Args:
            deadline: time.monotonic() after which neither the first attempt is sent, nor a
                further attempt that the provider has postponed.

        Raises:
            DeadlineExceeded: the deadline passed; the call may be made again later.
            ProviderError: the error of the last attempt, with the number of attempts.
        """
        until = time.monotonic() + self._policy.turn
        try:
            answer = await self._attempt(until if deadline is None else min(until, deadline))
        except DeadlineExceeded:
            if deadline is not None and deadline < until:
                raise
            raise self._never_sent() from None
        while answer is None:
            await self._wait(deadline)
            try:
                answer = await self._attempt(self._give_up - self._policy.least)
            except DeadlineExceeded:
                raise self._failed() from None
        return answer

    async def _attempt(self, until: float) -> AnswerT | None:
        """Make an attempt; return None after a transient failure."""
        try:
            async with self._traffic.turn(self._tokens, until, is_bulk=self._is_bulk) as turn:
                if not self._attempts:
                    self._give_up = time.monotonic() + self._policy.seconds
                self._attempts += 1
                async with asyncio.timeout(self._give_up - time.monotonic()):
                    answer = await self._send()
                turn.tokens = answer.tokens
                return answer
        except TimeoutError:
            self._failure = ProviderUnavailable(f"{self._source} did not answer in time")
        except ProviderUnavailable as error:
            self._failure = error
        except DeadlineExceeded:
            raise
        except ProviderError as error:  # without a key, no attempt was made
            error.requests += self._attempts - 1
            raise
        return None

    async def _wait(self, deadline: float | None) -> None:
        """Wait before the next attempt.

        Raises:
            ProviderUnavailable: no further attempt is allowed.
            DeadlineExceeded: see answer.
        """
        failure = self._failed()
        pause = self._policy.pause(self._attempts)
        if failure.retry_after is not None:
            pause = max(pause, failure.retry_after)
            shared = min(pause, _LONGEST_SHARED_PAUSE)
            self._traffic.pause(shared, is_limited=failure.is_limited)
        latest = self._give_up - self._policy.least
        if self._attempts >= self._policy.tries or time.monotonic() + pause > latest:
            raise failure
        until = math.inf if failure.retry_after is None or deadline is None else deadline
        if time.monotonic() + pause > until:
            late = DeadlineExceeded(f"{self._source} limits requests beyond the deadline")
            late.requests = self._attempts
            raise late
        await asyncio.sleep(pause)

    def _failed(self) -> ProviderUnavailable:
        failure = self._failure or ProviderUnavailable(f"{self._source} does not answer")
        failure.requests = self._attempts
        return failure

    def _never_sent(self) -> ProviderUnavailable:
        pause = self._traffic.pause_left
        reason = "accepts no requests for now" if pause else "has reached its request limits"
        error = ProviderUnavailable(f"{self._source} {reason}", retry_after=pause or None)
        error.is_limited = not pause or self._traffic.is_limited
        error.requests = 0
        return error
