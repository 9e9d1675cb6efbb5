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

_WAYS = 8
_HEAD = struct.Struct("<16sd")
_NOBODY = bytes(16)


@dataclass(frozen=True, slots=True)
class Record:
    """The record of a key while it is locked for other processes.

    Attributes:
        digest: digest of the key.
        start, end: location of the record in the memory; a new record may replace another record
            there.
        is_there: whether the record exists: it was written and has not expired.
    """

    memory: mmap.mmap
    digest: bytes
    start: int
    end: int
    is_there: bool

    def read(self) -> bytes:
        """Return the data written last; zeros if the record does not exist."""
        start = self.start + _HEAD.size
        return self.memory[start : self.end] if self.is_there else bytes(self.end - start)

    def write(self, data: bytes, until: float) -> None:
        """Write the record, which then exists until that time."""
        self.memory[self.start : self.end] = _HEAD.pack(self.digest, until) + data

    def remove(self) -> None:
        """Remove the record if it exists."""
        if self.is_there:
            self.memory[self.start : self.end] = bytes(self.end - self.start)


class SharedTable:
    """Records by key, shared with every process that is forked after the table was created.

    The table has a fixed size. Each key can be stored in eight slots; if all are occupied, the
    record that expires first is replaced. Locks of a killed process are released. The locks do not
    work between threads of the same process, so use the table in only one thread.

    Args:
        records: number of records for which memory is reserved.
        size: size of a record in bytes.
    """

    def __init__(self, records: int, size: int) -> None:
        self._groups = -(-records // _WAYS)
        self._stride = _HEAD.size + size
        # Pages of this mapping use no physical memory until a record is written to them.
        self._memory = mmap.mmap(-1, self._groups * _WAYS * self._stride)
        self._locks, path = tempfile.mkstemp()
        os.unlink(path)  # noqa: PTH108  (it stays open as long as the table is there)
        weakref.finalize(self, os.close, self._locks)
        # Because of the salt, nobody can choose keys that fall into the same slots.
        self._salt = secrets.token_bytes(16)

    @contextmanager
    def locked(self, key: bytes, now: float) -> Iterator[Record]:
        """Lock the record of a key for all other processes, and yield it."""
        digest = blake2b(key, digest_size=16, key=self._salt).digest()
        group = int.from_bytes(digest[:8], "little") % self._groups
        fcntl.lockf(self._locks, fcntl.LOCK_EX, 1, group)
        try:
            yield self._record(group, digest, now)
        finally:
            fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, group)

    def _record(self, group: int, digest: bytes, now: float) -> Record:
        memory, stride = self._memory, self._stride
        first = group * _WAYS * stride
        oldest, at = float("inf"), first
        for start in range(first, first + _WAYS * stride, stride):
            found, until = _HEAD.unpack_from(memory, start)
            if found == digest:
                return Record(memory, digest, start, start + stride, until > now)
            if found == _NOBODY:
                until = float("-inf")
            if until < oldest:
                oldest, at = until, start
        return Record(memory, digest, at, at + stride, is_there=False)


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


_RATE = re.compile(r"([1-9]\d{0,5}|1000000)\s*(?:/|per)\s*(second|minute|hour|day)s?", re.ASCII)
_SECONDS = {"second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}


class TooManyRequests(RagAssetsError):
    """A token made more requests than its rate allows.

    Args:
        retry_after: seconds until the next request is accepted.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "the token has made too many requests", hint=f"try again in {retry_after} s"
        )
        self.retry_after = retry_after


class TooManyAttempts(RagAssetsError):
    """An address sent too many requests without a valid token.

    Args:
        retry_after: seconds until a request is checked again.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(
            "too many requests without a valid token came from this address",
            hint=f"try again in {retry_after} s, with a token",
        )
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Rate:
    """A maximum number of requests in any period of a number of seconds."""

    requests: int
    seconds: float

    @classmethod
    def parse(cls, text: str, name: str = "RAG_ASSETS_SERVICE_RATE") -> Rate:
        """Parse a rate such as 600/minute.

        Args:
            text: the rate.
            name: name of the setting.

        Raises:
            ConfigurationError: the text is not a rate.
        """
        found = _RATE.fullmatch(text.strip())
        if found is None:
            raise ConfigurationError(
                f"{name} is not a rate: {text}",
                hint=(
                    "use a format such as 600/minute: at most 1000000 per second, minute, hour "
                    "or day"
                ),
            )
        return cls(int(found[1]), _SECONDS[found[2]])


class Rates:
    """The rate limit of each token.

    Args:
        windows: the windows in which requests are counted.
    """

    def __init__(self, windows: SharedWindows) -> None:
        self._windows = windows

    def take(self, name: str, events: int = 1) -> None:
        """Count requests, or other events with a rate limit.

        Args:
            name: name of the token.
            events: number of events, counted together.

        Raises:
            TooManyRequests: the rate is exceeded.
        """
        if wait := self._windows.take(name.encode("utf-8", "surrogatepass"), events):
            raise TooManyRequests(max(1, math.ceil(wait)))


_MAX_TOKENS = 100_000
_MAX_ADDRESSES = 8_192
_MAX_KNOWN = 10_000


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """Counts shared by all processes that are forked after their creation.

    Attributes:
        rates: requests of each token.
        written: records that each token writes.
        attempts: requests of each address without a valid token.
        known: tokens that were valid recently; a record contains only its expiry.
    """

    rates: Rates
    written: Rates
    attempts: SharedWindows
    known: SharedTable

    @classmethod
    def of(
        cls, settings: ServiceSettings, clock: Callable[[], float] = time.monotonic
    ) -> SharedLimits:
        """Create empty counts with the limits of the settings."""
        rate, attempts, written = settings.rate, settings.attempts, settings.write_rate
        return cls(
            Rates(SharedWindows(rate.requests, rate.seconds, _MAX_TOKENS, clock)),
            Rates(SharedWindows(written.requests, written.seconds, _MAX_TOKENS, clock)),
            SharedWindows(attempts.requests, attempts.seconds, _MAX_ADDRESSES, clock),
            SharedTable(_MAX_KNOWN, 0),
        )
