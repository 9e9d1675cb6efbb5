"""The fork, which takes over the arguments, environment and standard streams of its client."""

from __future__ import annotations

import atexit
import io
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rag_assets.forkserver.protocol import (
    COMMAND,
    Request,
    Stream,
    pid_namespace,
    send_reply,
    wait_for_go_ahead,
)

Execute = Callable[[Sequence[str]], None]
"""Executes the arguments of a request; returns or raises SystemExit at the end."""

_FLUSH_FAILED = 120
"""Python's exit code if its buffers cannot be flushed."""


def become(
    request: Request, descriptors: Sequence[int], connection: socket.socket, execute: Execute
) -> NoReturn:
    """Execute a request once the client lets it start, and end the process."""
    code = 1
    try:
        if request.kind == COMMAND:
            os.setsid()
            _take_over_streams(request.streams, descriptors)
        _take_over_settings(request)
        send_reply(connection, pid=os.getpid(), namespace=pid_namespace())
        if not wait_for_go_ahead(connection):
            os._exit(1)
        code = _exit_code(execute, _arguments(request, descriptors))
        code = _finish(code)
        send_reply(connection, exit=code)
    except OSError:
        code = 1  # The client disconnected.
    finally:
        os._exit(code)


def _arguments(request: Request, descriptors: Sequence[int]) -> Sequence[str]:
    """Return the arguments to execute, then the descriptors that are not standard streams."""
    return (
        request.arguments
        if request.kind == COMMAND
        else [*request.arguments, *map(str, descriptors)]
    )


def _take_over_streams(streams: Sequence[Stream], descriptors: Sequence[int]) -> None:
    folder, *standard = descriptors
    os.fchdir(folder)
    for number, descriptor in enumerate(standard):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    opened = [_open(number, stream) for number, stream in enumerate(streams)]
    sys.stdin, sys.stdout, sys.stderr = opened
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = opened  # type: ignore[misc]


def _open(number: int, stream: Stream) -> io.TextIOWrapper:
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


def _exit_code(execute: Execute, arguments: Sequence[str]) -> int:
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


def _finish(code: int) -> int:
    """Shut down as the interpreter does, but keep imported modules in memory."""
    threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001
    atexit._run_exitfuncs()  # noqa: SLF001
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return _FLUSH_FAILED
    finally:
        sys.stderr.flush()
    return code
