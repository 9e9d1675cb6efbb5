"""A semaphore for tasks of several event loops, in several threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rag_assets.common.errors import DeadlineExceeded


class Slots:
    """A semaphore: a fixed number of tasks hold slots, and others wait in order of arrival.

    asyncio.Semaphore belongs to a single event loop, and threading.Semaphore would block the loop.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def hold(self, seconds: float) -> AsyncIterator[None]:
        """Hold a slot while the block runs.

        Args:
            seconds: maximum seconds to wait for a slot.

        Raises:
            DeadlineExceeded: no slot became free in time.
        """
        await self._acquire(seconds)
        try:
            yield
        finally:
            with self._lock:
                self._release()

    async def _acquire(self, seconds: float) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter
        except BaseException as error:
            with self._lock:
                if waiter in self._waiting:
                    self._waiting.remove(waiter)
                else:  # the slot was handed over at the same moment
                    self._release()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("no call in progress ended in time") from None
            raise

    def _release(self) -> None:
        while self._waiting:
            waiter = self._waiting.popleft()
            try:
                waiter.get_loop().call_soon_threadsafe(_grant, waiter)
            except RuntimeError:  # the waiting task's event loop was closed
                continue
            return
        self._free += 1


def _grant(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
