"""Files through which the change watcher communicates: its report, and the files of hooks.

The report names watched tenants, and tenants that the watcher is about to sync. From it, the sensor
learns which tenants it need not poll. It is valid while the process that wrote it lives (checked by
pid and start time) and keeps touching it. So a killed watcher is noticed immediately, and a hanging
watcher within seconds. Hooks create an empty file named like a tenant that has changed.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.runtime.liveness import read_birth

_MOST_SECONDS = 10.0
"""Age in seconds from which a report is invalid; the watcher touches it every second or two."""


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The report of a living watcher.

    Attributes:
        watcher: the process.
        watched: tenants with sources that the watcher observes completely.
        marked: tenants that the watcher will sync as soon as it can.
        changed: marked tenants whose sync is in progress and that have changed since it started.
    """

    watcher: str
    watched: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


NO_WATCHER = WatchReport("")


class WatchReportFile:
    """The report file of one installation."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.local / "forkserver" / "watched.json"
        self._written: WatchReport | None = None

    def write(
        self,
        watched: frozenset[str],
        marked: frozenset[str],
        changed: frozenset[str] = frozenset(),
    ) -> None:
        """Write this process's report; touch the file if the report has not changed."""
        pid = os.getpid()
        report = WatchReport(f"{pid} {read_birth(pid)}", watched, marked, changed)
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
        """Delete the report."""
        self._written = None
        self._path.unlink(missing_ok=True)

    def read(self) -> WatchReport:
        """Return the report of a living watcher; NO_WATCHER if there is none."""
        try:
            touched = self._path.stat().st_mtime
            content = json.loads(self._path.read_text())
            watcher = str(content["watcher"])
            pid, _, birth = watcher.partition(" ")
            lives = read_birth(int(pid)) == birth
            # A watcher of an earlier version does not report changed tenants.
            names = (content["watched"], content["marked"], content.get("changed", ()))
            report = WatchReport(watcher, *map(frozenset, names))
        except (OSError, ValueError, KeyError, TypeError):
            return NO_WATCHER
        return report if lives and abs(time.time() - touched) < _MOST_SECONDS else NO_WATCHER


def hooked_folder(local: Path) -> Path:
    """Return the folder in which hooks create files, each with the name of a tenant."""
    return local / "hooked"


class HookedTenants:
    """Reads and removes the files that hooks have created."""

    def __init__(self, local: Path) -> None:
        self._folder = hooked_folder(local)

    def take(self) -> frozenset[str]:
        """Return the tenants that hooks have reported since the last call.

        Raises:
            OSError: the folder cannot be read or changed.
        """
        try:
            names = os.listdir(self._folder)  # noqa: PTH208 - names are all that is needed
        except FileNotFoundError:
            return frozenset()
        for name in names:
            # The files are removed before the result is used, so that hooks that run later are seen
            # at the next call.
            (self._folder / name).unlink(missing_ok=True)
        return frozenset(names)
