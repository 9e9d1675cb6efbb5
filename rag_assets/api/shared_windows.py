"""Events by key over a sliding window, counted by all workers of the service together."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from rag_assets.api.shared_table import Record, SharedTable

_PARTS = 60
_CELLS = _PARTS + 1
"""The part that has begun, and those of a whole window before it."""
_RECORD = struct.Struct(f"<{_CELLS}d{_CELLS}I")


class SharedWindows:
    """Limits events by key over any window of so many seconds.

    Events within a sixtieth of a window count as long as the last of them: the limit holds in every
    window, and none counts for more than a sixtieth of a window longer than one.

    Args:
        limit: of events in a window, less than 2³².
        seconds: length of a window.
        keys: that the windows are made for; beyond them, those used longest ago are forgotten.
        clock: in seconds, the same in all processes.
    """

    def __init__(
        self, limit: int, seconds: float, keys: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._table = SharedTable(keys, _RECORD.size)

    def take(self, key: bytes, events: int = 1) -> float:
        """Count events if the first keeps within the limit; else the seconds until one does.

        Several events are taken together: a window may so have more than its limit, once.
        """
        now = self._clock()
        with self._table.locked(key, now) as record:
            if wait := self._wait(record, now):
                return wait
            self._add(record, now, events)
        return 0.0

    def count(self, key: bytes) -> None:
        """Count an event that has happened."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            self._add(record, now)

    def wait(self, key: bytes) -> float:
        """Seconds until another event keeps within the limit; 0 if it does now."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            return self._wait(record, now)

    def _wait(self, record: Record, now: float) -> float:
        if not record.is_there:
            return 0.0
        times, counts = _cells(record)
        since = now - self._seconds
        excess = 1 - self._limit
        counting = [(at, count) for at, count in zip(times, counts, strict=True) if at > since]
        excess += sum(count for _, count in counting)
        if excess <= 0:
            return 0.0
        for at, count in sorted(counting):
            excess -= count
            if excess <= 0:
                return at - since
        return self._seconds

    def _add(self, record: Record, now: float, events: int = 1) -> None:
        times, counts = _cells(record)
        part = self._part(now)
        cell = part % _CELLS
        counts[cell] = counts[cell] + events if self._part(times[cell]) == part else events
        # Another process may have read the clock later and come first.
        times[cell] = max(times[cell], now)
        record.write(_RECORD.pack(*times, *counts), now + self._seconds)

    def _part(self, at: float) -> int:
        return int(at * _PARTS / self._seconds)


def _cells(record: Record) -> tuple[list[float], list[int]]:
    """When the last event of each part was, and how many the part had."""
    values = _RECORD.unpack(record.read())
    return [*values[:_CELLS]], [*values[_CELLS:]]
