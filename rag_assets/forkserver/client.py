"""The client of the fork server: run a command, or a child process with pipes, in a fork.

A command runs in the fork as if this process ran it. The fork gets this process's arguments,
environment, working folder and descriptors, so it uses the same terminal, file or pipe. Signals are
passed on, and this process exits as the fork does. If no fork server answers, the caller does the
work itself.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import BinaryIO, Self

from rag_assets.forkserver.protocol import (
    COMMAND,
    SOCKET,
    Replies,
    Request,
    Stream,
    connect,
    send_request,
    send_start_signal,
)

DISABLED = "RAG_ASSETS_FORK_SERVER"
"""Environment variable that disables the fork server if it is "0"."""
_CONNECT_SECONDS = 2.0
_FORWARDED_SIGNALS = (
    *("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"),
)
_REPEATED_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGPIPE")


def run_command(home: str, arguments: Sequence[str]) -> int | None:
    """Run a command in a fork and wait for it.

    Returns:
        the exit code of the command; None if no fork server can run it, in which case no work was
        done.
    """
    if os.environ.get(DISABLED) == "0" or not hasattr(signal, "pidfd_send_signal"):
        return None
    connection = _connect(_get_socket_path(home))
    if connection is None:
        return None
    with connection:
        replies = Replies(connection)
        try:
            _send_command(connection, arguments)
            child = os.pidfd_open(replies.read_pid())
        except (OSError, ValueError, KeyError):
            return None
        return _wait_for_command(connection, replies, child)


def start_fork(
    home: str,
    kind: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    on_start: Callable[[int], None] | None = None,
    *,
    descriptors: Sequence[int] = (),
) -> socket.socket | None:
    """Start a fork that may outlive this process.

    Args:
        kind: RUN or SYNC.
        on_start: called with the fork's pid before its work starts.
        descriptors: descriptors for the fork, as many as `kind` requires; they also remain open
            here.

    Returns:
        the connection, which closes when the fork ends; None if no fork server can execute the
        request, in which case no work was done.
    """
    connection = None if environment.get(DISABLED) == "0" else _connect(_get_socket_path(home))
    if connection is None:
        return None
    try:
        request = Request(kind, list(arguments), dict(environment), _get_umask())
        send_request(connection, request, descriptors)
        pid = Replies(connection).read_pid()
        if on_start is not None:
            on_start(pid)
        connection.settimeout(None)
        send_start_signal(connection)
    except (OSError, ValueError, KeyError):
        connection.close()
        return None
    except BaseException:
        connection.close()  # When the connection closes, the fork exits without doing any work.
        raise
    return connection


def _get_socket_path(home: str) -> str:
    return os.path.join(home, SOCKET)  # noqa: PTH118


def _get_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _connect(path: str) -> socket.socket | None:
    try:
        return connect(path, _CONNECT_SECONDS)
    except (OSError, ValueError):
        return None


def _send_command(connection: socket.socket, arguments: Sequence[str]) -> None:
    streams = [
        Stream(s.encoding, s.errors or "strict", bool(s.line_buffering), s.write_through)  # type: ignore[union-attr]
        for s in (sys.stdin, sys.stdout, sys.stderr)
    ]
    ignored = [number for number in signal.valid_signals() if _is_ignored(number)]
    request = Request(COMMAND, list(arguments), dict(os.environ), _get_umask(), streams, ignored)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        send_request(connection, request, [folder, 0, 1, 2])
    finally:
        os.close(folder)


def _is_ignored(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _wait_for_command(connection: socket.socket, replies: Replies, child: int) -> int:
    """Let the fork start, and pass signals on to it; when it ends, return its exit code.

    If a signal ended the fork, this process ends by the same signal.
    """

    def forward(number: int, _frame: FrameType | None) -> None:
        _send_signal(child, number)

    def pause(_number: int, _frame: FrameType | None) -> None:
        _send_signal(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)

    for name in _FORWARDED_SIGNALS:
        number = getattr(signal, name)
        if not _is_ignored(number):
            signal.signal(number, forward)
    signal.signal(signal.SIGTSTP, pause)
    connection.settimeout(None)
    try:
        with _watch_signals() as signals:
            send_start_signal(connection)
            _wait_for_reply(connection, signals)
        end = replies.read_next()
    except (OSError, ValueError):
        end = {}
    if "exit" in end:
        return int(end["exit"])
    return _end_by_signal(int(end.get("signal", signal.SIGKILL)))


@contextmanager
def _watch_signals() -> Iterator[int]:
    """Yield a descriptor that becomes readable with every signal.

    Python runs a signal handler only after a system call returns, and a signal that arrives right
    before the call does not interrupt it.
    """
    read_end, write_end = os.pipe()
    for descriptor in (read_end, write_end):
        os.set_blocking(descriptor, False)
    before = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield read_end
    finally:
        signal.set_wakeup_fd(before)
        os.close(read_end)
        os.close(write_end)


def _wait_for_reply(connection: socket.socket, signals: int) -> None:
    """Wait until the connection is readable; meanwhile, let Python run signal handlers."""
    poll = select.poll()
    for descriptor in (connection.fileno(), signals):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if connection.fileno() in ready:
            return
        os.read(signals, 4096)


def _send_signal(child: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(child, number)


def _end_by_signal(number: int) -> int:
    """End this process by the signal that ended the fork.

    If the signal would leave a core dump, do not end the process, but return the exit code that
    stands for the signal.
    """
    if number in {getattr(signal, name) for name in _REPEATED_SIGNALS}:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.stderr.write(f"error: the command was ended by {signal.Signals(number).name}\n")
    return 128 + number


_PIPE_STREAM = Stream("utf-8", "surrogateescape", line_buffering=False, write_through=False)


class ForkedProcess:
    """A fork that ends when this process ends or this handle is closed.

    Attributes:
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
        """Start a fork with pipes to its standard input and output.

        Args:
            folder: working folder of the fork.
            error: descriptor for the fork's standard error; by default, its standard error is
                discarded.

        Returns:
            The fork; None if no server can execute the request, in which case no work was done.
        """
        connection = _connect(path)
        if connection is None:
            return None
        (its_input, our_output), (our_input, its_output) = os.pipe(), os.pipe()
        null = os.open(os.devnull, os.O_RDWR)
        folder_descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        request = Request(COMMAND, list(arguments), dict(environment), 0o077, [_PIPE_STREAM] * 3)
        replies = Replies(connection)
        try:
            its_error = null if error is None else error
            send_request(connection, request, [folder_descriptor, its_input, its_output, its_error])
            process = cls(connection, replies, replies.read_pid(), (our_output, our_input))
            connection.settimeout(None)
            send_start_signal(connection)
        except (OSError, ValueError, KeyError):
            connection.close()
            for descriptor in (our_output, our_input):
                with suppress(OSError):
                    os.close(descriptor)
            return None
        finally:
            for descriptor in (its_input, its_output, null, folder_descriptor):
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
        _send_signal(self._descriptor, signal.SIGKILL)

    def interrupt(self) -> None:
        """Interrupt the process, as Ctrl-C would."""
        _send_signal(self._descriptor, signal.SIGINT)

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
            end = self._replies.read_next()
        except (OSError, ValueError):
            end = {}
        self.returncode = int(end.get("exit", -end.get("signal", signal.SIGKILL)))
        return True
