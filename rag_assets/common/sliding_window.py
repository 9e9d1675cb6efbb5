"""Rate limits over a sliding time window."""

from __future__ import annotations

from collections import deque

MINUTE = 60.0


class SlidingWindowLimiter:
    """Limits a sum over any window of a fixed length.

    The first burst may use the whole limit. A leaky bucket, as in libraries, allows up to twice the
    limit in the first window. Here a request counts while it is in progress and for one window
    after its end. So the limit also holds at the provider, even if a request arrives there late. An
    event without duration starts and ends at once.

    Args:
        limit: limit of the sum in a window; None for no limit.
        seconds: length of a window.
    """

    def __init__(self, limit: int | None, seconds: float = MINUTE) -> None:
        self._limit = limit
        self._seconds = seconds
        self._in_progress = 0
        self._ended: deque[tuple[float, int]] = deque()
        self._ended_sum = 0

    def wait(self, amount: int, now: float, *, share: float = 1.0) -> float:
        """Return the seconds until there may be room for an amount in a share of the limit.

        Requests in progress may end with a smaller amount, so call this again after waiting. An
        amount above the whole limit waits for an empty window.
        """
        if self._limit is None:
            return 0.0
        self._forget(now)
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
        """Count an amount as in progress."""
        self._in_progress += amount

    def end(self, started_amount: int, amount: int, now: float) -> None:
        """Replace an amount in progress with the final amount, counted for one window from now."""
        self._in_progress -= started_amount
        if self._limit is not None:
            self._ended.append((now, amount))
            self._ended_sum += amount

    def _forget(self, now: float) -> None:
        while self._ended and self._ended[0][0] <= now - self._seconds:
            self._ended_sum -= self._ended.popleft()[1]
