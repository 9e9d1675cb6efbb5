"""The supervisor, with servers that are real processes without a service."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from rag_assets.common.errors import ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.runtime import supervisor
from rag_assets.runtime.liveness import wait_until
from rag_assets.runtime.processes import BackgroundProcess, Progress, ignore_progress
from rag_assets.runtime.supervisor import RestartFile, Supervisor

pytestmark = pytest.mark.slow


class Sleeper:
    """A server that does nothing.

    Args:
        folder: of its files.
        failures: number of starts after the first that fail, without leaving a record.
    """

    def __init__(self, folder: Path, failures: int = 0) -> None:
        self.process = BackgroundProcess(
            "Sleeper", pid_file=folder / "sleeper.pid", log_file=folder / "sleeper.log"
        )
        self.attempts = 0
        self._failures = failures

    def launch(self) -> int:
        return self.process.launch(["sleep", "60"], env=os.environ).pid

    def revive(self, progress: Progress = ignore_progress, *, is_retry: bool = False) -> bool:
        assert is_retry == (self.attempts > 0)
        with self.process.lock():
            # It may have looked dead while it was being stopped.
            if not (is_retry or self.process.has_died()):
                return False
            self.attempts += 1
            if self.attempts <= self._failures:
                self.process.stop_locked(timeout=1)
                raise ServiceUnavailable("Sleeper did not answer")
            self.launch()
        return True


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RestartFile:
    monkeypatch.setattr(supervisor, "_POLL_SECONDS", 0.02)
    (tmp_path / ".local" / "supervisor").mkdir(parents=True)
    return RestartFile(Settings(home=tmp_path))


@contextmanager
def supervised(server: Sleeper, report: RestartFile) -> Iterator[None]:
    running = Supervisor([server], report, lambda line: None, base_seconds=0.05)
    thread = Thread(target=running.run)
    thread.start()
    try:
        yield
    finally:
        running.stop()
        thread.join()
        server.process.stop(timeout=1)


def kill(server: Sleeper) -> None:
    record = server.process.find()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    assert wait_until(lambda: server.process.find() is None, 5)


def test_a_failed_start_is_tried_again_and_reported(tmp_path: Path, report: RestartFile) -> None:
    server = Sleeper(tmp_path, failures=3)
    server.launch()
    errors = set()
    with supervised(server, report):
        kill(server)

        def runs_again() -> bool:
            reported = report.read().get("Sleeper")
            errors.add(reported.error if reported else None)
            return reported is not None and reported.count == 1

        assert wait_until(runs_again, 10)
        assert server.process.find() is not None
    assert server.attempts == 4
    assert "Sleeper did not answer" in errors
    assert report.read()["Sleeper"].error is None


def test_a_server_that_was_stopped_stays_stopped(tmp_path: Path, report: RestartFile) -> None:
    server = Sleeper(tmp_path)
    server.launch()
    with supervised(server, report):
        server.process.stop(timeout=1)
        assert not wait_until(lambda: server.process.find() is not None, 0.3)
    assert server.attempts == 0


def test_a_record_of_another_folder_is_not_that_of_a_dead_server(tmp_path: Path) -> None:
    server = Sleeper(tmp_path / "home")
    server.launch()
    other = Sleeper(tmp_path / "copy")
    other.process.pid_file.parent.mkdir()
    other.process.pid_file.write_text(server.process.pid_file.read_text())
    kill(server)
    assert server.process.has_died()
    assert not other.process.has_died()
