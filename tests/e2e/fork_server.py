"""Run `rag-assets` commands in forks of one process that has imported everything, and kill them.

A fork needs no imports, so a test can kill dozens of commands. Each is the real command line in a
process of its own, and no connection is opened before the fork. Jobs are read from standard input
as JSON lines, and outcomes are written to standard output (see `Job` and `Outcome` in
tests/e2e/killing.py).

A command can be killed at *boundaries*: right before a catalog transaction with changes commits,
before a commit to the lake, and before a request that writes to Elasticsearch. They are found from
outside, so the product needs no hooks.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

import pytest

from rag_assets.cli.fork_server import prepare
from tests.newer_rules import (
    ALSO_FOUND,
    NO_WAIT,
    TESTED_BOUNDS,
    find_also,
    merge_near,
    wait_for_no_history,
)

_WRITING_SQL = re.compile(r"\s*(INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_WITHIN = ("rag_catalog.edges", "rag_catalog.derivations")
"""Tables of which a write is a boundary although its transaction goes on."""
_ONCE_A_MINUTE = "rag_catalog.installation_clock"
"""A table that is written by whichever command comes first: it is no boundary of one command."""
_READING_PATHS = ("_search", "_msearch", "_count", "_pit", "_mget", "_mapping", "_settings")


class Boundaries:
    """Counts the boundaries of a process, and ends or stops the process at one of them.

    Args:
        kill_before: the number of the boundary, from 1; 0 only counts.
        stop_before: the name of a boundary at which to stop once, until the process is continued.
        report: the file to which the name of each boundary is appended.
    """

    def __init__(self, kill_before: int, stop_before: str | None, report: Path) -> None:
        self._left = kill_before
        self._stop_before = stop_before
        self._report = report
        self._guard = threading.Lock()

    def reach(self, name: str) -> None:
        """Record that a boundary is reached."""
        with self._guard:
            self._left -= 1
            with self._report.open("a") as report:
                report.write(name + "\n")
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            if name == self._stop_before:
                self._stop_before = None
                os.kill(os.getpid(), signal.SIGSTOP)

    def watch(self) -> None:
        """Intercept all boundaries of this process."""
        self._watch_catalog()
        self._watch_lake()
        self._watch_elasticsearch()

    def _watch_catalog(self) -> None:
        from sqlalchemy import Engine, event

        def executing(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            # Dagster writes its own tables with another driver; random kills cover those.
            if connection.dialect.driver != "psycopg" or not _WRITING_SQL.match(statement):
                return
            table = statement.split()[1 if statement.lstrip()[0] in "uU" else 2]
            if table == _ONCE_A_MINUTE:
                return
            if connection.connection.dbapi_connection.autocommit:
                self.reach(f"catalog {table}")
            else:
                connection.info["writes"] = table
                if table in _WITHIN:
                    self.reach(f"within {table}")

        def committing(connection: Any) -> None:
            table = connection.info.pop("writes", None)
            if table is not None:
                self.reach(f"catalog {table}")

        event.listen(Engine, "before_cursor_execute", executing)
        event.listen(Engine, "commit", committing)

    def _watch_lake(self) -> None:
        from rag_assets.storage.lake import table

        write = table.write_deltalake

        def writing(url: str, *arguments: Any, **options: Any) -> None:
            self.reach(f"lake {_table_of(url)}")
            write(url, *arguments, **options)

        table.write_deltalake = writing  # type: ignore[assignment]

    def _watch_elasticsearch(self) -> None:
        from elastic_transport import Transport

        perform = Transport.perform_request

        def performing(transport: Any, method: str, target: str, **options: Any) -> Any:
            path = target.partition("?")[0].rsplit("/", 1)[-1]
            if method not in {"HEAD", "GET"} and path not in _READING_PATHS:
                self.reach(f"elasticsearch {method} {path if path[0] == '_' else 'index'}")
            return perform(transport, method, target, **options)

        Transport.perform_request = performing  # type: ignore[method-assign, assignment]


def _table_of(url: str) -> str:
    """Return the name of the table whose folder is named by its columns, or by its embedder."""
    return url.rstrip("/").rsplit("/", 2)[-2]


def main() -> None:
    """Serve until standard input closes; the argument is the installation's folder."""
    prepare(Path(sys.argv[1]) / ".local")
    # Its import takes four seconds of CPU, and each command that judges a build needs it.
    importlib.import_module("great_expectations")
    _shorten_dagsters_waits()
    answers = os.fdopen(os.dup(1), "w")
    _answer(answers, {"threads": threading.active_count()})
    for line in sys.stdin:
        _carry_out(json.loads(line), answers)


def _shorten_dagsters_waits() -> None:
    """Let Dagster retry a lost Postgres as often as usual, but not for 11 seconds per event."""
    from dagster_postgres import utils

    retries, seconds = utils.retry_pg_connection_fn.__defaults__
    utils.retry_pg_connection_fn.__defaults__ = (retries, seconds / 20)


def _answer(answers: Any, value: dict[str, Any]) -> None:
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def _carry_out(job: dict[str, Any], answers: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / name for name in ("out", "err", "boundaries")}
        for path in files.values():
            path.touch()
        pid = os.fork()
        if pid == 0:
            _as_command(job, files)
        if job["stop_before"] is not None:
            _wait_until_told(pid, answers)
        status = _wait(pid, job["kill_after"])
        read = {name: path.read_text() for name, path in files.items()}
    outcome = {
        "code": os.waitstatus_to_exitcode(status),
        "out": read["out"],
        "err": read["err"],
        "boundaries": read["boundaries"].splitlines(),
    }
    _answer(answers, outcome)


def _wait_until_told(pid: int, answers: Any) -> None:
    """Wait until the command stops, report it, and continue it when the next line is read."""
    _, status = os.waitpid(pid, os.WUNTRACED)
    _answer(answers, {"stopped": os.WIFSTOPPED(status)})
    sys.stdin.readline()
    os.kill(pid, signal.SIGCONT)


def _wait(pid: int, kill_after: float | None) -> int:
    if kill_after is not None:
        deadline = time.monotonic() + kill_after
        while time.monotonic() < deadline:
            done, status = os.waitpid(pid, os.WNOHANG)
            if done:
                return status
            time.sleep(0.002)
        os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def _as_command(job: dict[str, Any], files: dict[str, Path]) -> None:
    """Become the command; never return."""
    code = 1
    try:
        _redirect(0, os.devnull, os.O_RDONLY)
        _redirect(1, files["out"], os.O_WRONLY)
        _redirect(2, files["err"], os.O_WRONLY)
        os.environ.update(job["environment"])
        if job["kill_before"] is not None or job["stop_before"] is not None:
            number = job["kill_before"] or 0
            Boundaries(number, job["stop_before"], files["boundaries"]).watch()
        _apply_settings()
        from rag_assets.cli import main as command_line

        command_line(job["arguments"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _apply_settings() -> None:
    """Apply the changes that the test's environment variables request; see tests/newer_rules.py."""
    patched = pytest.MonkeyPatch()
    if word := os.environ.get(ALSO_FOUND):
        find_also(word, patched)
    if NO_WAIT in os.environ:
        wait_for_no_history(patched)
    if embedder := os.environ.get(TESTED_BOUNDS):
        merge_near(embedder, patched)


def _redirect(number: int, path: Path | str, flags: int) -> None:
    opened = os.open(path, flags)
    os.dup2(opened, number)
    os.close(opened)


if __name__ == "__main__":
    main()
