"""Dagster's daemon, safe if the clock is set back: `python -m rag_assets.sensors.daemon`.

It accepts the arguments of `dagster-daemon run`. Dagster stores times of ticks, and waits until the
clock passes them; after the clock was set back, they lie in the future. So ticks from the future
are discarded when the daemon starts. If the clock is set back later, the daemon restarts in the
same process.

Ticks that request nothing are not logged, because the UI lists them with the reason.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import dagster as dg

from rag_assets.common.formatting import duration, format_count
from rag_assets.dagster_compat import run_daemon
from rag_assets.sensors.ticks import TOLERANCE_SECONDS, discard_future_ticks

_LOOK_SECONDS = 5.0
_IDLE = re.compile(r"Checking for new runs for sensor|Sensor \S+ skipped|No run requests returned")


class ClockWatch:
    """Detects that the machine's clock is set back, by comparison with a clock that cannot be set.

    Args:
        tolerance_seconds: seconds by which synchronization may set the clock back undetected.
        wall, steady: the machine's clock, and a clock that cannot be set.
    """

    def __init__(
        self,
        tolerance_seconds: float,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tolerance = tolerance_seconds
        self._wall, self._steady = wall, steady
        self._highest = wall() - steady()

    def get_seconds_set_back(self) -> float:
        """Return by how many seconds the clock was set back; 0 within the tolerance."""
        difference = self._wall() - self._steady()
        self._highest = max(self._highest, difference)
        back = self._highest - difference
        return back if back > self._tolerance else 0.0


def is_worth_logging(record: logging.LogRecord) -> bool:
    """Return whether to log a record of the sensors; False for ticks that requested nothing."""
    return record.levelno > logging.INFO or not _IDLE.match(record.getMessage())


def main() -> None:
    """Run the daemon until it is stopped; restart it when the clock was set back."""
    with dg.DagsterInstance.get() as instance:
        if discarded := discard_future_ticks(instance, time.time()):
            _log(
                f"This machine's clock was ahead: discarded ticks of"
                f" {format_count(discarded, 'sensor or schedule', 'sensors and schedules')}"
                " that lay in the future"
            )
    logging.getLogger("dagster.daemon.SensorDaemon").addFilter(is_worth_logging)
    watch, set_back = ClockWatch(TOLERANCE_SECONDS), threading.Event()

    def watch_clock() -> None:
        while not (seconds := watch.get_seconds_set_back()):
            time.sleep(_LOOK_SECONDS)
        _log(f"This machine's clock was set back by {duration(seconds)}: the daemon restarts")
        set_back.set()
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=watch_clock, name="clock-watch", daemon=True).start()
    with suppress(KeyboardInterrupt):
        run_daemon()
    if set_back.is_set():
        os.execv(sys.executable, sys.orig_argv)  # noqa: S606  (our own command, no shell)


def _log(line: str) -> None:
    with suppress(OSError):  # A full disk for logs must not stop the daemon.
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


if __name__ == "__main__":
    main()
