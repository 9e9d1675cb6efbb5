"""Runs a command for its help: no shell, no input, no secrets, bounded in time and output."""

from __future__ import annotations

import ctypes
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

MAX_SECONDS: Final = 5.0
MAX_BYTES: Final = 1024 * 1024
MAX_CALLS: Final = 2_000

_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): what a command leaves behind becomes our child."""

_KEPT: Final = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "JAVA_HOME")
_WIDTH: Final = "100"


@dataclass(frozen=True, slots=True)
class Said:
    """What a command said.

    Attributes:
        text: of standard output and error, together.
        code: its exit code; None if it was ended by us.
        whole: whether it ended by itself within the limits.
    """

    text: str
    code: int | None
    whole: bool


class TooManyCalls(Exception):
    """The limit of calls is reached."""


class Caller:
    """Runs commands; counts its calls.

    Args:
        home: an empty folder, as the home and working directory of commands.
        variables: of the environment; few of them are handed on.
        calls: how many there may be.
    """

    def __init__(self, home: Path, variables: Mapping[str, str], *, calls: int = MAX_CALLS) -> None:
        self._home = home
        self._left = calls
        self._environment = {
            **{name: variables[name] for name in _KEPT if name in variables},
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home),
            "TMPDIR": str(home),
            "LANG": "C.UTF-8",
            "LC_ALL": "C.UTF-8",
            "COLUMNS": _WIDTH,
            "MANWIDTH": _WIDTH,
            "PAGER": "cat",
            "GIT_PAGER": "cat",
            "MANPAGER": "cat",
            "AWS_PAGER": "",
            "TERM": "dumb",
            "NO_COLOR": "1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def run(self, argv: Sequence[str], tools: Path | None = None) -> Said:
        """Run a command, and end all that it started.

        Args:
            argv: its file and arguments.
            tools: a folder that comes first in its path.

        Raises:
            TooManyCalls: the limit of calls is reached.
            OSError: it cannot be started.
        """
        if self._left <= 0:
            raise TooManyCalls
        self._left -= 1
        environment = self._environment
        if tools is not None:
            path = os.pathsep.join([str(tools), environment.get("PATH", os.defpath)])
            environment = {**environment, "PATH": path}
        others = _children()
        with _adopted_orphans():
            process = subprocess.Popen(  # noqa: S603 - a command that the user named, without a shell
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                env=environment,
                start_new_session=True,
            )
            try:
                assert process.stdout is not None  # noqa: S101 - a pipe was asked for
                data, whole = _read(process.stdout, time.monotonic() + MAX_SECONDS)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5 if whole else 0)
            finally:
                _end(process, others)
        text = data.decode("utf-8", "replace").replace(str(self._home), "~")
        return Said(text, process.returncode if whole else None, whole)


def _read(pipe: IO[bytes], deadline: float) -> tuple[bytes, bool]:
    """What a pipe holds until it ends or a limit is reached, and whether it ended."""
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                break
            piece = os.read(pipe.fileno(), 65_536)
            if not piece:
                return bytes(data), True
            data += piece
            if len(data) > MAX_BYTES:
                return bytes(data[:MAX_BYTES]), False
    return bytes(data), False


def _end(process: subprocess.Popen[bytes], others: Set[int]) -> None:
    """End a command and all that it started, and none of the other children of this process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    # Those that left the process group became our children.
    for _ in range(100):
        orphans = _children() - others
        if not orphans:
            return
        for child in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


@contextmanager
def _adopted_orphans() -> Iterator[None]:
    """Have what a command leaves behind become a child of this process."""
    _reap(1)
    try:
        yield
    finally:
        _reap(0)


def _reap(orphans: int) -> None:
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, orphans, 0, 0, 0)


def _children() -> Set[int]:
    """The children of this process: all of its threads', since orphans go to any of them."""
    listed = []
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(OSError):
            listed += task.read_text().split()
    return frozenset(map(int, listed))
