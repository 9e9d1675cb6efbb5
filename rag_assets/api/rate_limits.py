"""Rate limits: how many requests each token may make."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from cachetools import TTLCache

from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.common.sliding_window import SlidingWindowLimiter

_RATE = re.compile(r"([1-9]\d{0,5}|1000000)\s*(?:/|per)\s*(second|minute|hour|day)s?", re.ASCII)
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
_MAX_TOKENS = 100_000


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


class TooManyAttempts(RagAssetsError):
    """An address sent too many requests without a valid token.

    Args:
        retry_after: seconds until a request is checked again.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "too many requests without a valid token came from this address",
            hint=f"try again in {retry_after} s, with a token",
        )
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Rate:
    """A number of requests in any period of a number of seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str, name: str = "RAG_ASSETS_SERVICE_RATE") -> Rate:
        """A rate as it is written: 600/minute.

        Each request of a window is remembered, so that a million is the most.

        Args:
            text: as written.
            name: of the setting.

        Raises:
            ConfigurationError: it is not a rate.
        """
        found = _RATE.fullmatch(text.strip())
        if found is None:
            raise ConfigurationError(
                f"{name} is not a rate: {text}",
                hint="as in 600/minute: up to 1000000 a second, minute, hour or day",
            )
        return cls(int(found[1]), _SECONDS[found[2]])


class Rates:
    """Counts the requests of each token in this process.

    Args:
        rate: of each.
        clock: in seconds.
    """

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        # A token without requests for a whole window is as one without any.
        self._windows: TTLCache[str, SlidingWindowLimiter] = TTLCache(
            _MAX_TOKENS, rate.seconds, clock
        )

    def take(self, name: str) -> None:
        """Count one request.

        Args:
            name: of the token.

        Raises:
            TooManyRequests: it may not be made now.
        """
        window = self._windows.get(name) or SlidingWindowLimiter(
            self._rate.requests, self._rate.seconds
        )
        now = self._clock()
        if wait := window.wait(1, now):
            raise TooManyRequests(max(1, math.ceil(wait)))
        window.begin(1)
        window.end(1, 1, now)
        self._windows[name] = window
