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
_MAX_TENANTS_PER_FORK = 25
_FORKS_PER_LANE = 4
"""Number of forks per lane among which the remaining tenants are divided."""


class SyncLanes:
    """Runs `sync` for groups of tenants in concurrent forks, at most one per core."""

    def __init__(self, home: Path, options: Sequence[str]) -> None:
        self._home = home
        self._options = options
        self._count = len(os.sched_getaffinity(0))
        self._processes: set[ForkedProcess] = set()
        self._lock = Lock()
        self._is_interrupted = False

    def sync(self, tenants: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Sync tenants, and yield the JSON result of each.

        A tenant without a result was not synced: no fork server runs, or the fork was killed.
        """
        if not tenants or self._count < 2 or os.environ.get(DISABLED) == "0":  # noqa: PLR2004
            return
        with ThreadPoolExecutor(self._count, thread_name_prefix="sync") as lanes:
            try:
                syncs = [
                    lanes.submit(self._sync, part) for part in split_tenants(tenants, self._count)
                ]
                for sync in as_completed(syncs):
                    yield from sync.result()
            except BaseException:
                self._interrupt()
                lanes.shutdown(wait=True, cancel_futures=True)
                raise

    def _interrupt(self) -> None:
        with self._lock:
            self._is_interrupted = True
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
        return _parse_results(answer, tenants)

    def _start(self, arguments: Sequence[str]) -> ForkedProcess | None:
        with self._lock:
            if self._is_interrupted:
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


def split_tenants(tenants: Sequence[str], lanes: int) -> Iterator[Sequence[str]]:
    """Split tenants into groups; each fork syncs one group.

    Few groups are better, because each fork reads the whole configuration.
    """
    first = 0
    while remaining := len(tenants) - first:
        size = min(_MAX_TENANTS_PER_FORK, 1 + remaining // (lanes * _FORKS_PER_LANE))
        yield tenants[first : first + size]
        first += size


def _parse_results(answer: bytes, tenants: Sequence[str]) -> list[dict[str, Any]]:
    try:
        printed = json.loads(answer)
    except ValueError:
        warn(f"the process that synced {', '.join(tenants)} was killed; they are synced again")
        return []
    results: list[dict[str, Any]] = printed.get("tenants") or [printed]
    return [result for result in results if "tenant" in result]
