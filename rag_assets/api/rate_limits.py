"""Rate limits, which all workers of a service share."""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import re
import secrets
import struct
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

from rag_assets.common.errors import ConfigurationError, RagAssetsError

if TYPE_CHECKING:
    from rag_assets.api.settings import ServiceSettings

_SLOTS_PER_KEY = 8
_HEAD = struct.Struct("<16sd")
_EMPTY = bytes(16)


@dataclass(frozen=True, slots=True)
class LockedRecord:
    """A record of a SharedTable, while other processes cannot access it.

    Attributes:
        start, end: offsets of the record's slot in `memory`; writing replaces any other record in
            the slot.
        is_live: whether the record was written and has not expired.
    """

    memory: mmap.mmap
    digest: bytes
    start: int
    end: int
    is_live: bool

    def read(self) -> bytes:
        """Return the data of the record; zeros if it is not live."""
        start = self.start + _HEAD.size
        return self.memory[start : self.end] if self.is_live else bytes(self.end - start)

    def write(self, data: bytes, until: float) -> None:
        """Write the record, which expires at `until`."""
        self.memory[self.start : self.end] = _HEAD.pack(self.digest, until) + data

    def remove(self) -> None:
        """Remove the record if it is live."""
        if self.is_live:
            self.memory[self.start : self.end] = bytes(self.end - self.start)


class SharedTable:
    """A table of records by key, shared with all processes that are forked after its creation.

    The table has a fixed size. Each key has eight possible slots; if all are occupied, the record
    that expires first is replaced. Locks of a killed process are released. Locks do not work
    between threads, so use the table in one thread of a process.

    Args:
        records: number of records for which memory is reserved.
    """

    def __init__(self, records: int, size: int) -> None:
        self._groups = -(-records // _SLOTS_PER_KEY)
        self._stride = _HEAD.size + size
        # Pages of this mapping use no physical memory until a record is written to them.
        self._memory = mmap.mmap(-1, self._groups * _SLOTS_PER_KEY * self._stride)
        self._locks, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108  (it stays open as long as the table exists)
        weakref.finalize(self, os.close, self._locks)
        # The salt prevents attackers from choosing keys for the same slots.
        self._salt = secrets.token_bytes(16)

    @contextmanager
    def lock(self, key: bytes, now: float) -> Iterator[LockedRecord]:
        """Lock the record of a key for all other processes, and yield the record.

        Args:
            now: current time in seconds, after which a live record must expire.
        """
        digest = blake2b(key, digest_size=16, key=self._salt).digest()
        group = int.from_bytes(digest[:8], "little") % self._groups
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, group)
        try:
            yield self._find_record(group, digest, now)
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, group)

    def _find_record(self, group: int, digest: bytes, now: float) -> LockedRecord:
        memory, stride = self._memory, self._stride
        first = group * _SLOTS_PER_KEY * stride
        oldest, at = float("inf"), first
        for start in range(first, first + _SLOTS_PER_KEY * stride, stride):
            stored_digest, until = _HEAD.unpack_from(memory, start)
            if stored_digest == digest:
                return LockedRecord(memory, digest, start, start + stride, until > now)
            if stored_digest == _EMPTY:
                until = float("-inf")
            if until < oldest:
                oldest, at = until, start
        return LockedRecord(memory, digest, at, at + stride, is_live=False)


_PARTS_PER_WINDOW = 60
_STORED_PARTS = _PARTS_PER_WINDOW + 1
"""Number of stored parts: a whole window, and the current part."""
_RECORD = struct.Struct(f"<{_STORED_PARTS}d{_STORED_PARTS}I")


class SharedWindows:
    """A limit on the number of events per key in any window of `seconds` seconds.

    A window is divided into sixty parts. The events of a part expire together with its last event,
    so an event counts at most a sixtieth of a window too long.

    Args:
        limit: maximum events in a window, less than 2³².
        seconds: length of a window.
        keys: maximum number of keys; above it, the least recently used keys are dropped.
        clock: returns the current time in seconds, the same for all processes.
    """

    def __init__(
        self, limit: int, seconds: float, keys: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._table = SharedTable(keys, _RECORD.size)

    def take(self, key: bytes, events: int = 1) -> float:
        """Count events of a key if the limit is not reached yet, and return 0.

        If the limit is reached, count nothing, and return the seconds until the next event is
        allowed. Several events of one call may exceed the limit.
        """
        now = self._clock()
        with self._table.lock(key, now) as record:
            if wait := self._compute_wait_seconds(record, now):
                return wait
            self._add(record, now, events)
        return 0.0

    def count(self, key: bytes) -> None:
        """Count an event, even above the limit."""
        now = self._clock()
        with self._table.lock(key, now) as record:
            self._add(record, now)

    def get_wait_seconds(self, key: bytes) -> float:
        """Return the seconds until the next event is allowed; 0 if it is allowed now."""
        now = self._clock()
        with self._table.lock(key, now) as record:
            return self._compute_wait_seconds(record, now)

    def _compute_wait_seconds(self, record: LockedRecord, now: float) -> float:
        if not record.is_live:
            return 0.0
        times, counts = _unpack_parts(record)
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

    def _add(self, record: LockedRecord, now: float, events: int = 1) -> None:
        times, counts = _unpack_parts(record)
        part = self._compute_part_number(now)
        cell = part % _STORED_PARTS
        counts[cell] = (
            counts[cell] + events if self._compute_part_number(times[cell]) == part else events
        )
        # Another process may have read the clock later, but written first.
        times[cell] = max(times[cell], now)
        record.write(_RECORD.pack(*times, *counts), now + self._seconds)

    def _compute_part_number(self, at: float) -> int:
        return int(at * _PARTS_PER_WINDOW / self._seconds)


def _unpack_parts(record: LockedRecord) -> tuple[list[float], list[int]]:
    """Return the time of the last event in each part, and the number of events in each part."""
    values = _RECORD.unpack(record.read())
    return [*values[:_STORED_PARTS]], [*values[_STORED_PARTS:]]


_RATE_PATTERN = re.compile(
    r"([1-9]\d{0,5}|1000000)\s*(?:/|per)\s*(second|minute|hour|day)s?", re.ASCII
)
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}


class RetryLater(RagAssetsError):
    """The request is refused now, and may be repeated after some seconds."""

    def __init__(self, message: str, retry_after: int, advice: str = "") -> None:
        super().__init__(message, hint=f"try again in {retry_after} s{advice}")
        self.retry_after = retry_after


class TooManyRequests(RetryLater):
    """The token made more requests than its rate allows."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("this token has made too many requests", retry_after)


class TooManyAttempts(RetryLater):
    """The address sent too many requests without a valid token."""

    def __init__(self, retry_after: int) -> None:
        message = "too many requests without a valid token came from this address"
        super().__init__(message, retry_after, ", with a token")


@dataclass(frozen=True, slots=True)
class Rate:
    """A maximum number of requests in any period of `seconds` seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str, name: str = "RAG_ASSETS_SERVICE_RATE") -> Rate:
        """Parse a rate such as 600/minute."""
        match = _RATE_PATTERN.fullmatch(text.strip())
        if match is None:
            raise ConfigurationError(
                f"{name} is not a rate: {text}",
                hint="use a format such as 600/minute: at most 1000000 per second, minute, hour"
                " or day",
            )
        return cls(int(match[1]), _SECONDS[match[2]])


class Rates:
    """The rate limit of each token."""

    def __init__(self, windows: SharedWindows) -> None:
        self._windows = windows

    def take(self, name: str, events: int = 1) -> None:
        """Count requests of a token, or other events, if its rate limit is not reached yet."""
        if wait := self._windows.take(name.encode("utf-8", "surrogatepass"), events):
            raise TooManyRequests(max(1, math.ceil(wait)))


_MAX_TOKENS = 100_000
_MAX_ADDRESSES = 8_192
_MAX_KNOWN_TOKENS = 10_000


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Counts shared by all processes that are forked after their creation.

    Attributes:
        rates: requests of each token.
        written: records that each token writes.
        attempts: requests of each address without a valid token.
        known: tokens that were valid recently; their records have no data.
    """

    rates: Rates
    written: Rates
    attempts: SharedWindows
    known: SharedTable

    @classmethod
    def from_settings(
        cls, settings: ServiceSettings, clock: Callable[[], float] = time.monotonic
    ) -> SharedLimits:
        """Create the limits that the settings define, with all counts at zero."""
        rate, attempts, written = settings.rate, settings.attempts, settings.write_rate
        return cls(
            Rates(SharedWindows(rate.requests, rate.seconds, _MAX_TOKENS, clock)),
            Rates(SharedWindows(written.requests, written.seconds, _MAX_TOKENS, clock)),
            SharedWindows(attempts.requests, attempts.seconds, _MAX_ADDRESSES, clock),
            SharedTable(_MAX_KNOWN_TOKENS, 0),
        )
