"""The change watcher, which syncs tenants within seconds after their sources change.

The file system reports changes in folders, hooks create a file named like the tenant, and the
catalog reports pushed records and requests to reindex. Each such report marks a tenant, and a fork
of the fork server syncs the marked tenants. Events may be lost, and network file systems send none.
So Dagster's sensor remains authoritative: at every tick it lists the sources that are not watched,
and in rotation also the watched ones. The command line provides the program that a fork
executes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from threading import Event, Thread

from rag_assets.common.settings import Settings
from rag_assets.runtime.sync_lanes import LATEST_SECONDS, QUIET_SECONDS, Lanes, Marks, OpenFollower
from rag_assets.runtime.watch_report import HookedTenants, WatchReportFile
from rag_assets.runtime.watched_folders import SourceFolders, TenantSources, find_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TENANTS

_WRITTEN_QUIET, _WRITTEN_LATEST = 3.0, 5.0
"""Delays in seconds for a file that is still being written; closing the file counts as a save."""
_READ_SECONDS = 1.0
_REFRESH_SECONDS = 5.0
_REPORT_SECONDS = 1.0
_SILENT_SECONDS = 15.0
"""Seconds without a finished step after which a thread counts as hanging."""
_RETRY_SECONDS = 5.0
_HOOK_SECONDS = 0.25


class Watcher:
    """Watches folders and the catalog until it is stopped.

    Args:
        settings: contain the folder to which relative paths of sources refer, and the folder not to
            watch.
        log: called with a line about a failure.
        quiet: seconds without a further change in a folder before its tenants are synced.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        open_follower: OpenFollower,
        log: Callable[[str], None],
        *,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        self._catalog = catalog
        self._base = settings.home
        self._log = log
        self._quiet = quiet
        self._marks = Marks()
        self._lanes = Lanes(self._marks, open_follower, log)
        self._hooked = HookedTenants(settings.local)
        self._report = WatchReportFile(settings)
        self._folders = SourceFolders(settings.local, log)
        self._versions: dict[str, tuple[int, datetime]] = {}
        self._sources: dict[str, TenantSources] = {}
        self._seen: dict[str, float] = {}
        self._stopped = Event()
        self._refreshing = Event()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()
        self._refreshing.set()
        self._lanes.stop()
        self._folders.wake()

    def run(self) -> None:
        """Watch until stopped; syncs in progress finish."""
        threads = [
            Thread(target=self._repeat, args=(step,), daemon=True)
            for step in (self._refresh, self._listen, self._look_for_hooks, self._watch)
        ]
        for thread in threads:
            thread.start()
        lanes = self._lanes.start()
        try:
            while not self._stopped.wait(_REPORT_SECONDS):
                self._tell()
                self._lanes.relieve()
        finally:
            self._report.remove()
        for thread in (threads[-1], *lanes):
            thread.join()
        self._folders.close()

    def _tell(self) -> None:
        """Write the report with the watched tenants, or remove it if a part does not work."""
        now = time.monotonic()
        steps = (self._refresh, self._listen, self._watch)
        silent = any(now - self._seen.get(s.__name__, -now) > _SILENT_SECONDS for s in steps)
        if silent or not self._lanes.able:
            self._report.remove()
        else:
            marks = self._marks
            self._report.write(
                self._folders.watched,
                frozenset(marks.waiting()),
                frozenset(marks.changed_since()),
            )

    def _repeat(self, step: Callable[[], None]) -> None:
        """Repeat a step until stopped; log an error once, and retry after a pause."""
        told = ""
        while not self._stopped.is_set():
            try:
                step()
                told = ""
                self._seen[step.__name__] = time.monotonic()
            except Exception as error:  # a thread that ended would miss all changes
                self._seen.pop(step.__name__, None)
                line = f"{type(error).__name__}: {error}"
                if line != told:
                    self._log(line)
                told = line
                self._stopped.wait(_RETRY_SECONDS)

    def _refresh(self) -> None:
        """Read the tenants that are new or changed, and mark them."""
        self._refreshing.clear()
        first = not self._versions
        versions = self._catalog.tenants.active_versions()
        changed = [id_ for id_, version in versions.items() if self._versions.get(id_) != version]
        sources = {id_: of for id_, of in self._sources.items() if id_ in versions}
        for record in self._catalog.tenants.find_many(changed):
            sources[record.id] = find_sources(record, self._base)
        self._versions, self._sources = versions, sources
        self._folders.watch_sources(sources)
        if not first:
            self._marks.changed(changed)
        self._seen[self._refresh.__name__] = time.monotonic()  # only the wait is left to do
        self._refreshing.wait(_REFRESH_SECONDS)

    def _listen(self) -> None:
        """Mark the tenants that the catalog reports."""
        for notification in self._catalog.changes.notifications(timeout=_REFRESH_SECONDS):
            if self._stopped.is_set():
                return
            self._seen[self._listen.__name__] = time.monotonic()
            if notification == TENANTS:
                self._refreshing.set()
            elif notification is not None:
                self._marks.changed([notification])

    def _look_for_hooks(self) -> None:
        """Mark the tenants that Git hooks report."""
        self._marks.changed(self._hooked.take() & self._sources.keys())
        self._stopped.wait(_HOOK_SECONDS)

    def _watch(self) -> None:
        """Mark the tenants with changed folders."""
        changes = self._folders.changes(_READ_SECONDS)
        self._marks.changed(changes.written, quiet=_WRITTEN_QUIET, latest=_WRITTEN_LATEST)
        latest = max(LATEST_SECONDS, self._quiet)
        self._marks.changed(changes.saved, quiet=self._quiet, latest=latest)
