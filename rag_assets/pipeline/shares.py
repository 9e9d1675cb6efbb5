"""Shares of compared data: one part per day, so that all data is compared within some days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from time import monotonic, sleep

from rag_assets.common.hashing import HashRange

BYTES_A_SECOND = 64 * 1024 * 1024
"""Limit of the reading rate, so that other readers of the same disk are not slowed down."""


@dataclass(frozen=True)
class Share:
    """The data compared on one day: one part of all ids and hashes.

    Attributes:
        days: length of the cycle in which everything is compared once; with 1, everything is
            compared at once.
        day: today.
    """

    days: int
    day: date

    @cached_property
    def hashes(self) -> HashRange:
        """Return the range of hashes in the share; ids are hashes too."""
        return HashRange.part(self.day.toordinal() % self.days, self.days)

    def __contains__(self, hashed: str) -> bool:
        return hashed in self.hashes


class Pace:
    """Limits a reading rate by sleeping.

    Args:
        bytes_a_second: the rate.
    """

    def __init__(self, bytes_a_second: float = BYTES_A_SECOND) -> None:
        self._rate = bytes_a_second
        self._started = monotonic()
        self._taken = 0

    def took(self, size: int) -> None:
        """Record that this many bytes were read, and sleep if the rate was exceeded."""
        self._taken += size
        ahead = self._taken / self._rate - (monotonic() - self._started)
        if ahead > 0:
            sleep(ahead)
