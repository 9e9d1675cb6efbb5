"""Deadlines of a worker process; one thread watches them for all documents.

One thread per document, as with threading.Timer, would cost more than parsing a small document.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Self


class Watchdog:
    """A watchdog that calls `give_up` when a deadline passes; it watches one deadline at a time.

    Args:
        give_up: called in the watchdog's thread.
    """

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._current: Deadline | None = None
        self._wakes_at = math.inf
        self._closed = False

    def deadline(self, seconds: float) -> Deadline:
        """Return a deadline whose time runs while its `with` block runs."""
        return Deadline(self, seconds)

    def watch(self, deadline: Deadline) -> None:
        """Watch a deadline in place of the previous one."""
        with self._changed:
            self._current = deadline
            # The thread checks again whenever it wakes, so a later deadline need not wake it.
            if deadline.at < self._wakes_at:
                self._wakes_at = deadline.at
                self._wake()

    def release(self) -> None:
        """Stop watching the current deadline."""
        with self._changed:
            self._current = None

    def close(self) -> None:
        """Stop the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
            self._thread.start()
        else:
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                current = self._current
                if current is not None and current.at <= now:
                    current.passed = True
                    self._current = None
                    self._give_up()
                    continue
                self._wakes_at = math.inf if current is None else current.at
                self._changed.wait(min(self._wakes_at - now, threading.TIMEOUT_MAX))


class Deadline:
    """A number of seconds from the start of its block, which can be extended within it.

    Attributes:
        seconds: number of seconds in total.
        at: time of the monotonic clock at which the deadline passes.
        passed: whether the deadline has passed.
    """

    def __init__(self, watchdog: Watchdog, seconds: float) -> None:
        self.seconds = seconds
        self.at = math.inf
        self.passed = False
        self._watchdog = watchdog

    def __enter__(self) -> Self:
        self.at = time.monotonic() + self.seconds
        self._watchdog.watch(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._watchdog.release()

    def extend(self, seconds: float) -> None:
        """Add seconds to the deadline, and count the new total from now."""
        self.seconds += seconds
        self.at = time.monotonic() + self.seconds
        self._watchdog.watch(self)
