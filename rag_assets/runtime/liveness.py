"""Liveness of processes, also of processes in other containers, despite reused pids.

A process in our PID namespace is recognized by its pid and its start time. For other containers,
each process holds a lock on a file, its mark; the kernel releases the lock when the process ends.
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
_MARK_SECONDS = 7 * 86_400
"""Seconds for which the mark of an ended process is kept."""

# Children of this process. The Popen objects are kept until the children end, because a dropped
# Popen would warn and leave a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """The identity of a process, also valid between containers that share the same files.

    Attributes:
        host: name of the machine or container of the process.
        birth: start time of the process, see `read_birth`.
        namespace: PID namespace of the pid; "" if it is unknown.
    """

    host: str
    pid: int
    birth: str
    namespace: str = ""

    @classmethod
    def from_pid(cls, pid: int) -> ProcessIdentity:
        """Identify a process of our PID namespace."""
        return cls(socket.gethostname(), pid, read_birth(pid) or "", read_pid_namespace() or "")

    @classmethod
    def parse(cls, text: str) -> ProcessIdentity:
        """Parse the text from `str(identity)`."""
        host, pid, birth, *namespace = text.split(" ")
        return cls(host, int(pid), birth, *namespace)

    def __str__(self) -> str:
        return f"{self.host} {self.pid} {self.birth} {self.namespace}".rstrip()

    def is_in_sight(self) -> bool:
        """Return whether this process can see the identified process and signal it by its pid.

        It can if both run on the same host, since the same boot, in the same PID namespace.
        """
        identity = ProcessIdentity.from_pid(os.getpid())
        if self.host != identity.host:
            return False
        is_same_boot = parse_boot(self.birth) == parse_boot(identity.birth)
        return not self.namespace or (self.namespace == identity.namespace and is_same_boot)

    def is_alive(self) -> bool:
        """Return whether the process is in sight and alive.

        False does not prove that the process has ended; see `has_ended`.
        """
        return self.is_in_sight() and read_birth(self.pid) == self.birth

    def has_ended(self, marks: Path) -> bool:
        """Return whether the process has certainly ended; False if it lives or this is unknown."""
        if self.is_in_sight():
            return read_birth(self.pid) != self.birth
        return _is_unlocked(self.get_mark_path(marks))

    def get_mark_path(self, marks: Path) -> Path:
        """Return the path of the mark, the file on which the process holds a lock."""
        return marks / str(self).translate(str.maketrans(" /", "__"))


_marks: list[int] = []
"""Descriptors that this process keeps open until it ends."""


def hold_liveness_lock(marks: Path) -> None:
    """Hold a lock on a file until this process ends; do nothing if the folder is not writable.

    The file stays afterwards. Its free lock shows other containers that this process has ended,
    even if the process could not report the end of its run.
    """
    path = ProcessIdentity.from_pid(os.getpid()).get_mark_path(marks)
    with suppress(OSError):
        marks.mkdir(mode=0o700, parents=True, exist_ok=True)
        _delete_old_marks(marks)
        if path.exists():
            return
        # The file is locked before it gets its final name: an unlocked mark means an ended process.
        draft = path.with_name(f"{path.name}.new")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        draft.rename(path)
        _marks.append(descriptor)


def _delete_old_marks(marks: Path) -> None:
    """Delete the marks of processes that ended long ago.

    The modification time of a mark is first the start time of its process, which may have run for
    weeks. So the first sweep that finds an old mark unlocked writes to it, which sets its time to
    now, and a sweep a week later deletes it.
    """
    for mark in marks.iterdir():
        with suppress(FileNotFoundError):  # another process is sweeping
            status = mark.stat()
            if time.time() - status.st_mtime < _MARK_SECONDS or not _is_unlocked(mark):
                continue
            if status.st_size:
                mark.unlink()
            else:
                mark.write_text("ended")


def _is_unlocked(mark: Path) -> bool:
    """Return whether a mark exists and no process holds its lock."""
    try:
        with mark.open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def adopt_child(child: subprocess.Popen[bytes]) -> None:
    """Keep a reference to a child process that may outlive this process.

    The reference lets Python reap the child if it ends first.
    """
    if not _children:
        atexit.register(_release_children)
    _children[child.pid] = child


def _release_children() -> None:
    """Mark running children as finished, so that the interpreter does not warn at exit."""
    for child in _children.values():
        if child.poll() is None:
            child.returncode = 0


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Wait until a condition is true; return False after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def end_session(leader: int) -> None:
    """End the remaining processes of a server's session, such as Dagster's code servers.

    Args:
        leader: pid of the server, which led the session.
    """
    for number, patience in ((signal.SIGTERM, 5.0), (signal.SIGKILL, 1.0)):
        if not _list_session_members(leader):
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(leader, number)
        wait_until(lambda: not _list_session_members(leader), patience)


def _list_session_members(leader: int) -> list[int]:
    """Return the pids of the processes in a session, without zombies."""
    import psutil

    members = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, ProcessLookupError):
            if os.getpgid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                members.append(process.pid)
    return members


def read_birth(pid: int) -> str | None:
    """Return the start time of a live process; None if it does not exist or is a zombie."""
    birth = _read_birth_of_process(pid)
    if birth is None and (child := _children.get(pid)) is not None and child.poll() is not None:
        del _children[pid]
    return birth


def parse_boot(birth: str) -> str:
    """Return the part of a start time that identifies the machine's boot; "" if it is missing."""
    return birth.rpartition("/")[0]


def read_pid_namespace(pid: int | str = "self") -> str | None:
    """Return the PID namespace of a process; None if it is unknown."""
    try:
        return str(Path(f"/proc/{pid}/ns/pid").readlink())
    except OSError:
        return None


def _read_birth_of_process(pid: int) -> str | None:
    boot = _read_boot_id()
    if boot is None:
        return _find_birth_by_psutil(pid)
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    state, start_ticks = fields[0], fields[19]
    return None if state in "ZX" else f"{boot}/{start_ticks}"


@functools.cache
def _read_boot_id() -> str | None:
    """Return the id of the machine's boot, on Linux.

    A start is identified by the boot and the clock ticks since the boot, because a time of day
    shifts when the clock is set.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None


def _find_birth_by_psutil(pid: int) -> str | None:
    import psutil

    try:
        process = psutil.Process(pid)
        alive = process.status() != psutil.STATUS_ZOMBIE
        return f"{process.create_time():.2f}" if alive else None
    except psutil.Error:
        return None
