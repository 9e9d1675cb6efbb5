"""The server of a worker process."""

from __future__ import annotations

import asyncio
import socket

import uvicorn


class WorkerServer(uvicorn.Server):
    """A server that notifies its supervisor when it is ready, and ends with the supervisor.

    Args:
        config: see server.config.
        line: socket to the supervisor; see supervisor.Work.
    """

    def __init__(self, config: uvicorn.Config, line: socket.socket) -> None:
        super().__init__(config)
        self._line = line

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and notify the supervisor."""
        await super().startup(sockets)
        self._line.setblocking(False)
        self._line.send(b".")
        asyncio.get_running_loop().add_reader(self._line, self._end)

    def _end(self) -> None:
        asyncio.get_running_loop().remove_reader(self._line)
        self.should_exit = True
