"""The fork server, which listens, forks and reaps in one thread; it opens only its socket.

The fork takes over the arguments, environment and standard streams of its client. A fingerprint
shows whether the files on disk still match the imported code.
"""

from __future__ import annotations

import atexit
import io
import os
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from rag_assets.forkserver.protocol import (
    COMMAND,
    DESCRIPTORS,
    Request,
    Stream,
    get_pid_namespace,
    read_peer_user,
    receive_request,
    select_import_environment,
    send_reply,
    wait_for_start_signal,
)

_MISSING_FILE_STATE = (0, 0)
_COMPILED = "__pycache__"


class Fingerprint:
    """The state of this process's code files and folders when the object was created.

    It covers the given files, each imported module that does not belong to an installed package,
    and the file names in the folders of these modules and of installed packages. So a new module
    counts as a change.
    """

    def __init__(self, files: Iterable[Path] = ()) -> None:
        modules = {Path(file) for file in _iter_own_modules()}
        packages = {Path(path) for path in sys.path if path.endswith("-packages")}
        folders = {*(module.parent for module in modules), *packages}
        self._files = {str(path): _read_state(str(path)) for path in {*modules, *files}}
        self._folders = {str(path): _list_names(str(path)) for path in folders}

    def is_current(self) -> bool:
        """Return whether the code files are unchanged; this takes about two milliseconds."""
        return all(_read_state(path) == state for path, state in self._files.items()) and all(
            _list_names(path) == names for path, names in self._folders.items()
        )


def _iter_own_modules() -> Iterable[str]:
    installed = tuple({os.path.realpath(path) for path in (sys.prefix, sys.base_prefix)})
    for module in tuple(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not os.path.isabs(file):  # noqa: PTH117
            continue
        if not os.path.realpath(file).startswith(installed):
            yield file


def _list_names(folder: str) -> frozenset[str]:
    """Return the file names in a folder, except Python's compiled files; empty if unreadable."""
    try:
        return frozenset(os.listdir(folder)) - {_COMPILED}  # noqa: PTH208
    except OSError:
        return frozenset()


def _read_state(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116  (hundreds of them, before each command)
    except OSError:
        return _MISSING_FILE_STATE
    return status.st_mtime_ns, status.st_size


Execute = Callable[[Sequence[str]], None]
"""Executes the arguments of a request, followed by the numbers of its extra descriptors.

Returns or raises SystemExit at the end.
"""

_FLUSH_FAILED = 120
"""Python's exit code if its buffers cannot be flushed."""


def execute_request(
    request: Request, descriptors: Sequence[int], connection: socket.socket, execute: Execute
) -> NoReturn:
    """Execute a request once the client lets it start, and end the process."""
    code = 1
    try:
        if request.kind == COMMAND:
            os.setsid()
            _take_over_streams(request.streams, descriptors)
        _take_over_settings(request)
        send_reply(connection, pid=os.getpid(), namespace=get_pid_namespace())
        if not wait_for_start_signal(connection):
            os._exit(1)
        # The descriptors of a command are its standard streams, and are not arguments.
        extra = () if request.kind == COMMAND else map(str, descriptors)
        code = _shut_down(_run_to_exit_code(execute, [*request.arguments, *extra]))
        send_reply(connection, exit=code)
    except OSError:
        code = 1  # The client disconnected.
    finally:
        os._exit(code)


def _take_over_streams(streams: Sequence[Stream], descriptors: Sequence[int]) -> None:
    folder, *standard = descriptors
    os.fchdir(folder)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    opened = [_open_stream(number, stream) for number, stream in enumerate(streams)]
    sys.stdin, sys.stdout, sys.stderr = opened
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = opened  # type: ignore[misc]


def _open_stream(number: int, stream: Stream) -> io.TextIOWrapper:
    raw = io.FileIO(number, "r" if number == 0 else "w", closefd=False)
    buffer: Any = raw
    if number == 0:
        buffer = io.BufferedReader(raw)
    elif not stream.write_through:
        buffer = io.BufferedWriter(raw)
    return io.TextIOWrapper(
        buffer,
        stream.encoding,
        stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _take_over_settings(request: Request) -> None:
    os.umask(request.umask)
    os.environ.clear()
    os.environ.update(request.environment)
    time.tzset()
    for number in signal.valid_signals():
        if number in request.ignored:
            signal.signal(number, signal.SIG_IGN)


def _run_to_exit_code(execute: Execute, arguments: Sequence[str]) -> int:
    """Execute the arguments, and return the exit code that the interpreter would return."""
    try:
        execute(arguments)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def _shut_down(code: int) -> int:
    """Shut down as the interpreter does, but keep imported modules in memory.

    Return `code`, or another exit code if standard output cannot be flushed.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return _FLUSH_FAILED
    finally:
        sys.stderr.flush()
    return code


_REQUEST_SECONDS = 2.0
_BACKLOG = 128
_HANDLED_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)


def restart_process() -> NoReturn:
    """Replace this process with a new execution of its program, with the current code."""
    os.execv(sys.executable, sys.orig_argv)  # noqa: S606  (our own command, no shell)


@dataclass
class _Fork:
    """A running fork.

    Attributes:
        connection: connection to the fork's client; None after the client has disconnected.
    """

    kind: str
    connection: socket.socket | None


class ForkServer:
    """A server that forks a process for each request, until it is stopped or its code has changed.

    Args:
        path: path of the server's socket, in a folder that only the server's user can open.
        executors: the functions that a fork executes, by kind of request.
        parent: descriptor that closes when the server has to end; None if only a signal ends it.
        not_for_forks: inherited descriptors that forks close.
        refused_commands: first arguments of commands that clients must run in their own process.
    """

    def __init__(
        self,
        path: Path,
        fingerprint: Fingerprint,
        executors: Mapping[str, Execute],
        *,
        parent: int | None = None,
        not_for_forks: Sequence[int] = (),
        refused_commands: Collection[str] = (),
    ) -> None:
        self._refused_commands = frozenset(refused_commands)
        self._not_for_forks = not_for_forks
        self._parent = parent
        self._path = path
        self._fingerprint = fingerprint
        self._executors = executors
        self._import_environment = select_import_environment(os.environ)
        self._forks: dict[int, _Fork] = {}
        self._clients: dict[int, int] = {}
        self._epoll = select.epoll()
        self._wakeup, self._waker = socket.socketpair()
        self._is_ending = False
        self._is_stale = False

    def serve(self) -> bool:
        """Answer requests until the server is stopped or its code has changed.

        Returns:
            whether it ended because the code has changed.
        """
        with self._listen() as listener:
            self._epoll.register(listener, select.EPOLLIN)
            self._epoll.register(self._wakeup, select.EPOLLIN)
            if self._parent is not None:
                self._epoll.register(self._parent, select.EPOLLIN | select.EPOLLHUP)
            self._install_signal_handlers()
            while not (self._is_ending or self._is_stale):
                for descriptor, _ in self._epoll.poll():
                    if descriptor == listener.fileno():
                        self._accept(listener)
                    elif descriptor == self._wakeup.fileno():
                        self._reap()
                    elif descriptor == self._parent:
                        self._is_ending = True
                    else:
                        self._hang_up(descriptor)
            self._path.unlink(missing_ok=True)
        self._epoll.close()
        return self._is_stale

    def _listen(self) -> socket.socket:
        """Listen on the socket, which gets its final path only when it accepts connections."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chdir(self._path.parent)  # The path of a socket may have at most 107 bytes.
        draft = Path(f"{os.getpid()}.new")
        draft.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(draft))
        draft.chmod(0o600)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        draft.replace(self._path.name)
        return listener

    def _install_signal_handlers(self) -> None:
        self._wakeup.setblocking(False)
        self._waker.setblocking(False)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        self._is_ending = True

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            try:
                self._answer(connection)
            except OSError:
                connection.close()

    def _answer(self, connection: socket.socket) -> None:
        """Fork for a request, or refuse it so that its client does the work itself."""
        if read_peer_user(connection) != os.geteuid():
            raise PermissionError("the client belongs to another user")
        connection.settimeout(_REQUEST_SECONDS)
        request, descriptors = receive_request(connection)
        try:
            self._is_stale = not self._fingerprint.is_current()
            if self._is_stale or not self._can_execute(request, descriptors):
                connection.close()
            else:
                self._fork(request, descriptors, connection)
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _can_execute(self, request: Request, descriptors: Sequence[int]) -> bool:
        has_descriptors = len(descriptors) == DESCRIPTORS.get(request.kind)
        if request.kind not in self._executors or not has_descriptors:
            return False
        return request.kind != COMMAND or (
            self._refused_commands.isdisjoint(request.arguments[:1])
            and select_import_environment(request.environment) == self._import_environment
        )

    def _fork(self, request: Request, descriptors: list[int], connection: socket.socket) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            self._release_in_fork()
            connection.settimeout(None)
            execute_request(request, descriptors, connection, self._executors[request.kind])
        self._forks[pid] = _Fork(request.kind, connection)
        self._clients[connection.fileno()] = pid
        # The server only waits for the end of the connection: the client's messages are for the
        # fork.
        self._epoll.register(connection, select.EPOLLRDHUP)

    def _release_in_fork(self) -> None:
        """Close the server's descriptors and reset its signal handlers in a new fork."""
        signal.set_wakeup_fd(-1)
        for number in _HANDLED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._epoll.close()
        for fork in self._forks.values():
            if fork.connection is not None:
                fork.connection.close()
        self._wakeup.close()
        self._waker.close()
        for descriptor in self._not_for_forks:
            os.close(descriptor)

    def _hang_up(self, descriptor: int) -> None:
        """Close the connection of a client that disconnected, and kill its command."""
        pid = self._clients.get(descriptor)
        if pid is not None:
            fork = self._forks[pid]
            self._forget(fork)
            if fork.kind == COMMAND:
                os.kill(pid, signal.SIGKILL)

    def _forget(self, fork: _Fork) -> None:
        if fork.connection is not None:
            self._epoll.unregister(fork.connection)
            del self._clients[fork.connection.fileno()]
            fork.connection.close()
            fork.connection = None

    def _reap(self) -> None:
        with suppress(BlockingIOError):
            self._wakeup.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            fork = self._forks.pop(pid, None)
            if fork is None:
                continue  # The fork was started before the code changed.
            if fork.connection is not None and os.WIFSIGNALED(status):
                with suppress(OSError):
                    send_reply(fork.connection, signal=os.WTERMSIG(status))
            self._forget(fork)
