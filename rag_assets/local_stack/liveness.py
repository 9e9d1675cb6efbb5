"""Liveness of processes, distinguished from others that got the same pid."""

from __future__ import annotations

import atexit
import functools
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_POLL_SECONDS = 0.05

# This process's children, kept until they end: a dropped Popen would warn and leave a zombie.
_children: dict[int, subprocess.Popen[bytes]] = {}


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
