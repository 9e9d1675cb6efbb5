"""The change watcher's report: which tenants it watches, and which wait for a sync of it.

A file in the installation's folder, by which the sensor knows whom it need not look at all the
time. It counts while the process that wrote it lives, by pid and time of birth, and touches it: a
watcher that was killed is noticed at once, one that hangs within seconds.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.local_stack.liveness import birth_of

_MOST_SECONDS = 10.0
"""Without a sign of life; it gives one every second or two."""


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What a living watcher says.

    Attributes:
        watcher: the process.
        watched: tenants of whose changes it is told, all of them.
        marked: tenants that it has synced as soon as it can.
        changed: those of them that have changed since their sync began, which is in progress.
    """

    watcher: str
    watched: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


NO_WATCHER = WatchReport("")


class WatchReportFile:
    """The file of one installation.

    Args:
        settings: its home folder.
    """

    def __init__(self, settings: Settings) -> None:
        self._path = settings.local / "forkserver" / "watched.json"
        self._written: WatchReport | None = None

    def write(
        self,
        watched: frozenset[str],
        marked: frozenset[str],
        changed: frozenset[str] = frozenset(),
    ) -> None:
        """Report for this process; a sign of life if it is the same again."""
        pid = os.getpid()
        report = WatchReport(f"{pid} {birth_of(pid)}", watched, marked, changed)
        if report == self._written:
            os.utime(self._path)
            return
        content = {
            "watcher": report.watcher,
            "watched": sorted(watched),
            "marked": sorted(marked),
            "changed": sorted(changed),
        }
        write_atomically(self._path, json.dumps(content))
        self._written = report

    def remove(self) -> None:
        """Take the report back."""
        self._written = None
        self._path.unlink(missing_ok=True)

    def read(self) -> WatchReport:
        """The report of a watcher that lives; NO_WATCHER if there is none."""
        try:
            touched = self._path.stat().st_mtime
            content = json.loads(self._path.read_text())
            watcher = str(content["watcher"])
            pid, _, birth = watcher.partition(" ")
            lives = birth_of(int(pid)) == birth
            # A watcher of an earlier version does not report what has changed.
            names = (content["watched"], content["marked"], content.get("changed", ()))
            report = WatchReport(watcher, *map(frozenset, names))
        except (OSError, ValueError, KeyError, TypeError):
            return NO_WATCHER
        return report if lives and abs(time.time() - touched) < _MOST_SECONDS else NO_WATCHER
