"""A table of records in memory, shared by forked processes."""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import struct
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

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
