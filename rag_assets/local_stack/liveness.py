"""Liveness of processes, distinguished from others that got the same pid.

A process in our PID namespace is recognized by its start time. One in another container is out of
sight: it holds a lock on a file, its mark, which the kernel frees when it ends.
"""

from __future__ import annotations

import atexit
import fcntl
import functools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.05
_KEPT_SECONDS = 7 * 86_400
"""How long the mark of a process that ended is kept for those that look for it."""

# This process's children, kept until they end: a dropped Popen would warn and leave a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process as others find it, also from another container over the same files.

    Attributes:
        host: the name of its machine or container.
        birth: its start time, see `birth_of`.
        namespace: in which its pid counts; "" where the system has none, or it was not recorded.
    """

    host: str
    pid: int
    birth: str
    namespace: str = ""

    @classmethod
    def of(cls, pid: int) -> ProcessIdentity:
        """Identify a process of our PID namespace."""
        return cls(socket.gethostname(), pid, birth_of(pid) or "", pid_namespace_of() or "")

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity:
        """Read what `str` made of an identity."""
        host, pid, birth, *namespace = text.split(" ")
        return cls(host, int(pid), birth, *namespace)

    def __str__(self) -> str:
        return f"{self.host} {self.pid} {self.birth} {self.namespace}".rstrip()

    def is_in_sight(self) -> bool:
        """Whether its pid means the same to us, so that it may be signalled."""
        own = ProcessIdentity.of(os.getpid())
        if self.host != own.host:
            return False
        is_same_boot = boot_of(self.birth) == boot_of(own.birth)
        return not self.namespace or (self.namespace == own.namespace and is_same_boot)

    def is_alive(self) -> bool:
        """Whether it is in sight and lives."""
        return self.is_in_sight() and birth_of(self.pid) == self.birth

    def has_ended(self, marks: Path) -> bool:
        """Whether it has ended for certain; what left no trace may live elsewhere.

        Args:
            marks: the folder of `mark_process`.
        """
        if self.is_in_sight():
            return birth_of(self.pid) != self.birth
        return _is_free(self.mark_in(marks))

    def mark_in(self, marks: Path) -> Path:
        """The file that the process holds locked."""
        return marks / str(self).translate(str.maketrans(" /", "__"))


_marks: list[int] = []
"""Descriptors that this process keeps open until it ends."""


def mark_process(marks: Path) -> None:
    """Hold a lock on a file as long as this process lives, if the folder can be written.

    The file stays when the process ends in good order, too: it may not have reached the database to
    report the end of its run.
    """
    path = ProcessIdentity.of(os.getpid()).mark_in(marks)
    with suppress(OSError):
        marks.mkdir(mode=0o700, parents=True, exist_ok=True)
        _sweep(marks)
        if path.exists():
            return
        # Locked before it has its name: a mark that is free is one of a process that has ended.
        draft = path.with_name(f"{path.name}.new")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        draft.rename(path)
        _marks.append(descriptor)


def _sweep(marks: Path) -> None:
    """Delete the marks of processes that ended long ago.

    A mark is as old as the start of its process, which may have lasted for weeks: the first sweep
    that finds it free dates it, and a later one deletes it.
    """
    for mark in marks.iterdir():
        with suppress(FileNotFoundError):  # another process sweeps
            status = mark.stat()
            if time.time() - status.st_mtime < _KEPT_SECONDS or not _is_free(mark):
                continue
            if status.st_size:
                mark.unlink()
            else:
                mark.write_text("ended")


def _is_free(mark: Path) -> bool:
    """Whether a mark exists and nothing holds its lock."""
    try:
        with mark.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def adopt(child: subprocess.Popen[bytes]) -> None:
    """Keep a child process that is meant to outlive this one."""
    if not _children:
        atexit.register(_leave)
    _children[child.pid] = child


def _leave() -> None:
    """Let children go that outlive this process: the end of the interpreter would warn of each."""
    for child in _children.values():
        if child.poll() is None:
            child.returncode = 0


def wait_for(condition: Callable[[], bool], timeout: float) -> bool:
    """Whether the condition becomes true within ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def end_session(leader: int) -> None:
    """End left-over processes of a server's session, such as Dagster's code servers."""
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 1.0)):
        if not _session_members(leader):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
        wait_for(lambda: not _session_members(leader), patience)


def _session_members(leader: int) -> list[int]:
    """Live processes of the group; zombies don't count, as they may never be reaped."""
    import psutil

    members = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
    return members


def birth_of(pid: int) -> str | None:
    """The start time of a live process; None if it does not exist or is a zombie."""
    birth = _birth_of(pid)
    if birth is None and (child := _children.get(pid)) is not None and child.poll() is not None:
        del _children[pid]
    return birth


def boot_of(birth: str) -> str:
    """Return the part of a start time that names the boot of a machine, if it has one."""
    return birth.rpartition("/")[0]


def pid_namespace_of(pid: int | str = "self") -> str | None:
    """Return the PID namespace of a process; None if it is out of sight, or the system has none."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def _birth_of(pid: int) -> str | None:
    boot = _boot_id()
    if boot is None:
        return _birth_by_psutil(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{start_ticks}"


@functools.cache
def _boot_id() -> str | None:
    """Identify this boot of the machine, on Linux.

    Together with the ticks from boot to birth it is stabler than a time of day, which moves for
    all processes when the clock is set: after a suspended virtual machine resumes.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _birth_by_psutil(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return f"{process.create_time():.2f}" if alive else None
    except psutil.Error:
        return None
