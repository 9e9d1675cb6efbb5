"""The change watcher, which syncs tenants within seconds after their sources change.

The file system reports changes in folders, Git hooks create files, and the catalog reports pushed
records and requests to reindex. Each report marks a tenant, and forks of the fork server sync the
marked tenants. Events may be lost, so Dagster's sensor remains authoritative: at every tick, it
lists sources that are not watched, and in rotation also watched sources.
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

_WRITE_QUIET_SECONDS, _WRITE_LATEST_SECONDS = 3.0, 5.0
"""Delays for a file that is being written; closing the file counts as a save."""
_READ_SECONDS = 1.0
_REFRESH_SECONDS = 5.0
_REPORT_SECONDS = 1.0
_HANG_SECONDS = 15.0
"""Seconds after its last finished step at which a thread counts as hanging."""
_RETRY_SECONDS = 5.0
_HOOK_SECONDS = 0.25


class Watcher:
    """A watcher of folders and the catalog, which syncs changed tenants until stopped.

    Args:
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
        self._finished_at: dict[str, float] = {}
        self._stopped = Event()
        self._refreshing = Event()

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()
        self._refreshing.set()
        self._lanes.stop()
        self._folders.wake()

    def run(self) -> None:
        """Watch until stopped, and wait for syncs in progress."""
        threads = [
            Thread(target=self._repeat, args=(step,), daemon=True)
            for step in (
                self._refresh_tenants,
                self._mark_reported_tenants,
                self._mark_hooked_tenants,
                self._mark_changed_folders,
            )
        ]
        for thread in threads:
            thread.start()
        lanes = self._lanes.start()
        try:
            while not self._stopped.wait(_REPORT_SECONDS):
                self._write_report()
                self._lanes.add_lane_if_late()
        finally:
            self._report.remove()
        for thread in (threads[-1], *lanes):
            thread.join()
        self._folders.close()

    def _write_report(self) -> None:
        """Write the report for the sensor; remove it if a thread hangs or syncs cannot start."""
        now = time.monotonic()
        steps = (self._refresh_tenants, self._mark_reported_tenants, self._mark_changed_folders)
        is_hanging = any(
            now - self._finished_at.get(s.__name__, -now) > _HANG_SECONDS for s in steps
        )
        if is_hanging or not self._lanes.can_sync:
            self._report.remove()
        else:
            marks = self._marks
            self._report.write(
                self._folders.watched,
                frozenset(marks.list_waiting()),
                frozenset(marks.list_changed_since_start()),
            )

    def _repeat(self, step: Callable[[], None]) -> None:
        """Repeat a step until stopped; log an error once, and retry after a pause."""
        logged = ""
        while not self._stopped.is_set():
            try:
                step()
                logged = ""
                self._finished_at[step.__name__] = time.monotonic()
            except Exception as error:  # the thread must continue
                self._finished_at.pop(step.__name__, None)
                line = f"{type(error).__name__}: {error}"
                if line != logged:
                    self._log(line)
                logged = line
                self._stopped.wait(_RETRY_SECONDS)

    def _refresh_tenants(self) -> None:
        """Read the tenants, watch their folders, and mark new and changed tenants."""
        self._refreshing.clear()
        is_first = not self._versions
        versions = self._catalog.tenants.list_active_versions()
        changed = [id_ for id_, version in versions.items() if self._versions.get(id_) != version]
        sources = {id_: known for id_, known in self._sources.items() if id_ in versions}
        for record in self._catalog.tenants.find_many(changed):
            sources[record.id] = find_sources(record, self._base)
        self._versions, self._sources = versions, sources
        self._folders.watch_sources(sources)
        if not is_first:
            self._marks.mark_changed(changed)
        self._finished_at[self._refresh_tenants.__name__] = (
            time.monotonic()
        )  # only the wait is left to do
        self._refreshing.wait(_REFRESH_SECONDS)

    def _mark_reported_tenants(self) -> None:
        """Mark the tenants for which the catalog reports changes."""
        for notification in self._catalog.changes.notifications(timeout=_REFRESH_SECONDS):
            if self._stopped.is_set():
                return
            self._finished_at[self._mark_reported_tenants.__name__] = time.monotonic()
            if notification == TENANTS:
                self._refreshing.set()
            elif notification is not None:
                self._marks.mark_changed([notification])

    def _mark_hooked_tenants(self) -> None:
        """Mark the tenants for which Git hooks have created files."""
        self._marks.mark_changed(self._hooked.take() & self._sources.keys())
        self._stopped.wait(_HOOK_SECONDS)

    def _mark_changed_folders(self) -> None:
        """Wait for changes in folders, and mark the tenants that read these folders."""
        changes = self._folders.wait_for_changes(_READ_SECONDS)
        self._marks.mark_changed(
            changes.written, quiet=_WRITE_QUIET_SECONDS, latest=_WRITE_LATEST_SECONDS
        )
        latest = max(LATEST_SECONDS, self._quiet)
        self._marks.mark_changed(changes.saved, quiet=self._quiet, latest=latest)
