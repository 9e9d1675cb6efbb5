"""Runs a command for its help or version: no shell, input, secrets or network, within limits."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from rag_assets.common.errors import ConfigurationError

MAX_SECONDS: Final = 5.0
MAX_BYTES: Final = 1024 * 1024
MAX_CALLS: Final = 2_000
_SUBREAPER: Final = 36
"""PR_SET_CHILD_SUBREAPER of prctl(2): what a command leaves behind becomes our child."""
_KEPT: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT", "JAVA_HOME")
_WIDTH: Final = "100"
_NO_NEW_PRIVILEGES: Final = 38
_SET_SECCOMP, _FILTER_MODE = 22, 2
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""Instructions of a filter: load a word, jump if it is equal or not less, return."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_X32: Final = 0x40000000
"""Bit of a second numbering of system calls on x86-64, in which `socket` has another number."""
_SOCKET_CALLS: Final[Mapping[str, tuple[int, int]]] = {
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
}
"""Of machines: the kernel's number of the architecture, and of the system call `socket`."""
_WAYS_AROUND: Final = (425, 438)
"""io_uring_setup and pidfd_getfd: sockets without that call."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


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


def search_path(variables: Mapping[str, str]) -> str:
    """Return the folders that commands are looked for in.

    Relative ones are left out: whoever wrote the present folder would choose what is run.
    """
    folders = variables.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def can_forbid_network() -> bool:
    """Return whether this platform lets us keep a command from opening sockets."""
    return sys.platform == "linux" and os.uname().machine in _SOCKET_CALLS


def _forbid_network() -> None:
    """Have the kernel refuse sockets to this process and to all that it starts, for ever.

    Runs between fork and exec. No command needs one for its help; one of the local kind leads to
    servers that have a network.
    """
    if not can_forbid_network():
        return
    architecture, socket = _SOCKET_CALLS[os.uname().machine]
    calls = (socket, *_WAYS_AROUND)
    last = len(calls) + 5
    lines = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 0, last - 2, architecture),
        (_LOAD, 0, 0, 0),
        (_AT_LEAST, last - 4, 0, _X32),
        *((_EQUAL, last - at - 1, 0, call) for at, call in enumerate(calls, start=4)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EACCES),
    ]
    filter_ = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    program = _Program(len(lines), filter_)
    one, none = ctypes.c_ulong(1), ctypes.c_ulong(0)
    kernel = ctypes.CDLL(None)
    kernel.prctl(_NO_NEW_PRIVILEGES, one, none, none, none)
    kernel.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER_MODE), ctypes.byref(program), none, none)


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
            "PATH": search_path(variables),
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
                preexec_fn=_forbid_network,  # noqa: PLW1509 - it calls the kernel and nothing else
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


_OVERSTRUCK = re.compile(r".\x08")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(text: str) -> str:
    """A help text without overstriking, colours and control characters."""
    text = _OVERSTRUCK.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", _ESCAPES.sub("", text)).strip("\n")


_VERSIONS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "go": (("version",),),
    "kubectl": (("version", "--client"),),
}
"""How some programs tell their version; a plain word might do something in others."""
_VERSION_WIDTH: Final = 120


def executable(name: str, variables: Mapping[str, str]) -> str:
    """The file of a command.

    Raises:
        ConfigurationError: it is not installed, or its name begins like an option.
    """
    found = shutil.which(name, path=search_path(variables)) if name[:1] not in {"", "-"} else None
    if found is None:
        raise ConfigurationError(
            f"the command {name!r} is not installed", hint="name a command in PATH"
        )
    return str(Path(found).absolute())


def version_of(caller: Caller, program: str) -> str:
    """The first line that a program says of its version; `unknown` without one."""
    for ask in _VERSIONS.get(Path(program).name, (("--version",), ("-V",))):
        said = caller.run([program, *ask])
        lines = plain(said.text).strip().splitlines()
        if said.whole and said.code == 0 and lines and re.search(r"\d", lines[0]):
            return " ".join(lines[0].split())[:_VERSION_WIDTH]
    return "unknown"
