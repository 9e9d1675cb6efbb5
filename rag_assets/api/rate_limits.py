"""Rate limits for the requests of each token."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from rag_assets.api.shared_windows import SharedWindows
from rag_assets.common.errors import ConfigurationError, RagAssetsError

_RATE = re.compile(r"([1-9]\d{0,5}|1000000)\s*(?:/|per)\s*(second|minute|hour|day)s?", re.ASCII)
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}


class TooManyRequests(RagAssetsError):
    """A token made more requests than its rate allows.

    Args:
        retry_after: seconds until the next request is accepted.
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
    """A maximum number of requests in any period of a number of seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str, name: str = "RAG_ASSETS_SERVICE_RATE") -> Rate:
        """Parse a rate such as 600/minute.

        Args:
            text: the rate.
            name: name of the setting.

        Raises:
            ConfigurationError: the text is not a rate.
        """
        found = _RATE.fullmatch(text.strip())
        if found is None:
            raise ConfigurationError(
                f"{name} is not a rate: {text}",
                hint=(
                    "use a format such as 600/minute: at most 1000000 per second, minute, hour "
                    "or day"
                ),
            )
        return cls(int(found[1]), _SECONDS[found[2]])


class Rates:
    """The rate limit of each token.

    Args:
        windows: the windows in which requests are counted.
    """

    def __init__(self, windows: SharedWindows) -> None:
        self._windows = windows

    def take(self, name: str, events: int = 1) -> None:
        """Count requests, or other events with a rate limit.

        Args:
            name: name of the token.
            events: number of events, counted together.

        Raises:
            TooManyRequests: the rate is exceeded.
        """
        if wait := self._windows.take(name.encode("utf-8", "surrogatepass"), events):
            raise TooManyRequests(max(1, math.ceil(wait)))
