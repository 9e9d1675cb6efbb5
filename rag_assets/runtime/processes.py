"""Background processes: servers that outlive the command that started them.

A `BackgroundProcess` is one server in its own session, recorded in a pid file. The record
identifies the process by its pid *and* its start time, so that another process with a reused pid is
never mistaken for the server or signalled. The record also contains the folder and the PID
namespace, so that neither a copy of the folder nor another container mistakes the server for its
own.

A record can be lost, copied or out of sight, but a kernel lock cannot. Each server inherits a lock
on a file next to its pid file. The lock is free exactly when the server and its children have
ended. A server is started only after this lock was acquired.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Required, TypeAlias, TypedDict, Unpack

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.private_files import write_atomically
from rag_assets.runtime.liveness import (
    adopt,
    end_session,
    parse_boot,
    read_birth,
    read_pid_namespace,
    wait_for,
)

Progress: TypeAlias = Callable[[str], None]

_POLL_SECONDS = 0.1
_RELEASE_SECONDS = 3
"""Seconds for which a process that has just ended may still hold a lock."""
_ORPHAN_SECONDS = 15
"""Seconds for which the children of a killed server may hold its lock."""
_LOG_BYTES = 8 * 1024 * 1024
_LOG_GROWTH_BYTES = 64 * 1024
_TAIL_BYTES = 16 * 1024
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def silent(_message: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system account for a process that must not run as root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The content of the pid file.

    Attributes:
        pid: pid of the process.
        birth: start time of the process, in a form that two processes with the same pid never
            share.
        port: loopback port that the process listens on, if any.
        started_at: start time for people (ISO 8601, UTC).
        place: device and inode of the folder of the pid file, which differ in a copy of the folder.
            Like the next two attributes, None in a record of an earlier version.
        host: name of the machine or container on which the process runs, for people.
        pid_namespace: namespace of the pid; also None on a system without namespaces.
    """

    pid: int
    birth: str
    port: int | None
    started_at: str
    place: str | None = None
    host: str | None = None
    pid_namespace: str | None = None


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file, after waiting for its holder; the system frees it if a holder dies."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class LaunchOptions(TypedDict, total=False):
    """Options of a start.

    Attributes:
        env: complete environment of the server.
        port: port to record in the pid file.
        cwd: working folder of the server; by default, the folder of its pid file.
        account: account that the server runs as; by default, this process's account.
        descriptors: open files that the server inherits under the same numbers.
        program: fingerprint of the server's code and environment; see `is_outdated`.
    """

    env: Required[Mapping[str, str]]
    port: int | None
    cwd: Path | None
    account: Account | None
    descriptors: Sequence[int]
    program: str | None


class BackgroundProcess:
    """One detached server process with its pid file and log.

    Args:
        name: name as shown to people, such as "Postgres".
        pid_file: the file with its `ProcessRecord`. Two lock files are next to it: for commands
            that start or stop the server (``.lock``), and for the server itself (``.running``).
        log_file: receives the server's output. If it is larger than 8 MB at a start, it is rotated;
            one previous log is kept.
        stop_signal: signal that requests an orderly shutdown.
        kill_signal: signal that ends the server if the shutdown fails.
    """

    def __init__(
        self,
        name: str,
        *,
        pid_file: Path,
        log_file: Path,
        stop_signal: signal.Signals = signal.SIGTERM,
        kill_signal: signal.Signals = signal.SIGKILL,
    ) -> None:
        self.name = name
        self.pid_file = pid_file
        self.log_file = log_file
        self._stop_signal = stop_signal
        self._kill_signal = kill_signal
        self._log_begins = 0
        self._held: int | None = None

    def lock(self) -> AbstractContextManager[None]:
        """Return a lock for starting and stopping, so that two commands start only one server."""
        return exclusive(self.pid_file.with_suffix(".lock"))

    def find(self) -> ProcessRecord | None:
        """Return the running process of this folder and PID namespace, or None; takes 0.1 ms."""
        record = self._read_record()
        if record is None or read_birth(record.pid) != record.birth:
            return None
        return record if self._is_here(record) else None

    def has_died(self) -> bool:
        """Return whether the server of this folder ended without being stopped."""
        record = self._read_record()
        # A record without a place comes from an earlier version, and may have been copied from
        # another folder.
        if record is None or record.place is None or not self._is_here(record):
            return False
        return read_birth(record.pid) != record.birth

    def find_elsewhere(self) -> ProcessRecord | None:
        """Return the record of a server that uses this folder elsewhere; None if there is none.

        Elsewhere means in another container, or on another machine that mounts the folder.
        """
        record = self._read_record()
        if record is None or self._is_here(record):
            return None
        return record if self._is_locked() else None

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Hold the server's lock, which `launch` passes to the server; yield its descriptor.

        While the lock is held, no server uses the folder, neither here nor in another
        container.

        Raises:
            ServiceUnavailable: a server holds it, or the file system has no locks.
        """
        if self._held is not None:
            yield self._held
            return
        self._held = self._acquire()
        try:
            yield self._held
        finally:
            os.close(self._held)
            self._held = None

    def start(
        self,
        command: Sequence[str | Path],
        *,
        healthy: Callable[[], bool],
        timeout: float,
        **options: Unpack[LaunchOptions],
    ) -> ProcessRecord:
        """Start the server and wait until it is healthy. Call it with the lock held.

        Args:
            healthy: returns whether the server is healthy; called ten times a second.
            timeout: seconds that the server may take to become healthy.

        Raises:
            ServiceUnavailable: the server ended, or did not become healthy in time and was stopped;
                or another server elsewhere already uses the folder.
        """
        self.launch(command, **options)
        try:
            return self.wait_until(healthy, timeout=timeout)
        except ServiceUnavailable:
            self.end(timeout=5)
            raise

    def launch(
        self, command: Sequence[str | Path], **options: Unpack[LaunchOptions]
    ) -> ProcessRecord:
        """Start the server without waiting for it. Call it with the lock held.

        Raises:
            ServiceUnavailable: the server cannot be started, or another server elsewhere already
                uses the folder.
        """
        account, program = options.get("account"), options.get("program")
        with self.hold() as held:
            try:
                self._rotate_log()
                with self.log_file.open("ab") as log:
                    self._log_begins = log.tell()
                    _require_space(log.fileno(), self._log_begins)
                    child = subprocess.Popen(  # noqa: S603  (our own command, no shell)
                        [str(part) for part in command],
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        env=dict(options["env"]),
                        cwd=options.get("cwd") or self.pid_file.parent,
                        start_new_session=True,
                        user=account.uid if account else None,
                        group=account.gid if account else None,
                        extra_groups=[] if account else None,
                        umask=0o077,
                        pass_fds=(*options.get("descriptors", ()), held),
                    )
            except OSError as error:
                raise ServiceUnavailable(
                    f"{self.name} could not be started: {error}", hint=self._find_remedy(error)
                ) from error
        adopt(child)
        record = ProcessRecord(
            pid=child.pid,
            birth=read_birth(child.pid) or "",
            port=options.get("port"),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            place=self._place(),
            host=socket.gethostname(),
            pid_namespace=read_pid_namespace(),
        )
        try:
            if program is not None:
                write_atomically(self._program_file, f"{record.birth} {program}")
            write_atomically(self.pid_file, json.dumps(asdict(record)))
        except OSError as error:
            # A server without a record could not be found, and therefore not be stopped.
            child.kill()
            raise ServiceUnavailable(
                f"{self.name} could not be recorded in {self.pid_file}: {error.strerror}"
            ) from error
        return record

    def reuse(self, healthy: Callable[[], bool], *, timeout: float) -> bool:
        """Wait for a running server; return False if none runs, or it ends meanwhile.

        Raises:
            ServiceUnavailable: the server runs, but is not healthy after ``timeout`` seconds.
        """
        if self.find() is None:
            return False
        try:
            self.wait_until(healthy, timeout=timeout)
        except ServiceUnavailable:
            if self.find() is None:
                return False
            raise
        return True

    def wait_until(self, healthy: Callable[[], bool], *, timeout: float) -> ProcessRecord:
        """Wait for a started server.

        Raises:
            ServiceUnavailable: the server ended, or is not healthy after ``timeout`` seconds.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            record = self.find()
            if record is None:
                raise self._failure("ended while starting")
            if healthy():
                return record
            time.sleep(_POLL_SECONDS)
        raise self._failure(f"did not answer within {timeout:.0f} s")

    def is_outdated(self, program: str) -> bool:
        """Return whether the server runs with different code, or in a different environment.

        Args:
            program: fingerprint of the current code and environment. The record of an earlier
                version has no fingerprint.
        """
        record = self.find()
        if record is None:
            return False
        try:
            return self._program_file.read_text() != f"{record.birth} {program}"
        except OSError:
            return True

    def stop(self, *, timeout: float = 30) -> bool:
        """End the server and its children; return False if it was not running."""
        if not self.pid_file.exists():
            return False
        with self.lock():
            return self.end(timeout=timeout)

    def end(self, *, timeout: float) -> bool:
        """Stop the server. Call it with the lock held."""
        record = self.find()
        if record is not None:
            self._signal(record, self._stop_signal)
            if not self._wait_until_gone(record, timeout):
                self._signal(record, self._kill_signal)
                if not self._wait_until_gone(record, 10):
                    self._signal(record, signal.SIGKILL)
                    self._wait_until_gone(record, 5)
            end_session(record.pid)
        if record is not None or self.find_elsewhere() is None:
            self.pid_file.unlink(missing_ok=True)
        return record is not None

    def output(self) -> str:
        """Return the server's output since this process launched it; at most the last 16 kB."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(self._log_begins, self.log_file.stat().st_size - _TAIL_BYTES))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def log_tail(self, lines: int = 6) -> list[str]:
        """Return the last lines of `output`, without blank lines, colours and Java stack frames."""
        shown = [
            line.rstrip()
            for line in _COLOURS.sub("", self.output()).splitlines()
            if line.strip() and not line.lstrip().startswith(("at ", "... "))
        ]
        return shown[-lines:]

    def _find_remedy(self, error: OSError) -> str | None:
        if error.errno not in _NO_SPACE:
            return None
        return f"free disk space for its log {self.log_file}, or delete old logs there"

    def _read_record(self) -> ProcessRecord | None:
        try:
            return ProcessRecord(**json.loads(self.pid_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _is_here(self, record: ProcessRecord) -> bool:
        """Return whether a record is for our machine, folder and PID namespace.

        A record of an earlier version lacks folder and namespace, and counts as ours.
        """
        return record.place is None or (
            record.place == self._place()
            and record.pid_namespace == read_pid_namespace()
            and parse_boot(record.birth) == parse_boot(read_birth(os.getpid()) or "")
        )

    def _place(self) -> str:
        folder = self.pid_file.parent.stat()
        return f"{folder.st_dev}:{folder.st_ino}"

    @property
    def _program_file(self) -> Path:
        # This is stored separately from the pid file, which earlier versions must be able to read.
        return self.pid_file.with_suffix(".program")

    @property
    def _running_file(self) -> Path:
        return self.pid_file.with_suffix(".running")

    def _acquire(self) -> int:
        """Lock the server's lock file; return the file's descriptor."""
        descriptor = None
        try:
            self.pid_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._running_file, os.O_RDWR | os.O_CREAT, 0o600)
            record = self._read_record()
            is_near = record is None or self._is_here(record)
            patience = _ORPHAN_SECONDS if is_near else _RELEASE_SECONDS
            is_free = wait_for(partial(_try_lock, descriptor), patience)
        except OSError as error:
            if descriptor is not None:
                os.close(descriptor)
            raise ServiceUnavailable(
                f"{self._running_file} cannot be locked: {error.strerror}",
                hint="the home folder must be writable, on a file system that supports locks",
            ) from error
        if is_free:
            return descriptor
        os.close(descriptor)
        raise self._build_occupied_error()

    def _is_locked(self) -> bool:
        if self._held is not None:
            return False
        try:
            descriptor = os.open(self._running_file, os.O_RDWR)
        except OSError:
            return False
        try:
            return not _try_lock(descriptor)
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def _build_occupied_error(self) -> ServiceUnavailable:
        record, folder = self._read_record(), self.pid_file.parent
        if record is None or self._is_here(record):
            return ServiceUnavailable(
                f"{self.name} cannot start: another process uses {folder}",
                hint="end that process: `fuser` or `lsof` shows which process uses"
                f" {self._running_file}",
            )
        return ServiceUnavailable(
            f"{self.name} cannot start: it already runs in {folder}, as process {record.pid}"
            f" of host {record.host}, PID namespace {record.pid_namespace}, since"
            f" {record.started_at}",
            hint="an installation runs in one container or on one machine at a time: run"
            " `rag-assets down` there, or end that container, then start it here",
        )

    def _failure(self, what: str) -> ServiceUnavailable:
        tail = "".join(f"\n  {line[:300]}" for line in self.log_tail())
        quoted = f"; its log ends with:{tail}" if tail else "; its log is empty"
        return ServiceUnavailable(
            f"{self.name} {what}{quoted}", hint=f"the whole log is {self.log_file}"
        )

    def _signal(self, record: ProcessRecord, number: signal.Signals) -> None:
        if read_birth(record.pid) == record.birth:
            with suppress(ProcessLookupError):
                os.kill(record.pid, number)

    @staticmethod
    def _wait_until_gone(record: ProcessRecord, timeout: float) -> bool:
        return wait_for(lambda: read_birth(record.pid) != record.birth, timeout)

    def _rotate_log(self) -> None:
        self.log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.log_file.stat().st_size > _LOG_BYTES:
                self.log_file.replace(self.log_file.with_name(f"{self.log_file.name}.1"))


def _require_space(log: int, size: int) -> None:
    """Raise an OSError if a log, given by its descriptor and size, cannot grow.

    A server whose log cannot be written would still run, but the reason why it does not answer
    would be lost.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(log, size, _LOG_GROWTH_BYTES)
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise
    finally:
        os.ftruncate(log, size)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
