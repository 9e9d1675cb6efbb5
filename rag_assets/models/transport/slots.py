"""A semaphore for tasks of several event loops, in several threads."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from rag_assets.common.errors import DeadlineExceeded


class Slots:
    """A semaphore: a number of tasks hold a slot, others wait in order of arrival.

    asyncio.Semaphore belongs to one loop, and threading.Semaphore would block it.

    Args:
        count: number of slots.
    """

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._free = count
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def hold(self, patience: float) -> AsyncIterator[None]:
        """Hold a slot for the time of the block.

        Args:
            patience: longest wait, in seconds.

        Raises:
            DeadlineExceeded: none became free in time.
        """
        await self._acquire(patience)
        try:
            yield
        finally:
            with self._lock:
                self._hand_on()

    async def _acquire(self, patience: float) -> None:
        with self._lock:
            if self._free:
                self._free -= 1
                return
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
        try:
            async with asyncio.timeout(patience):
                await turn
        except BaseException as error:
            with self._lock:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                else:  # it was handed over at the same moment
                    self._hand_on()
            if isinstance(error, TimeoutError):
                raise DeadlineExceeded("no call in progress ended in time") from None
            raise

    def _hand_on(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            try:
                turn.get_loop().call_soon_threadsafe(_give, turn)
            except RuntimeError:  # its loop was closed while it waited
                continue
            return
        self._free += 1


def _give(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)
