"""Limits of a tenant's requests to a provider: concurrency, rates, pauses."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rag_assets.common.errors import DeadlineExceeded
from rag_assets.common.sliding_window import MINUTE, SlidingWindowLimiter
from rag_assets.models.transport.slots import Slots

_BURST_SHARE, _SPREAD_SHARE = 0.5, 0.4
"""Shares of a limit that bulk requests may use in a burst and evenly spread; questions and edits
get the rest."""


@dataclass(slots=True)
class Turn:
    """A request that may be sent now.

    Attributes:
        tokens: estimated number of tokens; replaced by the number in the provider's response.
    """

    tokens: int


class Traffic:
    """Limits requests to a provider; a tenant's runs, event loops and threads share it.

    Args:
        concurrency: maximum number of requests in progress.
        requests_per_minute: maximum number of requests in every minute; None for no limit.
        tokens_per_minute: maximum number of tokens in every minute; None for no limit.
        window: length of the minute in seconds; tests may shorten it.
    """

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
        """Return the seconds until requests may be sent again."""
        return max(0.0, self._paused_until - time.monotonic())

    def pause(self, seconds: float, *, is_limited: bool = True) -> None:
        """Stop sending requests for a time that the provider requires."""
        with self._lock:
            self.is_limited = is_limited
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def turn(
        self, tokens: int, until: float, *, is_bulk: bool = False
    ) -> AsyncIterator[Turn]:
        """Wait until a request may be sent; the request is in progress while the block runs.

        Bulk requests leave room for others in the limits of every minute. A request that waits for
        a rate limit releases its slot meanwhile, since a short query may fit into the limit
        although a long batch does not.

        Args:
            tokens: estimated number of tokens.
            until: time.monotonic() by which the request must be sent.
            is_bulk: whether no caller waits for the request.

        Raises:
            DeadlineExceeded: the request cannot be sent by then; raised as soon as that is
                known.
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
        """Count a request as in progress; return the seconds to wait if it may not start."""
        with self._lock:
            now = time.monotonic()
            wait = max(
                self._paused_until - now,
                self._requests.wait(1, now),
                self._tokens.wait(tokens, now),
            )
            if is_bulk:
                wait = max(
                    wait, self._bulk_requests.wait(1, now), self._bulk_tokens.wait(tokens, now)
                )
            if wait <= 0:
                if is_bulk:
                    self._bulk_requests.begin(1, now)
                    self._bulk_tokens.begin(tokens, now)
                self._requests.begin(1)
                self._tokens.begin(tokens)
            return wait

    def _end(self, begun: int, tokens: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._requests.end(1, 1, now)
            self._tokens.end(begun, tokens, now)


class _BulkPace:
    """Keeps bulk requests from using up a limit: they get half of it in a burst, then an even rate.

    Args:
        limiter: counts all requests.
        limit: limit of the limiter; None for no limit.
        window: length of the limit's window in seconds.
    """

    def __init__(self, limiter: SlidingWindowLimiter, limit: int | None, window: float) -> None:
        self._limiter = limiter
        self._seconds_of_one = 0.0 if limit is None else window / (limit * _SPREAD_SHARE)
        self._free_at = 0.0

    def wait(self, amount: int, now: float) -> float:
        """Return the seconds until a bulk request may start."""
        at_once = self._limiter.wait(amount, now, share=_BURST_SHARE)
        return min(at_once, max(0.0, self._free_at - now))

    def begin(self, amount: int, now: float) -> None:
        """Count a bulk request that starts now."""
        if self._limiter.wait(amount, now, share=_BURST_SHARE) > 0:
            self._free_at = max(self._free_at, now) + amount * self._seconds_of_one
