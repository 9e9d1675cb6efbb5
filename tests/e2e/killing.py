"""Start the fork server of tests/e2e/fork_server.py, and run commands in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
KILLED = -9


def kills(fewest: int) -> int:
    """Return how often to kill each kind of work: RAG_ASSETS_TEST_KILLS, but at least `fewest`."""
    return max(fewest, int(os.environ.get("RAG_ASSETS_TEST_KILLS", "0")))


@dataclass(frozen=True)
class Job:
    """A command, and the moment at which it is killed.

    Attributes:
        kill_before: number of the boundary, from 1, right before which it is killed; 0 only counts
            boundaries; None does not watch them.
        kill_after: seconds after which it is killed.
        stop_before: name of a boundary at which it stops until it is continued.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    kill_before: int | None = None
    kill_after: float | None = None
    stop_before: str | None = None


@dataclass(frozen=True)
class Outcome:
    """The result of a command, with the names of the boundaries in the order they were reached."""

    code: int
    out: str
    err: str
    boundaries: list[str]

    @property
    def json(self) -> Any:
        """Return the JSON that the command printed."""
        return json.loads(self.out)


class ForkServer:
    """Runs commands one after the other, each in its own process."""

    def __init__(self, process: subprocess.Popen[str], environment: Mapping[str, str]) -> None:
        self._process = process
        self._environment = dict(environment)

    def run(
        self,
        *arguments: str,
        kill_before: int | None = None,
        kill_after: float | None = None,
        **variables: str,
    ) -> Outcome:
        """Run a command until it ends or is killed.

        Args:
            kill_before, kill_after: see Job.
            variables: additional environment variables.
        """
        environment = {**self._environment, **variables}
        self._write(asdict(Job(arguments, environment, kill_before, kill_after)))
        return Outcome(**self._read())

    @contextmanager
    def stopped(self, *arguments: str, before: str) -> Iterator[Callable[[], Outcome]]:
        """Run a command until it stops before a boundary; the yielded function continues it."""
        self._write(asdict(Job(arguments, self._environment, stop_before=before)))
        answer = self._read()
        assert answer == {"stopped": True}, f"{arguments} never came to {before}"
        outcomes: list[Outcome] = []

        def go_on() -> Outcome:
            self._write({})
            outcomes.append(Outcome(**self._read()))
            return outcomes[0]

        try:
            yield go_on
        finally:
            if not outcomes:
                go_on()

    def _write(self, value: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(value) + "\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the fork server died"
        return json.loads(line)


@contextmanager
def fork_server(environment: Mapping[str, str]) -> Iterator[ForkServer]:
    """Start a fork server for commands with this environment."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-W", "ignore", "-m", "tests.e2e.fork_server"),
            environment["RAG_ASSETS_HOME"],
        ],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        server = ForkServer(process, environment)
        assert server._read() == {"threads": 1}
        yield server
    finally:
        process.communicate()
