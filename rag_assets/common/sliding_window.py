"""How much of something may happen in every stretch of time, wherever that stretch begins."""

from __future__ import annotations

from collections import deque

MINUTE = 60.0


class SlidingWindowLimiter:
    """Keeps a sum over any stretch of so many seconds within a limit.

    The first burst may use all that a window allows. A leaky bucket, which libraries offer, lets
    as much again trickle in behind it: up to twice the limit within the first window. Here what
    is under way counts until it has ended, and a full window beyond that. So the limit also
    holds where it is counted, at the provider, however long a request takes to get there. What
    takes no time begins and ends at once.

    Args:
        limit: in a window at most; None for any amount.
        seconds: length of a window.
    """

    def __init__(self, limit: int | None, seconds: float = MINUTE) -> None:
        self._limit = limit
        self._seconds = seconds
        self._under_way = 0
        self._ended: deque[tuple[float, int]] = deque()
        self._ended_sum = 0

    def wait(self, amount: int, now: float) -> float:
        """Seconds until there may be room for an amount; 0 when there is.

        What is under way may end with less than it took, so ask again then. An amount over the
        whole limit waits for an empty window.
        """
        if self._limit is None:
            return 0.0
        self._forget(now)
        excess = self._under_way + self._ended_sum + min(amount, self._limit) - self._limit
        if excess <= 0:
            return 0.0
        for ended, part in self._ended:
            excess -= part
            if excess <= 0:
                return ended + self._seconds - now
        return self._seconds  # what is under way counts for a window after it has ended

    def begin(self, amount: int) -> None:
        """Count an amount as under way."""
        self._under_way += amount

    def end(self, begun: int, amount: int, now: float) -> None:
        """Count what was under way as what it came to, for one window from now on."""
        self._under_way -= begun
        if self._limit is not None:
            self._ended.append((now, amount))
            self._ended_sum += amount

    def _forget(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - self._seconds:
            self._ended_sum -= self._ended.popleft()[1]
