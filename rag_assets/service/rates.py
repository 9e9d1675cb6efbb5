"""How many requests each token may make."""

from __future__ import annotations

import math
import time

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import MovingWindowRateLimiter

from rag_assets.errors import RagAssetsError


class TooManyRequests(RagAssetsError):
    """A token made more requests than it may.

    Args:
        retry_after: seconds until the next is taken.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "the token has made too many requests", hint=f"try again in {retry_after} s"
        )
        self.retry_after = retry_after


class Rates:
    """Counts the requests of each token in this process.

    Args:
        rate: as in 600/minute.
    """

    def __init__(self, rate: str) -> None:
        self._item = parse(rate)
        self._limiter = MovingWindowRateLimiter(MemoryStorage())

    def take(self, name: str) -> None:
        """Count one request.

        Args:
            name: of the token.

        Raises:
            TooManyRequests: it may not be made now.
        """
        if not self._limiter.hit(self._item, name):
            reset = self._limiter.get_window_stats(self._item, name).reset_time
            raise TooManyRequests(max(1, math.ceil(reset - time.time())))
