"""Supervision of the embedded servers, which starts a server again when it dies.

The supervisor is a process, started by `up`, that needs no server. It restarts a server if the
record of the server names an ended process of this home folder. `down` removes the record of a
server, so the server is not restarted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event, Lock, Thread
from typing import Any, Final

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.runtime.processes import EmbeddedServer

_POLL_SECONDS: Final = 1.0
_MAX_DELAY_SECONDS: Final = 300.0
_STABLE_SECONDS: Final = 600.0
"""Seconds after which a server counts as stable, and is restarted immediately when it dies."""
_STOP_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True)
class Restarts:
    """Restarts of one server since `up`.

    Attributes:
        count: number of successful restarts.
        last_at: when the last restart succeeded, ISO 8601.
        error: why the server cannot be started; None while it runs.
        next_at: time of the next attempt.
    """

    count: int = 0
    last_at: str | None = None
    error: str | None = None
    next_at: str | None = None

    def describe(self, name: str) -> str | None:
        """Return a warning about the server; None without restarts and errors."""
        if self.error is not None:
            return (
                f"{name} died and cannot be started again: {self.error}; the next attempt is at"
                f" {self.next_at}"
            )
        if not self.count:
            return None
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{name} died and was started again {times} since `up`, the last time {self.last_at}"


class RestartFile:
    """The file in which the supervisor reports the restarts of each server."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.local / "supervisor" / "restarts.json"

    def read(self) -> dict[str, Restarts]:
        """Return the restarts by name of the server; empty without a report."""
        try:
            content = json.loads(self._path.read_text())
            return {str(name): Restarts(**values) for name, values in content.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def write(self, restarts: Mapping[str, Restarts]) -> None:
        """Replace the report with these restarts, by name of the server."""
        content = {name: asdict(values) for name, values in restarts.items()}
        write_atomically(self._path, json.dumps(content))

    def remove(self) -> None:
        """Remove the report, because the servers were stopped."""
        self._path.unlink(missing_ok=True)


class Supervisor:
    """A supervisor that restarts servers that died.

    Args:
        servers: the servers to supervise, each in its own thread.
        base_seconds: delay after the first failed attempt in a row, which doubles with each further
            attempt.
    """

    def __init__(
        self,
        servers: Sequence[EmbeddedServer],
        report: RestartFile,
        log: Callable[[str], None],
        *,
        base_seconds: float = 1.0,
    ) -> None:
        self._servers = servers
        self._report = report
        self._log = log
        self._base_seconds = base_seconds
        self._stopped = Event()
        self._lock = Lock()
        self._restarts = {server.process.name: Restarts() for server in servers}

    def stop(self) -> None:
        """Make `run` return; restarts in progress get some seconds to finish."""
        self._stopped.set()

    def run(self) -> None:
        """Supervise the servers, each in a thread, until `stop` is called."""
        self._report.write(self._restarts)
        threads = [Thread(target=self._supervise, args=(s,), daemon=True) for s in self._servers]
        for thread in threads:
            thread.start()
        self._stopped.wait()
        deadline = time.monotonic() + _STOP_SECONDS
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _supervise(self, server: EmbeddedServer) -> None:
        name, attempts, started = server.process.name, 0, -_STABLE_SECONDS
        is_retry = False
        while not self._stopped.wait(_POLL_SECONDS):
            if not is_retry and not server.process.has_died():
                continue
            if time.monotonic() - started >= _STABLE_SECONDS and not is_retry:
                attempts = 0
            if self._stopped.wait(self._compute_delay(attempts)):
                return
            attempts = min(attempts + 1, 20)
            is_retry = not self._revive(server, is_retry=is_retry, attempts=attempts)
            started = time.monotonic()
            if not is_retry:
                self._log(f"{name}: running again")

    def _revive(self, server: EmbeddedServer, *, is_retry: bool, attempts: int) -> bool:
        """Start a server again and report the result; return False if that failed."""
        name = server.process.name
        try:
            was_started = server.revive(self._log, is_retry=is_retry)
        except (RagAssetsError, OSError) as error:
            message = error.message if isinstance(error, RagAssetsError) else str(error)
            delay = timedelta(seconds=self._compute_delay(attempts))
            next_at = _format_time(datetime.now(UTC) + delay)
            self._log(f"{name}: {message}")
            self._update(name, error=message.splitlines()[0], next_at=next_at)
            return False
        changes: dict[str, Any] = {"error": None, "next_at": None}
        if was_started:
            changes["count"] = self._restarts[name].count + 1
            changes["last_at"] = _format_time(datetime.now(UTC))
        self._update(name, **changes)
        return True

    def _compute_delay(self, attempts: int) -> float:
        """Return the seconds before the next attempt, after this many attempts in a row."""
        return (
            min(_MAX_DELAY_SECONDS, self._base_seconds * 2 ** (attempts - 1)) if attempts else 0.0
        )

    def _update(self, name: str, **changes: Any) -> None:
        with self._lock:
            self._restarts[name] = replace(self._restarts[name], **changes)
            try:
                self._report.write(self._restarts)
            except OSError as write_error:  # A full disk must not stop the supervision.
                self._log(f"restarts.json cannot be written: {write_error.strerror}")


def _format_time(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
