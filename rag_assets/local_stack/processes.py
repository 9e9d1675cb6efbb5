"""Background processes: servers that outlive the command that started them.

A `BackgroundProcess` is one server in a session of its own, known by a pid file. The file names
the process by its pid *and* the moment it began, so that a pid which the system has reused
is never mistaken for the server, let alone signalled.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.private_files import write_atomically
from rag_assets.local_stack.liveness import adopt, birth_of, end_session, wait_for

Progress: TypeAlias = Callable[[str], None]

_POLL_SECONDS = 0.1
_LOG_BYTES = 8 * 1024 * 1024
_TAIL_BYTES = 16 * 1024
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def silent(_message: str) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True)
class Account:
    """The system account that a process runs as when it must not be root."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class ProcessRecord:
    """The content of the pid file.

    Attributes:
        pid: the process.
        birth: its start time, in a form that two processes of one pid never share.
        port: the loopback port it listens on, if any.
        started_at: its start time for people (ISO 8601, UTC).
    """

    pid: int
    birth: str
    port: int | None
    started_at: str


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for its holder; the system frees it when a holder dies."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class BackgroundProcess:
    """One detached server process with its pid file and log.

    Args:
        name: as shown to people, such as "Postgres".
        pid_file: the file with its `ProcessRecord`; a lock file is beside it.
        log_file: receives its output. Over 8 MB it is rotated at a start; one previous log is kept.
        stop_signal: requests an orderly shutdown.
        kill_signal: ends it if the shutdown fails.
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

    def lock(self) -> AbstractContextManager[None]:
        """Lock for starting and stopping, so that two commands start one server."""
        return exclusive(self.pid_file.with_suffix(".lock"))

    def find(self) -> ProcessRecord | None:
        """The running process, or None; costs well under a millisecond."""
        try:
            record = ProcessRecord(**json.loads(self.pid_file.read_text()))
        except (OSError, ValueError, TypeError):
            return None
        return record if birth_of(record.pid) == record.birth else None

    def start(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        healthy: Callable[[], bool],
        timeout: float,
        port: int | None = None,
        cwd: Path | None = None,
        account: Account | None = None,
        descriptors: Sequence[int] = (),
    ) -> ProcessRecord:
        """Start the server and wait until it is healthy. Call it with the lock held.

        Args:
            command: the program and its arguments.
            env: its complete environment.
            healthy: called ten times a second.
            timeout: seconds it may take to become healthy.
            port: recorded in the pid file.
            cwd: its working folder; by default that of its pid file.
            account: the account it runs as; by default that of this process.
            descriptors: open files that it inherits under the same numbers.

        Raises:
            ServiceUnavailable: it ended or did not become healthy in time; nothing is left running.
        """
        self.launch(command, env=env, port=port, cwd=cwd, account=account, descriptors=descriptors)
        try:
            return self.wait_until(healthy, timeout=timeout)
        except ServiceUnavailable:
            self.end(timeout=5)
            raise

    def launch(
        self,
        command: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        port: int | None = None,
        cwd: Path | None = None,
        account: Account | None = None,
        descriptors: Sequence[int] = (),
    ) -> ProcessRecord:
        """Start the server without waiting for it. Call it with the lock held."""
        self._rotate_log()
        try:
            with self.log_file.open("ab") as log:
                self._log_begins = log.tell()
                child = subprocess.Popen(  # noqa: S603  (our own command, no shell)
                    [str(part) for part in command],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=dict(env),
                    cwd=cwd or self.pid_file.parent,
                    start_new_session=True,
                    user=account.uid if account else None,
                    group=account.gid if account else None,
                    extra_groups=[] if account else None,
                    umask=0o077,
                    pass_fds=descriptors,
                )
        except OSError as error:
            raise ServiceUnavailable(f"{self.name} could not be started: {error}") from error
        adopt(child)
        record = ProcessRecord(
            pid=child.pid,
            birth=birth_of(child.pid) or "",
            port=port,
            started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        write_atomically(self.pid_file, json.dumps(asdict(record)))
        return record

    def reuse(self, healthy: Callable[[], bool], *, timeout: float) -> bool:
        """Wait for a server that runs already; False when none does, or it ends meanwhile.

        Raises:
            ServiceUnavailable: it runs, and is not healthy after ``timeout`` seconds.
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
            ServiceUnavailable: it ended, or is not healthy after ``timeout`` seconds.
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

    def stop(self, *, timeout: float = 30) -> bool:
        """End the server and what it started; False when it was not running."""
        if not self.pid_file.exists():
            return False
        with self.lock():
            return self.end(timeout=timeout)

    def end(self, *, timeout: float) -> bool:
        """Stop the server. Call it with the lock held."""
        record = self.find()
        if record is not None:
            self._signal(record, self._stop_signal)
            if not self._gone(record, timeout):
                self._signal(record, self._kill_signal)
                if not self._gone(record, 10):
                    self._signal(record, signal.SIGKILL)
                    self._gone(record, 5)
            end_session(record.pid)
        self.pid_file.unlink(missing_ok=True)
        return record is not None

    def output(self) -> str:
        """The server's output since this process launched it; at most the last 16 kB."""
        try:
            with self.log_file.open("rb") as log:
                log.seek(max(self._log_begins, self.log_file.stat().st_size - _TAIL_BYTES))
                return log.read().decode(errors="replace")
        except OSError:
            return ""

    def log_tail(self, lines: int = 6) -> list[str]:
        """The last lines of `output`, without blank ones, colours and Java's stack frames."""
        shown = [
            line.rstrip()
            for line in _COLOURS.sub("", self.output()).splitlines()
            if line.strip() and not line.lstrip().startswith(("at ", "... "))
        ]
        return shown[-lines:]

    def _failure(self, what: str) -> ServiceUnavailable:
        tail = "".join(f"\n  {line[:300]}" for line in self.log_tail())
        quoted = f"; its log ends with:{tail}" if tail else "; its log is empty"
        return ServiceUnavailable(
            f"{self.name} {what}{quoted}", hint=f"the whole log is {self.log_file}"
        )

    def _signal(self, record: ProcessRecord, number: signal.Signals) -> None:
        if birth_of(record.pid) == record.birth:
            with suppress(ProcessLookupError):
                os.kill(record.pid, number)

    @staticmethod
    def _gone(record: ProcessRecord, timeout: float) -> bool:
        return wait_for(lambda: birth_of(record.pid) != record.birth, timeout)

    def _rotate_log(self) -> None:
        self.log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            if self.log_file.stat().st_size > _LOG_BYTES:
                self.log_file.replace(self.log_file.with_name(f"{self.log_file.name}.1"))
