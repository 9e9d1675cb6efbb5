"""The counts that all workers of the service share."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from rag_assets.api.rate_limits import Rates
from rag_assets.api.settings import ServiceSettings
from rag_assets.api.shared_table import SharedTable
from rag_assets.api.shared_windows import SharedWindows

_MAX_TOKENS = 100_000
_MAX_ADDRESSES = 8_192
_MAX_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Counts shared by all processes that are forked after their creation.

    Attributes:
        rates: requests of each token.
        written: records that each token writes.
        attempts: requests of each address without a valid token.
        known: tokens that were valid recently; a record contains only its expiry.
    """

    rates: Rates
    written: Rates
    attempts: SharedWindows
    known: SharedTable

    @classmethod
    def of(
        cls, settings: ServiceSettings, clock: Callable[[], float] = time.monotonic
    ) -> SharedLimits:
        """Create empty counts with the limits of the settings."""
        rate, attempts, written = settings.rate, settings.attempts, settings.write_rate
        return cls(
            Rates(SharedWindows(rate.requests, rate.seconds, _MAX_TOKENS, clock)),
            Rates(SharedWindows(written.requests, written.seconds, _MAX_TOKENS, clock)),
            SharedWindows(attempts.requests, attempts.seconds, _MAX_ADDRESSES, clock),
            SharedTable(_MAX_KNOWN, 0),
        )
