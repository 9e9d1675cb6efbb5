"""What one tenant may send to one provider: how much at once, how much a minute, and when not."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rag_assets.common.errors import OutOfTime
from rag_assets.common.sliding_window import MINUTE, SlidingWindowLimiter
from rag_assets.models.transport.slots import Slots


@dataclass(slots=True)
class Turn:
    """A request that may go out now.

    Attributes:
        tokens: what it counts for; to be set to what the provider says, once it does.
    """

    tokens: int


class Traffic:
    """The way to a provider, shared by all that go it for a tenant: drives, loops, threads.

    Args:
        concurrency: requests under way at once at most.
        requests_per_minute: in every minute at most; None for any number.
        tokens_per_minute: likewise.
        window: seconds in a minute.
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
        self._paused_until = 0.0

    @property
    def pause_left(self) -> float:
        """Seconds until anything may go out again."""
        return max(0.0, self._paused_until - time.monotonic())

    def pause(self, seconds: float) -> None:
        """Let nothing go out for so long: the provider asked for it."""
        with self._lock:
            self._paused_until = max(self._paused_until, time.monotonic() + seconds)

    @asynccontextmanager
    async def turn(self, tokens: int, until: float) -> AsyncIterator[Turn]:
        """Wait until a request may go out; it is under way for the time of the block.

        Who waits for the limits of a minute holds no slot meanwhile: a short question may have
        room where a long batch has none.

        Args:
            tokens: what it is expected to count for.
            until: time.monotonic() by which it must go out.

        Raises:
            OutOfTime: it cannot go out by then; said as soon as that is known.
        """
        while True:
            async with self._slots.hold(until - time.monotonic()):
                wait = self._begin(tokens)
                if wait <= 0:
                    turn = Turn(tokens)
                    try:
                        yield turn
                    finally:
                        self._end(tokens, turn.tokens)
                    return
            if time.monotonic() + wait > until:
                raise OutOfTime("the provider's limits leave no room in time")
            await asyncio.sleep(wait)

    def _begin(self, tokens: int) -> float:
        """Count a request as under way, or say how long it has to wait for that."""
        with self._lock:
            now = time.monotonic()
            wait = max(
                self._paused_until - now,
                self._requests.wait(1, now),
                self._tokens.wait(tokens, now),
            )
            if wait <= 0:
                self._requests.begin(1)
                self._tokens.begin(tokens)
            return wait

    def _end(self, begun: int, tokens: int) -> None:
        with self._lock:
            now = time.monotonic()
            self._requests.end(1, 1, now)
            self._tokens.end(begun, tokens, now)
