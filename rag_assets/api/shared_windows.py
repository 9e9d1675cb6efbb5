"""Counts of events by key over a sliding window, shared by all workers of the service."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from rag_assets.api.shared_table import Record, SharedTable

_PARTS = 60
_CELLS = _PARTS + 1
"""Number of stored parts: the current part, and the parts of a whole window before it."""
_RECORD = struct.Struct(f"<{_CELLS}d{_CELLS}I")


class SharedWindows:
    """A limit on the number of events per key in any window of the given seconds.

    A window is divided into sixty parts. All events of a part expire together with the last event
    of that part. So the limit holds in every window, and an event counts at most a sixtieth of a
    window too long.

    Args:
        limit: maximum events in a window, less than 2³².
        seconds: length of a window.
        keys: maximum number of keys; above it, the keys used longest ago are forgotten.
        clock: returns the current time in seconds; all processes must see the same time.
    """

    def __init__(
        self, limit: int, seconds: float, keys: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._table = SharedTable(keys, _RECORD.size)

    def take(self, key: bytes, events: int = 1) -> float:
        """Count events and return 0 if the first of them is within the limit.

        Otherwise count none, and return the seconds until an event is within the limit. Several
        events are counted together, so they may exceed the limit of a window.
        """
        now = self._clock()
        with self._table.locked(key, now) as record:
            if wait := self._wait(record, now):
                return wait
            self._add(record, now, events)
        return 0.0

    def count(self, key: bytes) -> None:
        """Count an event that has already happened, even above the limit."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            self._add(record, now)

    def wait(self, key: bytes) -> float:
        """Return the seconds until another event is within the limit; 0 if it is within it now."""
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
        # Another process may have read the clock later, but written first.
        times[cell] = max(times[cell], now)
        record.write(_RECORD.pack(*times, *counts), now + self._seconds)

    def _part(self, at: float) -> int:
        return int(at * _PARTS / self._seconds)


def _cells(record: Record) -> tuple[list[float], list[int]]:
    """Return the time of the last event in each part, and the number of events in each part."""
    values = _RECORD.unpack(record.read())
    return [*values[:_CELLS]], [*values[_CELLS:]]
