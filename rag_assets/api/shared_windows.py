"""Events by key over a sliding window, counted by all workers of the service together."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

from rag_assets.api.shared_table import Record, SharedTable

_PARTS = 60
_CELLS = _PARTS + 1
"""The part that has begun, and those of a whole window before it."""
_COUNTS = struct.Struct(f"<q{_CELLS}I")


class SharedWindows:
    """Limits events by key over any window of so many seconds.

    A window is counted in sixtieths, which end later than any event in them: the limit holds in
    every window, and an event counts for up to a sixtieth of a window longer than one.

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
        self._part = seconds / _PARTS
        self._clock = clock
        self._table = SharedTable(keys, _COUNTS.size)

    def take(self, key: bytes) -> float:
        """Count an event if it keeps within the limit; else the seconds until one does."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            part, counts = self._counts(record, now)
            if wait := self._wait(part, counts, now):
                return wait
            self._add(record, part, counts)
        return 0.0

    def count(self, key: bytes) -> None:
        """Count an event that has happened."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            self._add(record, *self._counts(record, now))

    def wait(self, key: bytes) -> float:
        """Seconds until another event keeps within the limit; 0 if it does now."""
        now = self._clock()
        with self._table.locked(key, now) as record:
            return self._wait(*self._counts(record, now), now) if record.is_there else 0.0

    def _counts(self, record: Record, now: float) -> tuple[int, list[int]]:
        """The present part, and events by part, that of part P at P modulo the number of cells."""
        last, *counts = _COUNTS.unpack(record.read())
        part = max(int(now / self._part), last)
        for passed in range(max(last + 1, part - _PARTS), part + 1):
            counts[passed % _CELLS] = 0
        return part, counts

    def _wait(self, part: int, counts: list[int], now: float) -> float:
        excess = sum(counts) + 1 - self._limit
        if excess <= 0:
            return 0.0
        for passed in range(part - _PARTS, part + 1):
            excess -= counts[passed % _CELLS]
            if excess <= 0:
                return max((passed + _CELLS) * self._part - now, self._part / 1_000)
        return self._part * _CELLS

    def _add(self, record: Record, part: int, counts: list[int]) -> None:
        counts[part % _CELLS] += 1
        record.write(_COUNTS.pack(part, *counts), (part + _CELLS) * self._part)
