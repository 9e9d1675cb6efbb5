"""Background processes: servers that outlive the command that started them.

A `BackgroundProcess` is a server in its own session, recorded in a pid file. The record contains
the start time, so that another process with a reused pid is never signalled. It also contains the
folder and the PID namespace, so that a copy of the folder, or another container, does not mistake
the server for its own.

A record can be lost or copied, but a kernel lock cannot. Each server inherits a lock on a file next
to its pid file, which is free only after the server and its children have ended. A server is
started only with this lock.
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
from abc import ABC, abstractmethod
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
    adopt_child,
    end_session,
    parse_boot,
    read_birth,
    read_pid_namespace,
    wait_until,
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


def ignore_progress(_message: str) -> None:
    """Do nothing with a line about a step; used if no progress should be shown."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system account for a process that must not run as root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The content of a pid file.

    Attributes:
        birth: start time of the process; differs between processes with the same pid.
        port: loopback port that the process listens on, if any.
        started_at: start time for display (ISO 8601, UTC).
        place: device and inode of the folder of the pid file. Like the next attributes, None in a
            record of an earlier version.
        host: name of the machine or container of the process, for display.
        pid_namespace: namespace of the pid; None on a system without namespaces.
    """

    pid: int
    birth: str
    port: int | None
    started_at: str
    place: str | None = None
    host: str | None = None
    pid_namespace: str | None = None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Wait for the lock of a file, and hold it until the context ends or the process dies."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class LaunchOptions(TypedDict, total=False):
    """Options for starting a server.

    Attributes:
        env: complete environment of the server.
        cwd: working folder of the server; by default, the folder of its pid file.
        descriptors: descriptors of files that the server inherits.
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
        name: name for display, such as "Postgres".
        pid_file: the file with its `ProcessRecord`. Next to it are lock files for commands that
            start or stop the server (``.lock``), and for the server itself (``.running``).
        log_file: receives the output of the server. A file over 8 MB is rotated at a start, and one
            previous log is kept.
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
        self._log_start = 0
        self._lock_descriptor: int | None = None

    def lock(self) -> AbstractContextManager[None]:
        """Return a context that holds the lock that is needed to start or stop the server."""
        return hold_lock(self.pid_file.with_suffix(".lock"))

    def find(self) -> ProcessRecord | None:
        """Return the record of this folder's server if it runs in our PID namespace, else None."""
        record = self._read_record()
        if record is None or read_birth(record.pid) != record.birth:
            return None
        return record if self._is_ours(record) else None

    def has_died(self) -> bool:
        """Return whether the server of this folder ended without being stopped."""
        record = self._read_record()
        # A record of an earlier version has no place, and may be copied from another folder.
        if record is None or record.place is None or not self._is_ours(record):
            return False
        return read_birth(record.pid) != record.birth

    def find_elsewhere(self) -> ProcessRecord | None:
        """Return the record of a server that uses this folder elsewhere, if any.

        Elsewhere means in another container, or on another machine that mounts the folder.
        """
        record = self._read_record()
        if record is None or self._is_ours(record):
            return None
        return record if self._is_locked() else None

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Lock the server's lock file until the context ends, and yield the file's descriptor.

        Meanwhile, no server uses the folder, here or in another container. A server that `launch`
        starts inherits the lock.

        Raises:
            ServiceUnavailable: a server holds the lock, or the file system does not support locks.
        """
        if self._lock_descriptor is not None:
            yield self._lock_descriptor
            return
        self._lock_descriptor = self._acquire()
        try:
            yield self._lock_descriptor
        finally:
            os.close(self._lock_descriptor)
            self._lock_descriptor = None

    def start(
        self,
        command: Sequence[str | Path],
        *,
        healthy: Callable[[], bool],
        timeout: float,
        **options: Unpack[LaunchOptions],
    ) -> ProcessRecord:
        """Start the server and wait until it is healthy. The caller must hold `lock()`.

        Args:
            healthy: returns whether the server is healthy; called ten times a second.
            timeout: seconds in which the server must become healthy.

        Raises:
            ServiceUnavailable: the server ended, or was stopped because it was not healthy in time;
                or another server uses the folder elsewhere.
        """
        self.launch(command, **options)
        try:
            return self.wait_until(healthy, timeout=timeout)
        except ServiceUnavailable:
            self.stop_locked(timeout=5)
            raise

    def launch(
        self, command: Sequence[str | Path], **options: Unpack[LaunchOptions]
    ) -> ProcessRecord:
        """Start the server without waiting until it is healthy. The caller must hold `lock()`.

        Raises:
            ServiceUnavailable: the server cannot be started, or another server uses the folder
                elsewhere.
        """
        account, program = options.get("account"), options.get("program")
        with self.hold() as lock_descriptor:
            try:
                self._rotate_log()
                with self.log_file.open("ab") as log:
                    self._log_start = log.tell()
                    _require_space(log.fileno(), self._log_start)
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
                        pass_fds=(*options.get("descriptors", ()), lock_descriptor),
                    )
            except OSError as error:
                remedy = f"free disk space for its log {self.log_file}, or delete old logs there"
                raise ServiceUnavailable(
                    f"{self.name} could not be started: {error}",
                    hint=remedy if error.errno in _NO_SPACE else None,
                ) from error
        adopt_child(child)
        record = ProcessRecord(
            pid=child.pid,
            birth=read_birth(child.pid) or "",
            port=options.get("port"),
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
            place=self._read_folder_id(),
            host=socket.gethostname(),
            pid_namespace=read_pid_namespace(),
        )
        try:
            if program is not None:
                write_atomically(self._program_file, f"{record.birth} {program}")
            write_atomically(self.pid_file, json.dumps(asdict(record)))
        except OSError as error:
            # A server without a record could not be stopped.
            child.kill()
            raise ServiceUnavailable(
                f"{self.name} could not be recorded in {self.pid_file}: {error.strerror}",
                hint="make sure that this folder is writable and that its disk is not full",
            ) from error
        return record

    def reuse(self, healthy: Callable[[], bool], *, timeout: float) -> bool:
        """Wait until a running server is healthy.

        Returns:
            True once the server is healthy; False if no server runs, or the server ends meanwhile.

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
        """Wait until a started server is healthy."""
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            record = self.find()
            if record is None:
                raise self._build_failure("ended while starting")
            if healthy():
                return record
            time.sleep(_POLL_SECONDS)
        raise self._build_failure(f"did not answer within {timeout:.0f} s")

    def is_outdated(self, program: str) -> bool:
        """Return whether the server runs with different code or in a different environment."""
        record = self.find()
        if record is None:
            return False
        try:
            return self._program_file.read_text() != f"{record.birth} {program}"
        except OSError:
            return True

    def stop(self, *, timeout: float = 30) -> bool:
        """Stop the server and its children; return False if it was not running.

        Args:
            timeout: seconds to wait for the orderly shutdown, after which the server is killed.
        """
        if not self.pid_file.exists():
            return False
        with self.lock():
            return self.stop_locked(timeout=timeout)

    def stop_locked(self, *, timeout: float) -> bool:
        """Stop the server like `stop`, but without taking the lock; the caller must hold `lock()`.

        Returns:
            Whether the server was running.
        """
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

    def read_output(self) -> str:
        """Return the last 16 kB of the server's output since this process launched it."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(self._log_start, self.log_file.stat().st_size - _TAIL_BYTES))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def read_log_tail(self, lines: int = 6) -> list[str]:
        """Return the last lines of output, without blank lines, colours and Java stack frames."""
        shown_lines = [
            line.rstrip()
            for line in _COLOURS.sub("", self.read_output()).splitlines()
            if line.strip() and not line.lstrip().startswith(("at ", "... "))
        ]
        return shown_lines[-lines:]

    def _read_record(self) -> ProcessRecord | None:
        try:
            return ProcessRecord(**json.loads(self.pid_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None

    def _is_ours(self, record: ProcessRecord) -> bool:
        """Return whether a record is of our folder, our PID namespace and the same boot.

        A record of an earlier version, without folder and namespace, counts as ours.
        """
        return record.place is None or (
            record.place == self._read_folder_id()
            and record.pid_namespace == read_pid_namespace()
            and parse_boot(record.birth) == parse_boot(read_birth(os.getpid()) or "")
        )

    def _read_folder_id(self) -> str:
        folder = self.pid_file.parent.stat()
        return f"{folder.st_dev}:{folder.st_ino}"

    @property
    def _program_file(self) -> Path:
        # Earlier versions must be able to read the pid file, so this is stored separately.
        return self.pid_file.with_suffix(".program")

    @property
    def _running_file(self) -> Path:
        return self.pid_file.with_suffix(".running")

    def _acquire(self) -> int:
        """Lock the lock file of the server, and return its descriptor."""
        descriptor = None
        try:
            self.pid_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(self._running_file, os.O_RDWR | os.O_CREAT, 0o600)
            record = self._read_record()
            is_ours = record is None or self._is_ours(record)
            seconds = _ORPHAN_SECONDS if is_ours else _RELEASE_SECONDS
            is_free = wait_until(partial(_try_lock, descriptor), seconds)
        except OSError as error:
            if descriptor is not None:
                os.close(descriptor)
            raise ServiceUnavailable(
                f"{self._running_file} cannot be locked: {error.strerror}",
                hint="use a writable home folder on a file system that supports locks",
            ) from error
        if is_free:
            return descriptor
        os.close(descriptor)
        raise self._build_occupied_error()

    def _is_locked(self) -> bool:
        if self._lock_descriptor is not None:
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
        if record is None or self._is_ours(record):
            return ServiceUnavailable(
                f"{self.name} cannot start: another process uses {folder}",
                hint=f"end that process; `fuser {self._running_file}` shows it",
            )
        return ServiceUnavailable(
            f"{self.name} cannot start: it already runs in {folder}, as process {record.pid}"
            f" of host {record.host}, PID namespace {record.pid_namespace}, since"
            f" {record.started_at}",
            hint="an installation runs in one container or on one machine at a time: run"
            " `rag-assets down` there, or end that container, then start it here",
        )

    def _build_failure(self, problem: str) -> ServiceUnavailable:
        tail = "".join(f"\n  {line[:300]}" for line in self.read_log_tail())
        log_text = f"; its log ends with:{tail}" if tail else "; its log is empty"
        return ServiceUnavailable(
            f"{self.name} {problem}{log_text}", hint=f"see the whole log: {self.log_file}"
        )

    def _signal(self, record: ProcessRecord, number: signal.Signals) -> None:
        if read_birth(record.pid) == record.birth:
            with suppress(ProcessLookupError):
                os.kill(record.pid, number)

    @staticmethod
    def _wait_until_gone(record: ProcessRecord, timeout: float) -> bool:
        return wait_until(lambda: read_birth(record.pid) != record.birth, timeout)

    def _rotate_log(self) -> None:
        self.log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.log_file.stat().st_size > _LOG_BYTES:
                self.log_file.replace(self.log_file.with_name(f"{self.log_file.name}.1"))


class EmbeddedServer(ABC):
    """A server with its data in a folder of the installation, which outlives this process.

    Attributes:
        directory: contains the data, the passwords and the pid file.
    """

    directory: Path
    process: BackgroundProcess

    @abstractmethod
    def start(self, progress: Progress = ignore_progress) -> str:
        """Start the server if it is not running, wait until it answers, and return its URL."""

    @abstractmethod
    def _start(self, progress: Progress) -> None:
        """Start the server and wait until it answers. The caller holds the lock of the process."""

    def is_running(self) -> bool:
        """Return whether the server's process exists."""
        return self.process.find() is not None

    def revive(self, progress: Progress = ignore_progress, *, is_retry: bool = False) -> bool:
        """Start the server again if it died; return whether it was started.

        Args:
            is_retry: whether an earlier attempt failed, so that the server has no record.
        """
        with self.process.lock():
            if self.is_running() or not (is_retry or self.process.has_died()):
                return False
            self._start(progress)
        return True

    def stop(self) -> bool:
        """Disconnect all clients and stop the server; return False if it was not running."""
        return self.process.stop()


def _require_space(log: int, size: int) -> None:
    """Raise an OSError if a log cannot grow.

    Without space for its log, a server would run, but its errors would be lost.
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
