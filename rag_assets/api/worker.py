"""A server that is one of several workers."""

from __future__ import annotations

import asyncio
import socket

import uvicorn


class WorkerServer(uvicorn.Server):
    """A server that tells its supervisor when it answers, and ends with it.

    Args:
        config: see server.config.
        line: to the supervisor; see supervisor.Work.
    """

    def __init__(self, config: uvicorn.Config, line: socket.socket) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        self._line.setblocking(False)
        self._line.send(b".")
        asyncio.get_running_loop().add_reader(self._line, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._line)
        self.should_exit = True
