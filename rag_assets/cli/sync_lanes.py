"""Syncs of many tenants at the same time, in forks of the fork server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from threading import Lock
from typing import Any

from rag_assets.cli.output import warn
from rag_assets.forkserver.client import DISABLED, ForkedProcess
from rag_assets.forkserver.protocol import SOCKET

_STANDARD_ERROR = 2
_MOST_TENANTS = 25
_FORKS_A_LANE = 4
"""Number of forks per lane that share the remaining tenants; more forks keep lanes busy longer."""


class SyncLanes:
    """Runs `sync` for a few tenants at a time, in as many lanes as there are cores.

    Args:
        home: the installation's folder.
        options: further arguments of the command.
    """

    def __init__(self, home: Path, options: Sequence[str]) -> None:
        self._home = home
        self._options = options
        self._count = len(os.sched_getaffinity(0))
        self._processes: set[ForkedProcess] = set()
        self._lock = Lock()
        self._interrupted = False

    def sync(self, tenants: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Sync tenants, and yield the JSON result of each.

        A tenant without a result was not synced, because no fork server runs or the fork was
        killed.
        """
        if not tenants or self._count < 2 or os.environ.get(DISABLED) == "0":  # noqa: PLR2004
            return
        with ThreadPoolExecutor(self._count, thread_name_prefix="sync") as lanes:
            try:
                syncs = [lanes.submit(self._sync, part) for part in shares(tenants, self._count)]
                for sync in as_completed(syncs):
                    yield from sync.result()
            except BaseException:
                self._interrupt()
                lanes.shutdown(wait=True, cancel_futures=True)
                raise

    def _interrupt(self) -> None:
        with self._lock:
            self._interrupted = True
            for process in self._processes:
                process.interrupt()

    def _sync(self, tenants: Sequence[str]) -> list[dict[str, Any]]:
        process = self._start(["sync", *tenants, *self._options, "--in-turn", "--json"])
        if process is None:
            return []
        try:
            process.stdin.close()
            answer = process.stdout.read()
            process.wait()
        finally:
            with self._lock:
                self._processes.discard(process)
            process.stdout.close()
            process.close()
        return _list_results(answer, tenants)

    def _start(self, arguments: Sequence[str]) -> ForkedProcess | None:
        with self._lock:
            if self._interrupted:
                return None
            process = ForkedProcess.start(
                str(self._home / SOCKET),
                arguments,
                os.environ,
                str(Path.cwd()),
                error=_STANDARD_ERROR,
            )
            if process is not None:
                self._processes.add(process)
        return process


def shares(tenants: Sequence[str], lanes: int) -> Iterator[Sequence[str]]:
    """Yield groups of tenants, one group for each fork.

    The groups are few, because each fork reads the whole configuration.

    Args:
        tenants: their ids.
        lanes: number of forks that work at once.
    """
    first = 0
    while left := len(tenants) - first:
        size = min(_MOST_TENANTS, 1 + left // (lanes * _FORKS_A_LANE))
        yield tenants[first : first + size]
        first += size


def _list_results(answer: bytes, tenants: Sequence[str]) -> list[dict[str, Any]]:
    try:
        printed = json.loads(answer)
    except ValueError:
        warn(f"a process that synced {', '.join(tenants)} was ended; they are synced again")
        return []
    results: list[dict[str, Any]] = printed.get("tenants") or [printed]
    return [result for result in results if "tenant" in result]
