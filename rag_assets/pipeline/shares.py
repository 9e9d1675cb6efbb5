"""Shares of what is compared: a part on each day, such that all is compared within some days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import cached_property
from time import monotonic, sleep

from rag_assets.common.hashing import HashRange

BYTES_A_SECOND = 64 * 1024 * 1024
"""At most so much is read, so that others who read the same disk are not slowed down."""


@dataclass(frozen=True)
class Share:
    """What is compared on one day: the ids and hashes in one part of all of them.

    Attributes:
        days: of the cycle in which everything is compared once; 1 compares everything at once.
        day: today.
    """

    days: int
    day: date

    @cached_property
    def hashes(self) -> HashRange:
        """The hashes of the share, and the ids, which are hashes."""
        return HashRange.part(self.day.toordinal() % self.days, self.days)

    def __contains__(self, hashed: str) -> bool:
        return hashed in self.hashes


class Pace:
    """Sleeps where more was read than a rate allows.

    Args:
        bytes_a_second: the rate.
    """

    def __init__(self, bytes_a_second: float = BYTES_A_SECOND) -> None:
        self._rate = bytes_a_second
        self._started = monotonic()
        self._taken = 0

    def took(self, size: int) -> None:
        """Note that so many bytes are read."""
        self._taken += size
        ahead = self._taken / self._rate - (monotonic() - self._started)
        if ahead > 0:
            sleep(ahead)
