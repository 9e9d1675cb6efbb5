"""Files of the change watcher: its report for the sensor, and the files of Git hooks.

The report lists watched tenants, which the sensor need not poll, and tenants that the watcher will
sync. It is valid while its process lives and keeps touching it, so a killed watcher is noticed
immediately, and a hanging watcher within seconds. A hook creates an empty file with the name of a
changed tenant.
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

_MAX_AGE_SECONDS = 10.0
"""Age at which a report becomes invalid; the watcher touches it every second or two."""


@dataclass(frozen=True, slots=True)
class WatchReport:
    """The report of the running change watcher.

    Attributes:
        watcher: pid and start time of the watcher's process; "" without a watcher.
        watched: tenants for which every change is reported.
        marked: tenants that the watcher syncs or will sync.
        changed: tenants that have changed since their current sync started.
    """

    watcher: str
    watched: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()


NO_WATCHER = WatchReport("")


class WatchReportFile:
    """The file in which the change watcher of an installation writes its report."""

    def __init__(self, settings: Settings) -> None:
        self._path = settings.local / "forkserver" / "watched.json"
        self._written: WatchReport | None = None

    def write(
        self, watched: frozenset[str], marked: frozenset[str], changed: frozenset[str] = frozenset()
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
        """Return the report of the running watcher; NO_WATCHER without one, or if it hangs."""
        try:
            touched_at = self._path.stat().st_mtime
            content = json.loads(self._path.read_text())
            watcher = str(content["watcher"])
            pid, _, birth = watcher.partition(" ")
            is_alive = read_birth(int(pid)) == birth
            # A watcher of an earlier version does not report changed tenants.
            names = (content["watched"], content["marked"], content.get("changed", ()))
            report = WatchReport(watcher, *map(frozenset, names))
        except (OSError, ValueError, KeyError, TypeError):
            return NO_WATCHER
        return (
            report if is_alive and abs(time.time() - touched_at) < _MAX_AGE_SECONDS else NO_WATCHER
        )


def get_hooked_folder(local: Path) -> Path:
    """Return the folder in which hooks create files, each with the name of a tenant."""
    return local / "hooked"


class HookedTenants:
    """The tenants that Git hooks report, each by an empty file in a folder."""

    def __init__(self, local: Path) -> None:
        self._folder = get_hooked_folder(local)

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
            # Hooks that run after this are seen at the next call.
            (self._folder / name).unlink(missing_ok=True)
        return frozenset(names)
