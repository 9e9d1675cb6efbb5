"""Progress lines of a stage; none for a stage that takes under two seconds."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST_SECONDS = 2.0
_EVERY_SECONDS = 2.0


class Progress:
    """Counts items of one stage and reports the count, total, rate and time left.

    Args:
        what: the name of the stage.
        total: the number of items.
        log: writes a line.
    """

    def __init__(self, what: str, total: int, log: Callable[[str], None]) -> None:
        self._what = what
        self._total = total
        self._log = log
        self._count = 0
        self._started = time.monotonic()
        self._next = self._started + _FIRST_SECONDS
        self._reported: int | None = None

    def advance(self, count: int) -> None:
        """Count further finished items."""
        self.at(self._count + count)

    def at(self, count: int) -> None:
        """Set the number of finished items."""
        self._count = count
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_SECONDS
            self._report(now)

    def done(self) -> None:
        """End the stage; report once more if the last line is out of date."""
        if self._reported is not None and self._reported != self._count:
            self._report(time.monotonic())

    def _report(self, now: float) -> None:
        self._reported = self._count
        self._log(self._line(now))

    def _line(self, now: float) -> str:
        seconds = max(now - self._started, 1e-6)
        rate = self._count / seconds
        left = (self._total - self._count) / rate if rate else 0.0
        eta = f", about {left:.0f} s left" if self._count < self._total and rate else ""
        return f"{self._what}: {self._count:,} of {self._total:,} ({rate:,.0f}/s{eta})"
