"""The client of the fork server, which runs a command in a fork as if this process ran it.

The fork gets this process's arguments, environment, working folder and descriptors, so it uses the
same terminal, file or pipe. Signals are passed on, and this process exits as the fork does. If no
fork server answers, the caller does the work itself.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from rag_assets.forkserver.protocol import (
    COMMAND,
    SOCKET,
    Replies,
    Request,
    Stream,
    confirm,
    connect,
    send_request,
)

DISABLED = "RAG_ASSETS_FORK_SERVER"
"""Environment variable that disables the fork server if it is "0"."""
_CONNECT_SECONDS = 2.0
_PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT")
_TAKEN_OVER = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGPIPE")


def run_command(home: str, arguments: Sequence[str]) -> int | None:
    """Run a command in a fork and wait for it.

    Returns:
        the exit code of the command; None if no fork server can run it, in which case no work was
        done.
    """
    if os.environ.get(DISABLED) == "0" or not hasattr(signal, "pidfd_send_signal"):
        return None
    try:
        connection = connect(_socket_in(home), _CONNECT_SECONDS)
    except (OSError, ValueError):
        return None
    with connection:
        return _run(connection, arguments)


def start(
    home: str,
    kind: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    started: Callable[[int], None] | None = None,
    *,
    descriptors: Sequence[int] = (),
) -> socket.socket | None:
    """Start a fork that may outlive this process.

    Args:
        home: the installation's folder.
        kind: RUN or SYNC.
        arguments: arguments of the request.
        environment: environment of the fork.
        started: called with the fork's pid before its work starts.
        descriptors: descriptors for the fork, as many as `kind` requires; they also remain open
            here.

    Returns:
        the connection, which closes when the fork ends; None if no fork server can execute the
        request, in which case no work was done.
    """
    if environment.get(DISABLED) == "0":
        return None
    try:
        connection = connect(_socket_in(home), _CONNECT_SECONDS)
    except (OSError, ValueError):
        return None
    try:
        request = Request(kind, list(arguments), dict(environment), _umask())
        send_request(connection, request, descriptors)
        pid = Replies(connection).pid()
        if started is not None:
            started(pid)
        connection.settimeout(None)
        confirm(connection)
    except (OSError, ValueError, KeyError):
        connection.close()
        return None
    except BaseException:
        connection.close()  # When the connection closes, the fork exits without doing any work.
        raise
    return connection


def _socket_in(home: str) -> str:
    return os.path.join(home, SOCKET)  # noqa: PTH118


def _umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _run(connection: socket.socket, arguments: Sequence[str]) -> int | None:
    replies = Replies(connection)
    try:
        _send(connection, arguments)
        child = os.pidfd_open(replies.pid())
    except (OSError, ValueError, KeyError):
        return None
    return _wait(connection, replies, child)


def _send(connection: socket.socket, arguments: Sequence[str]) -> None:
    streams = [
        Stream(s.encoding, s.errors or "strict", bool(s.line_buffering), s.write_through)  # type: ignore[union-attr]
        for s in (sys.stdin, sys.stdout, sys.stderr)
    ]
    ignored = [number for number in signal.valid_signals() if _is_ignored(number)]
    request = Request(COMMAND, list(arguments), dict(os.environ), _umask(), streams, ignored)
    folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        send_request(connection, request, [folder, 0, 1, 2])
    finally:
        os.close(folder)


def _is_ignored(number: int) -> bool:
    return signal.getsignal(number) is signal.SIG_IGN


def _wait(connection: socket.socket, replies: Replies, child: int) -> int:
    """Let the fork start, and pass signals on to it until it has ended."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        _signal(child, number)

    def pause(_number: int, _frame: FrameType | None) -> None:
        _signal(child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)

    for name in _PASSED_ON:
        number = getattr(signal, name)
        if not _is_ignored(number):
            signal.signal(number, pass_on)
    signal.signal(signal.SIGTSTP, pause)
    connection.settimeout(None)
    try:
        with _signals_seen() as signals:
            confirm(connection)
            _await(connection, signals)
        end = replies.next()
    except (OSError, ValueError):
        end = {}
    if "exit" in end:
        return int(end["exit"])
    return _end_by_signal(int(end.get("signal", signal.SIGKILL)))


@contextmanager
def _signals_seen() -> Iterator[int]:
    """Yield a descriptor that becomes readable with every signal.

    Python runs a signal handler only after a system call returns, and a signal that arrives right
    before the call does not interrupt it.
    """
    seen, written = os.pipe()
    for descriptor in (seen, written):
        os.set_blocking(descriptor, False)
    before = signal.set_wakeup_fd(written, warn_on_full_buffer=False)
    try:
        yield seen
    finally:
        signal.set_wakeup_fd(before)
        os.close(seen)
        os.close(written)


def _await(connection: socket.socket, signals: int) -> None:
    """Wait until the connection is readable; run signal handlers meanwhile."""
    poll = select.poll()
    for descriptor in (connection.fileno(), signals):
        poll.register(descriptor, select.POLLIN)
    while True:
        ready = [descriptor for descriptor, _ in poll.poll()]
        if connection.fileno() in ready:
            return
        os.read(signals, 4096)


def _signal(child: int, number: int) -> None:
    try:
        signal.pidfd_send_signal(child, number)
    except ProcessLookupError:
        return


def _end_by_signal(number: int) -> int:
    """End this process by the signal that ended the fork, unless that would leave a core dump."""
    if number in {getattr(signal, name) for name in _TAKEN_OVER}:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    sys.stderr.write(f"error: the command was ended by {signal.Signals(number).name}\n")
    return 128 + number
