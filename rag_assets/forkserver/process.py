"""A fork as a child process with pipes, like subprocess.Popen."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import BinaryIO, Self

from rag_assets.forkserver.protocol import (
    COMMAND,
    Replies,
    Request,
    Stream,
    confirm,
    connect,
    send_request,
)

_CONNECT_SECONDS = 2.0
_STREAM = Stream("utf-8", "surrogateescape", line_buffering=False, write_through=False)


class ForkedProcess:
    """A fork that ends when this process ends or this handle is closed.

    Attributes:
        pid: process id of the fork.
        stdin, stdout: pipes to and from the fork.
        returncode: exit code of the fork, or the negative number of the signal that ended it; None
            while it runs.
    """

    def __init__(
        self, connection: socket.socket, replies: Replies, pid: int, pipes: tuple[int, int]
    ) -> None:
        self.pid = pid
        self.stdin: BinaryIO = os.fdopen(pipes[0], "wb")
        self.stdout: BinaryIO = os.fdopen(pipes[1], "rb")
        self.returncode: int | None = None
        self._connection = connection
        self._replies = replies
        self._descriptor = os.pidfd_open(pid)

    @classmethod
    def start(
        cls,
        path: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        folder: str,
        *,
        error: int | None = None,
    ) -> Self | None:
        """Start a fork.

        Args:
            path: path of the fork server's socket.
            arguments: arguments of the request.
            environment: environment of the fork.
            folder: working folder of the fork.
            error: descriptor for the fork's standard error; by default, its standard error is
                discarded.

        Returns:
            None if no server can execute the request, in which case no work was done.
        """
        try:
            connection = connect(path, _CONNECT_SECONDS)
        except (OSError, ValueError):
            return None
        (its_input, our_output), (our_input, its_output) = os.pipe(), os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        request = Request(COMMAND, list(arguments), dict(environment), 0o077, [_STREAM] * 3)
        replies = Replies(connection)
        try:
            its_error = null if error is None else error
            send_request(connection, request, [opened, its_input, its_output, its_error])
            process = cls(connection, replies, replies.pid(), (our_output, our_input))
            connection.settimeout(None)
            confirm(connection)
        except (OSError, ValueError, KeyError):
            connection.close()
            for descriptor in (our_output, our_input):
                with suppress(OSError):
                    os.close(descriptor)
            return None
        finally:
            for descriptor in (its_input, its_output, null, opened):
                os.close(descriptor)
        return process

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        return self.returncode if self._has_ended(0) else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process ends, and return the exit code.

        Raises:
            TimeoutError: the process still runs.
        """
        if not self._has_ended(None if timeout is None else timeout * 1_000):
            raise TimeoutError(f"process {self.pid} is still running after {timeout} s")
        assert self.returncode is not None  # noqa: S101 - it has ended
        return self.returncode

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)

    def interrupt(self) -> None:
        """Interrupt the process, as Ctrl-C would."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._descriptor, signal.SIGINT)

    def close(self) -> None:
        """Release the resources of an ended process."""
        os.close(self._descriptor)
        self._connection.close()

    def _has_ended(self, timeout: float | None) -> bool:
        if self.returncode is not None:
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLIN)
        if not poll.poll(timeout):
            return False
        try:
            end = self._replies.next()
        except (OSError, ValueError):
            end = {}
        self.returncode = int(end.get("exit", -end.get("signal", signal.SIGKILL)))
        return True
