"""Limits and retries of a tenant's requests to a provider: concurrency, rates, pauses, attempts."""

from __future__ import annotations

import asyncio
import math
import random
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from rag_assets.common.errors import DeadlineExceeded, ProviderError, ProviderUnavailable

MINUTE = 60.0


class SlidingWindowLimiter:
    """A limit on the sum of amounts in any time window of a fixed length.

    The first burst may use the whole limit. A leaky bucket, as in libraries, allows up to twice the
    limit in the first window. Here a request counts while it is in progress and for one window
    after its end. So the limit also holds at the provider, even if a request arrives there late. An
    event without duration starts and ends at once.
    """

    def __init__(self, limit: int | None, seconds: float = MINUTE) -> None:
        self._limit = limit
        self._seconds = seconds
        self._in_progress = 0
        self._ended: deque[tuple[float, int]] = deque()
        self._ended_sum = 0

    def get_wait_seconds(self, amount: int, now: float, *, share: float = 1.0) -> float:
        """Return the seconds until an amount may fit into a share of the limit; 0 if it fits now.

        Requests in progress may end with a smaller amount, so call this again after waiting. An
        amount above the whole limit waits for an empty window.
        """
        if self._limit is None:
            return 0.0
        self._forget_past_amounts(now)
        limit = self._limit * share
        excess = self._in_progress + self._ended_sum + min(amount, limit) - limit
        if excess <= 0:
            return 0.0
        for ended, part in self._ended:
            excess -= part
            if excess <= 0:
                return ended + self._seconds - now
        return self._seconds  # requests in progress count for a window after their end

    def begin(self, amount: int) -> None:
        """Count the amount of a request that starts now."""
        self._in_progress += amount

    def end(self, started_amount: int, amount: int, now: float) -> None:
        """Replace the amount of a request that ends; the final amount counts for one window."""
        self._in_progress -= started_amount
        if self._limit is not None:
            self._ended.append((now, amount))
            self._ended_sum += amount

    def _forget_past_amounts(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - self._seconds:
            self._ended_sum -= self._ended.popleft()[1]


_MAX_SHARED_PAUSE_SECONDS = 300.0
"""Maximum seconds of a pause, since the cause may be gone long before the time that a provider
requires."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The limits of a call's attempts."""

    turn: float
    """Maximum seconds until the first attempt may be sent."""
    tries: int
    seconds: float
    """Maximum seconds of all attempts and the pauses between them."""
    min_seconds_left: float
    """Seconds that must be left for a further attempt to start."""
    first_pause: float = 1.0
    """Maximum seconds of the pause before the second attempt; doubled before every further
    attempt."""
    longest_pause: float = 20.0
    """Limit of this maximum, in seconds; the provider may still require a longer pause."""

    def draw_pause(self, attempts: int) -> float:
        """Return the seconds to wait after a number of failed attempts.

        The value is random: evenly distributed between zero and a maximum that doubles with each
        attempt ("full jitter"), so that callers that failed together do not retry together.
        """
        bound = min(self.longest_pause, self.first_pause * 2.0 ** (attempts - 1))
        return random.uniform(0.0, bound)  # noqa: S311


# Providers count requests by the minute, and a Retry-After is rarely longer.
DOCUMENT_RETRIES = RetryPolicy(turn=66.0, tries=8, seconds=66.0, min_seconds_left=5.0)
"""Limits for documents, which can wait: giving up would delay them for longer."""
QUERY_RETRIES = RetryPolicy(turn=3.0, tries=4, seconds=7.0, min_seconds_left=1.0, first_pause=0.25)
"""Limits for queries, for which callers wait: ten seconds in total."""


class ChargedResponse(Protocol):
    """A provider's response that states the tokens charged."""

    @property
    def tokens(self) -> int:
        """Return the tokens charged."""
        ...


AnswerT = TypeVar("AnswerT", bound=ChargedResponse)


class RetriedCall(Generic[AnswerT]):
    """A call to a provider, which is attempted until it succeeds or reaches its limits."""

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
        self.attempts = 0
        """Number of requests sent so far."""
        self._give_up = 0.0
        self._failure: ProviderUnavailable | None = None

    async def answer(self, deadline: float | None) -> AnswerT:
        """Make attempts until one succeeds, and return its response.

        Args:
            deadline: a time.monotonic(). After it, the first attempt is not sent, and neither is
                a further attempt that the provider has postponed.

        Raises:
            DeadlineExceeded: the deadline passed; the call may be made again later.
        """
        until = time.monotonic() + self._policy.turn
        try:
            answer = await self._attempt(until if deadline is None else min(until, deadline))
        except DeadlineExceeded:
            if deadline is not None and deadline < until:
                raise
            raise self._build_unsent_failure() from None
        while answer is None:
            await self._wait(deadline)
            try:
                answer = await self._attempt(self._give_up - self._policy.min_seconds_left)
            except DeadlineExceeded:
                raise self._build_failure() from None
        return answer

    async def _attempt(self, until: float) -> AnswerT | None:
        """Make one attempt, which starts before `until`; return None after a transient failure."""
        try:
            async with self._traffic.turn(self._tokens, until, is_bulk=self._is_bulk) as turn:
                if not self.attempts:
                    self._give_up = time.monotonic() + self._policy.seconds
                self.attempts += 1
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
            error.requests += self.attempts - 1
            raise
        return None

    async def _wait(self, deadline: float | None) -> None:
        """Wait for the pause before the next attempt; raise an error if none is allowed."""
        failure = self._build_failure()
        pause = self._policy.draw_pause(self.attempts)
        if failure.retry_after is not None:
            pause = max(pause, failure.retry_after)
            shared = min(pause, _MAX_SHARED_PAUSE_SECONDS)
            self._traffic.pause(shared, is_limited=failure.is_limited)
        latest = self._give_up - self._policy.min_seconds_left
        if self.attempts >= self._policy.tries or time.monotonic() + pause > latest:
            raise failure
        until = math.inf if failure.retry_after is None or deadline is None else deadline
        if time.monotonic() + pause > until:
            late = DeadlineExceeded(f"{self._source} limits requests beyond the deadline")
            late.requests = self.attempts
            raise late
        await asyncio.sleep(pause)

    def _build_failure(self) -> ProviderUnavailable:
        failure = self._failure or ProviderUnavailable(f"{self._source} does not answer")
        failure.requests = self.attempts
        return failure

    def _build_unsent_failure(self) -> ProviderUnavailable:
        pause = self._traffic.pause_left
        reason = "accepts no requests for now" if pause else "has reached its request limits"
        error = ProviderUnavailable(f"{self._source} {reason}", retry_after=pause or None)
        error.is_limited = not pause or self._traffic.is_limited
        error.requests = 0
        return error


_BURST_SHARE, _SPREAD_SHARE = 0.5, 0.4
"""Shares of a limit that bulk requests may use in a burst and evenly spread; questions and edits
get the rest."""


@dataclass(slots=True)
class Turn:
    """The permission to send one request; the tokens charged replace its estimated `tokens`."""

    tokens: int


class Traffic:
    """The limits on a tenant's requests to a provider, for all event loops of this process."""

    def __init__(
        self,
        *,
        concurrency: int,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        window: float = MINUTE,
    ) -> None:
        self.concurrency = concurrency
        self.tokens_per_minute = tokens_per_minute
        self._slots = Slots(concurrency)
        self._lock = threading.Lock()
        self._requests = SlidingWindowLimiter(requests_per_minute, window)
        self._tokens = SlidingWindowLimiter(tokens_per_minute, window)
        self._bulk_requests = _BulkPace(self._requests, requests_per_minute, window)
        self._bulk_tokens = _BulkPace(self._tokens, tokens_per_minute, window)
        self._paused_until = 0.0
        self.is_limited = False
        """Whether a rate limit, and not an outage, required the last pause."""

    @property
    def pause_left(self) -> float:
        """Return the seconds until the required pause ends; 0 if there is no pause."""
        return max(0.0, self._paused_until - time.monotonic())

    def pause(self, seconds: float, *, is_limited: bool = True) -> None:
        """Send no requests for a number of seconds, as a rate limit or an outage requires."""
        with self._lock:
            self.is_limited = is_limited
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def turn(
        self, tokens: int, until: float, *, is_bulk: bool = False
    ) -> AsyncIterator[Turn]:
        """Wait until a request may be sent; it counts as in progress while the block runs.

        Bulk requests leave room for others in the limits of every minute. A request that waits for
        a rate limit releases its slot meanwhile, since a short query may fit into the limit
        although a long batch does not. If a request cannot be sent by `until` (time.monotonic()),
        DeadlineExceeded is raised as soon as that is known.
        """
        while True:
            async with self._slots.hold(until - time.monotonic()):
                wait = self._begin(tokens, is_bulk=is_bulk)
                if wait <= 0:
                    turn = Turn(tokens)
                    try:
                        yield turn
                    finally:
                        self._end(tokens, turn.tokens)
                    return
            if time.monotonic() + wait > until:
                raise DeadlineExceeded("the provider's limits allow no request before the deadline")
            await asyncio.sleep(wait)

    def _begin(self, tokens: int, *, is_bulk: bool) -> float:
        """Return the seconds until a request may start; if it may now, count it as in progress."""
        with self._lock:
            now = time.monotonic()
            wait = max(
                self._paused_until - now,
                self._requests.get_wait_seconds(1, now),
                self._tokens.get_wait_seconds(tokens, now),
            )
            if is_bulk:
                wait = max(
                    wait,
                    self._bulk_requests.get_wait_seconds(1, now),
                    self._bulk_tokens.get_wait_seconds(tokens, now),
                )
            if wait <= 0:
                if is_bulk:
                    self._bulk_requests.begin(1, now)
                    self._bulk_tokens.begin(tokens, now)
                self._requests.begin(1)
                self._tokens.begin(tokens)
            return wait

    def _end(self, reserved: int, tokens: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._requests.end(1, 1, now)
            self._tokens.end(reserved, tokens, now)


class _BulkPace:
    """The additional limit on bulk requests: half of a rate limit in a burst, then an even rate."""

    def __init__(self, limiter: SlidingWindowLimiter, limit: int | None, window: float) -> None:
        self._limiter = limiter
        self._seconds_of_one = 0.0 if limit is None else window / (limit * _SPREAD_SHARE)
        self._free_at = 0.0

    def get_wait_seconds(self, amount: int, now: float) -> float:
        """Return the seconds until a bulk request of this amount may start."""
        at_once = self._limiter.get_wait_seconds(amount, now, share=_BURST_SHARE)
        return min(at_once, max(0.0, self._free_at - now))

    def begin(self, amount: int, now: float) -> None:
        """Count the amount of a bulk request that starts now."""
        if self._limiter.get_wait_seconds(amount, now, share=_BURST_SHARE) > 0:
            self._free_at = max(self._free_at, now) + amount * self._seconds_of_one


class Slots:
    """A semaphore: a fixed number of tasks have a slot, and others wait in order of arrival.

    asyncio.Semaphore belongs to a single event loop, and threading.Semaphore would block the loop.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def hold(self, seconds: float) -> AsyncIterator[None]:
        """Hold a slot while the block runs; raise DeadlineExceeded if none becomes free in time."""
        await self._acquire(seconds)
        try:
            yield
        finally:
            with self._lock:
                self._release()

    async def _acquire(self, seconds: float) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except BaseException as error:
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                else:  # the slot was handed over at the same moment
                    self._release()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("no call in progress ended in time") from None
            raise

    def _release(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            try:
                waiter.get_loop().call_soon_threadsafe(_grant, waiter)
            except RuntimeError:  # the waiting task's event loop was closed
                continue
            return
        self._free += 1


def _grant(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
