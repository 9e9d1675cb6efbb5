"""The clock, in UTC, from which ages of documents, builds, batches and events are computed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

MAX_SKEW: Final = timedelta(hours=1)
"""Largest accepted difference between a machine's clock and another trusted clock."""
MAX_JUMP: Final = timedelta(days=1)
"""If the clock is at most this much ahead of the last trusted time, it is trusted without further
evidence."""

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class BootTime:
    """The time since a machine booted, which does not change when its clock is set."""

    boot_id: str
    seconds: float
    """Seconds since the boot, including time in suspension."""


def read_boot_time() -> BootTime | None:
    """Return the time since this machine's boot; None on systems other than Linux."""
    clock_id = getattr(time, "CLOCK_BOOTTIME", None)
    if clock_id is None:
        return None
    try:
        boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        return BootTime(boot_id, time.clock_gettime(clock_id))
    except OSError:
        return None


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """This machine's clock, or a clock that is set forward."""

    machine: Callable[[], datetime] = _utc_now
    ahead: timedelta = timedelta()
    """Duration that is added to the times of both the machine and Postgres, so that ages can be
    computed as of a later time."""
    boot: Callable[[], BootTime | None] = read_boot_time

    def now(self) -> datetime:
        """Return the current time, from which ages are computed.

        Do not delete by age with this clock, which may be wrong: use `time_for_deletion` in
        `rag_assets.pipeline.clock_guard`.
        """
        return self.machine() + self.ahead
