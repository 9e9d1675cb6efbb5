"""Stores vectors in groups while further vectors are computed."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

import numpy as np

from rag_assets.models.embedding.protocol import SpooledCall, Vectors

Keep: TypeAlias = Callable[[Sequence[str], Vectors], None]


class VectorBuffer:
    """Collects vectors and stores them in groups, one group at a time, in a thread.

    A group is written when it is full, or when its first vector has waited long enough. So a crash
    costs only seconds of work, and the lake gets few, large appends.

    Args:
        keep: writes a group; it may block, and is never called concurrently.
        group_size: maximum number of vectors in a group.
        seconds: maximum time that a vector waits before its group is written.
    """

    def __init__(self, keep: Keep, *, group_size: int, seconds: float) -> None:
        self._keep = keep
        self._group_size = group_size
        self._seconds = seconds
        self._keys: list[str] = []
        self._vectors: list[Vectors] = []
        self._since = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._spooled: deque[tuple[SpooledCall, int]] = deque()
        self._failed = False
        self._added = 0
        self.kept = 0

    @property
    def behind(self) -> bool:
        """Return whether vectors arrive faster than they are stored.

        That is so if a full group has to wait until another group is written.
        """
        return self._writing is not None and len(self._keys) >= self._group_size

    @property
    def tasks(self) -> set[asyncio.Task[None]]:
        """Return the write in progress, if any."""
        return set() if self._writing is None else {self._writing}

    def add(
        self, keys: Sequence[str], vectors: Vectors, spooled: SpooledCall | None = None
    ) -> None:
        """Add vectors of shape (len(keys), dimensions).

        Args:
            spooled: space that keeps them until they are written.
        """
        if spooled is not None:
            with suppress(OSError):  # They will still be written, unless this process dies.
                spooled.fill(keys, vectors)
            self._spooled.append((spooled, self._added + len(keys)))
        self._added += len(keys)
        if not self._keys:
            self._since = time.monotonic()
        self._keys.extend(keys)
        self._vectors.append(vectors)

    def start_if_due(self) -> float | None:
        """Start to write a group if it is due.

        Returns:
            Seconds until the next group is due because of its age; None if that is not known
                yet.
        """
        if self._writing is not None or not self._keys:
            return None
        wait = self._since + self._seconds - time.monotonic()
        if len(self._keys) < self._group_size and wait > 0:
            return wait
        self._start()
        return None

    def finish(self) -> None:
        """Process a completed write; raise its error, if any."""
        if self._writing is not None and self._writing.done():
            writing, self._writing = self._writing, None
            writing.result()

    async def drain(self) -> None:
        """Write all waiting vectors, but stop at the first failure."""
        while (self._writing is not None or self._keys) and not self._failed:
            if self._writing is None:
                self._start()
            await asyncio.wait(self.tasks)
            self.finish()

    def _start(self) -> None:
        vectors = np.concatenate(self._vectors)
        size = self._group_size
        self._writing = asyncio.create_task(self._write(self._keys[:size], vectors[:size]))
        self._keys = self._keys[size:]
        self._vectors = [vectors[size:]] if self._keys else []
        self._since = time.monotonic()

    async def _write(self, keys: Sequence[str], vectors: Vectors) -> None:
        try:
            await asyncio.to_thread(self._keep, keys, vectors)
        except BaseException:
            self._failed = True
            raise
        self.kept += len(keys)
        while self._spooled and self._spooled[0][1] <= self.kept:
            self._spooled.popleft()[0].release()
