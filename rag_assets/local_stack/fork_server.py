"""The fork server and the change watcher as processes of the installation."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from rag_assets.common.settings import Settings
from rag_assets.forkserver.client import DISABLED
from rag_assets.forkserver.protocol import SOCKET, connect
from rag_assets.local_stack.processes import BackgroundProcess, Progress, silent
from rag_assets.local_stack.program import fingerprint_program

_START_SECONDS = 120.0


class ForkServerProcess:
    """Starts and finds the fork server of one installation.

    Args:
        settings: contain the home folder of the installation.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.process = BackgroundProcess(
            "Fork server",
            pid_file=(settings.home / SOCKET).with_name("forkserver.pid"),
            log_file=settings.local / "logs" / "fork-server.log",
        )

    def answers(self) -> bool:
        """Return whether the fork server accepts connections."""
        try:
            connect(str(self._settings.home / SOCKET), 2.0).close()
        except (OSError, ValueError):
            return False
        return True

    def start(self, progress: Progress = silent) -> None:
        """Start the fork server unless it runs or is disabled, and wait until it answers.

        Raises:
            ServiceUnavailable: the fork server does not start; the message quotes its log.
        """
        if not _is_wanted():
            return
        with self.process.lock():
            if self.process.reuse(self.answers, timeout=_START_SECONDS):
                return
            progress("Fork server: starting")
            self._launch()
            self.process.wait_until(self.answers, timeout=_START_SECONDS)
            progress("Fork server: running")

    def revive(self) -> None:
        """Start the fork server again if it died; do not wait for it."""
        if self.process.pid_file.exists() and self.process.find() is None:
            with self.process.lock():
                if self.process.pid_file.exists() and self.process.find() is None:
                    self._launch()

    def _launch(self) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "rag_assets.cli.fork_server"]
        environment = {**os.environ, **self._settings.address_variables()}
        with self.process.hold() as held:
            # The server gets the lock's descriptor as an argument, so that it can close the
            # descriptor in forks. Otherwise a fork that outlives the server would keep the lock.
            command.append(str(held))
            self.process.launch(
                command,
                env=_neutral(environment),
                cwd=self._settings.home,
                program=fingerprint_program(self._settings),
            )


class ChangeWatcherProcess:
    """Starts and finds the change watcher of one installation.

    Args:
        settings: contain the home folder of the installation.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.process = BackgroundProcess(
            "Change watcher",
            pid_file=(settings.home / SOCKET).with_name("watcher.pid"),
            log_file=settings.local / "logs" / "change-watcher.log",
        )

    def start(self, progress: Progress = silent) -> None:
        """Start the watcher unless it runs, or the fork server that runs its syncs is disabled."""
        if not _is_wanted():
            return
        with self.process.lock():
            if self.process.find() is not None:
                return
            progress("Change watcher: starting")
            command = [sys.executable, "-m", "rag_assets.cli.change_watcher"]
            environment = {**os.environ, **self._settings.address_variables()}
            self.process.launch(
                command,
                env=environment,
                cwd=self._settings.home,
                program=fingerprint_program(self._settings),
            )


def revive(settings: Settings) -> None:
    """Start the fork server again if `up` started it and it died; do not wait for it."""
    ForkServerProcess(settings).revive()


def _is_wanted() -> bool:
    return os.environ.get(DISABLED) != "0" and sys.platform == "linux"


def _neutral(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that are added for Dagster's processes."""
    added = ("PYTHONUNBUFFERED", "PYTHONWARNINGS", DISABLED)
    return {name: value for name, value in environment.items() if name not in added}
