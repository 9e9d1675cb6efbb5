"""Clients of a server, one for each event loop, since connections belong to an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary


class Client(Protocol):
    """Holds the connections of one event loop."""

    async def close(self) -> None:
        """Close the connections."""
        ...


ClientT = TypeVar("ClientT", bound=Client)


@dataclass(slots=True)
class _Opened(Generic[ClientT]):
    client: ClientT
    users: int = 0
    wanted: bool = True


class LoopClients(Generic[ClientT]):
    """Opens an event loop's client when it is first used, and closes it when it is no longer used.

    Args:
        connect: creates a client.
        module: module that its requests need and that is slow to import; None without such a
            module.
    """

    def __init__(self, connect: Callable[[], ClientT], module: str | None = None) -> None:
        self._connect = connect
        self._unloaded = module
        self._lock = threading.Lock()
        # Weak references: a loop that ended without closing its client does not keep the client
        # alive.
        self._opened: WeakKeyDictionary[asyncio.AbstractEventLoop, _Opened[ClientT]] = (
            WeakKeyDictionary()
        )

    async def load(self) -> None:
        """Import the modules that requests need, outside their time limits and the event loop.

        An SDK takes seconds to import on a busy machine.
        """
        if self._unloaded is not None:
            await asyncio.to_thread(import_module, self._unloaded)
            self._unloaded = None

    @asynccontextmanager
    async def use(self) -> AsyncIterator[ClientT]:
        """Yield this event loop's client, which stays open for the block."""
        loop = asyncio.get_running_loop()
        with self._lock:
            opened = self._opened.get(loop)
            if opened is None:
                opened = self._opened[loop] = _Opened(self._connect())
        opened.users += 1
        try:
            yield opened.client
        finally:
            opened.users -= 1
            if not opened.users and not opened.wanted:
                await opened.client.close()

    async def close(self) -> None:
        """Close this event loop's client: now, or as soon as no request uses it."""
        with self._lock:
            opened = self._opened.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            opened.wanted = False
            if not opened.users:
                await opened.client.close()
