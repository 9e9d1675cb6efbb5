"""Runs commands to read their help or version, without a shell, input or network access.

Commands get few environment variables. Their time, output and number are limited.
"""

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
"""Seconds after which a command is killed."""
MAX_BYTES: Final = 1024 * 1024
"""Bytes of output after which a command is killed and its output is cut off."""
MAX_CALLS: Final = 2_000
"""Default maximum number of commands that a runner runs."""
_PASSED_VARIABLES: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT", "JAVA_HOME")
_WIDTH: Final = "100"
_FIXED_VARIABLES: Final = {
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

# Numbers of prctl(2) and seccomp(2) in the Linux kernel.
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_NO_NEW_PRIVS: Final = 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_LOAD, _JUMP_EQUAL, _JUMP_NOT_LESS, _RETURN = 0x20, 0x15, 0x35, 0x06
"""Instructions of a seccomp filter."""
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_X32_BIT: Final = 0x40000000
"""Marks the x32 system calls of x86-64, which number `socket` differently."""
_SOCKET_CALLS: Final[Mapping[str, tuple[int, int]]] = {
    "x86_64": (0xC000003E, 41),
    "aarch64": (0xC00000B7, 198),
}
"""The kernel's number of the architecture, and of the system call `socket`, by machine."""
_INDIRECT_SOCKET_CALLS: Final = (425, 438)
"""io_uring_setup and pidfd_getfd: other ways to get a socket."""


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


class CallLimitReached(Exception):
    """The runner has reached its maximum number of commands."""


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a command.

    Attributes:
        text: standard output and standard error together.
        exit_code: None if the command was killed.
        is_complete: whether the command ended within the limits.
    """

    text: str
    exit_code: int | None
    is_complete: bool


class CommandRunner:
    """Runs at most `max_calls` commands, then raises CallLimitReached.

    Args:
        home: an empty folder; the home folder and working directory of commands.
    """

    def __init__(
        self, home: Path, variables: Mapping[str, str], *, max_calls: int = MAX_CALLS
    ) -> None:
        self._home = home
        self._remaining_calls = max_calls
        self._environment = {
            **{name: variables[name] for name in _PASSED_VARIABLES if name in variables},
            **dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "TMPDIR"), str(home)),
            **_FIXED_VARIABLES,
            "PATH": filter_search_path(variables),
        }

    def run(self, argv: Sequence[str], extra_path: Path | None = None) -> CommandOutput:
        """Run a command, and kill all processes that it started.

        Args:
            extra_path: a folder that is searched for programs first.

        Raises:
            CallLimitReached: the limit of calls is reached.
            OSError: the command cannot be started.
        """
        if self._remaining_calls <= 0:
            raise CallLimitReached
        self._remaining_calls -= 1
        environment = dict(self._environment)
        if extra_path is not None:
            environment["PATH"] = os.pathsep.join([str(extra_path), environment["PATH"]])
        children_before = _list_children()
        with _adopt_orphans():
            process = subprocess.Popen(  # noqa: S603 - a command that the user named, without a shell
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=self._home,
                env=environment,
                start_new_session=True,
                preexec_fn=_block_network,  # noqa: PLW1509 - it only calls the kernel
            )
            try:
                assert process.stdout is not None  # noqa: S101 - stdout is a pipe
                data, is_complete = _read_pipe(process.stdout, time.monotonic() + MAX_SECONDS)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5 if is_complete else 0)
            finally:
                _kill(process, children_before)
        text = data.decode("utf-8", "replace").replace(str(self._home), "~")
        return CommandOutput(text, process.returncode if is_complete else None, is_complete)


def filter_search_path(variables: Mapping[str, str]) -> str:
    """Return PATH without relative folders.

    With relative folders, whoever can write to the working directory could choose the program that
    is run.
    """
    folders = variables.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(folder for folder in folders if Path(folder).is_absolute())


def find_command(name: str, variables: Mapping[str, str]) -> str:
    """Return the absolute path of a command.

    Raises:
        ConfigurationError: no absolute folder of PATH has it, or its name starts with a hyphen.
    """
    is_name = name[:1] not in {"", "-"}
    path = shutil.which(name, path=filter_search_path(variables)) if is_name else None
    if path is None:
        raise ConfigurationError(
            f"the command {name!r} was not found",
            hint="use a program in an absolute folder of PATH,"
            " with a name that does not start with -",
        )
    return str(Path(path).absolute())


def can_block_network() -> bool:
    """Return whether this platform can prevent a command from opening sockets."""
    return sys.platform == "linux" and os.uname().machine in _SOCKET_CALLS


def _block_network() -> None:
    """Make the kernel refuse sockets to this process and all its descendants.

    Returns immediately if can_block_network() is False. Runs between fork and exec. Local sockets
    are refused too, as they lead to servers with network access. No command needs a socket to print
    its help.
    """
    if not can_block_network():
        return
    architecture, socket = _SOCKET_CALLS[os.uname().machine]
    calls = (socket, *_INDIRECT_SOCKET_CALLS)
    last = len(calls) + 5
    lines = [
        (_LOAD, 0, 0, 4),
        (_JUMP_EQUAL, 0, last - 2, architecture),
        (_LOAD, 0, 0, 0),
        (_JUMP_NOT_LESS, last - 4, 0, _X32_BIT),
        *((_JUMP_EQUAL, last - at - 1, 0, call) for at, call in enumerate(calls, start=4)),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EACCES),
    ]
    instructions = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    program = ctypes.byref(_Program(len(lines), instructions))
    one, zero = ctypes.c_ulong(1), ctypes.c_ulong(0)
    kernel = ctypes.CDLL(None)
    kernel.prctl(_PR_SET_NO_NEW_PRIVS, one, zero, zero, zero)
    kernel.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_SECCOMP_MODE_FILTER), program, zero, zero)


def _read_pipe(pipe: IO[bytes], deadline: float) -> tuple[bytes, bool]:
    """Read a pipe until its end or a limit; return the data and whether the end was reached."""
    data = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (remaining := deadline - time.monotonic()) > 0:
            if not selector.select(remaining):
                break
            piece = os.read(pipe.fileno(), 65_536)
            if not piece:
                return bytes(data), True
            data += piece
            if len(data) > MAX_BYTES:
                return bytes(data[:MAX_BYTES]), False
    return bytes(data), False


def _kill(process: subprocess.Popen[bytes], children_before: Set[int]) -> None:
    """Kill a command and all its descendants, but no other child of this process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
    # Descendants outside the process group have become children of this process.
    for _ in range(100):
        orphans = _list_children() - children_before
        if not orphans:
            return
        for child in orphans:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(child, 0)


@contextmanager
def _adopt_orphans() -> Iterator[None]:
    """Make orphaned descendants become children of this process."""

    def set_subreaper(value: int) -> None:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, value, 0, 0, 0)

    set_subreaper(1)
    try:
        yield
    finally:
        set_subreaper(0)


def _list_children() -> Set[int]:
    """Return the process ids of all children of this process.

    The children of every thread are included, because any thread may adopt an orphan.
    """
    pids = []
    for task in Path(f"/proc/{os.getpid()}/task").glob("*/children"):
        with suppress(OSError):
            pids += task.read_text().split()
    return frozenset(map(int, pids))


_OVERSTRIKE = re.compile(r".\x08")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def strip_formatting(text: str) -> str:
    """Remove overstriking, colours and control characters from terminal output."""
    text = _OVERSTRIKE.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", _ESCAPE.sub("", text)).strip("\n")


_VERSION_ARGUMENTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "go": (("version",),),
    "kubectl": (("version", "--client"),),
}
"""Arguments for programs without --version; in other programs, a plain word may have effects."""
_MAX_VERSION_LENGTH: Final = 120
"""Maximum characters of a version; a longer version is cut off."""


def read_version(runner: CommandRunner, program: str) -> str:
    """Return the first line of a program's version output; `unknown` if it prints none."""
    for arguments in _VERSION_ARGUMENTS.get(Path(program).name, (("--version",), ("-V",))):
        output = runner.run([program, *arguments])
        lines = strip_formatting(output.text).strip().splitlines()
        if output.exit_code == 0 and lines and re.search(r"\d", lines[0]):
            return " ".join(lines[0].split())[:_MAX_VERSION_LENGTH]
    return "unknown"
