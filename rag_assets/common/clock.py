"""The clock by which every age is counted: of documents, builds, batches, events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

MOST_SKEW: Final = timedelta(hours=1)
"""A machine's clock that differs more than this from Postgres's is not believed."""


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """This machine's clock, or one that is set forward.

    Attributes:
        machine: returns this machine's time, in UTC.
        ahead: added to the times of the machine and of Postgres alike, so that ages can be counted
            as they will be later.
    """

    machine: Callable[[], datetime] = _utc_now
    ahead: timedelta = timedelta()

    def now(self) -> datetime:
        """The time from which ages are counted."""
        return self.machine() + self.ahead

    def skew(self, server: datetime) -> timedelta:
        """How far the machine's time is from a server's.

        Args:
            server: the server's own time, of now.
        """
        return abs(self.machine() - server)
