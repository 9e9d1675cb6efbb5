"""The watcher: waits for changes, and has the tenants that they concern synced."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Thread
from typing import TypeAlias

from rag_assets.common.settings import Settings
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.watch.folders import outermost, tenants_of, watched_folders
from rag_assets.watch.marks import Marks

Sync: TypeAlias = Callable[[Sequence[str]], bool]
"""Syncs tenants, and waits until that has ended; False if nothing could be done."""

_GIT = f"{os.sep}.git{os.sep}"
_LANES = 2
"""Forks at work at once; two cores are busy with two."""
_TENANTS_A_FORK = 8
_QUIET_MS = 150
"""An editor saves in several steps: the change is followed when they have ended."""
_LATEST_MS = 1_000
_REFRESH_SECONDS = 5.0
_RETRY_SECONDS = 5.0
_REST_SECONDS = 1.0
"""After a sync: a folder that something writes to all the time would take a core otherwise."""


class Watcher:
    """Watches folders and the catalog until it is stopped.

    Args:
        catalog: of the installation.
        settings: what relative paths of sources are relative to, and the folder not to watch.
        sync: syncs tenants.
        log: takes a line about what went wrong.
    """

    def __init__(
        self, catalog: Catalog, settings: Settings, sync: Sync, log: Callable[[str], None]
    ) -> None:
        self._catalog = catalog
        self._base = settings.home
        self._local = f"{settings.local}{os.sep}"
        self._sync = sync
        self._log = log
        self._marks = Marks()
        self._stopped = Event()
        self._folders: Mapping[Path, frozenset[str]] = {}
        self._configurations: dict[str, object] = {}
        self._moved = Event()

    def stop(self) -> None:
        """Have `run` end."""
        self._stopped.set()
        self._moved.set()
        self._marks.finish(())

    def run(self) -> None:
        """Watch until stopped; syncs under way end by themselves."""
        threads = [
            Thread(target=self._repeat, args=(step,), daemon=True)
            for step in (self._refresh, self._listen, self._watch)
        ]
        for thread in threads:
            thread.start()
        with ThreadPoolExecutor(_LANES) as lanes:
            for _ in range(_LANES):
                lanes.submit(self._work)

    def _repeat(self, step: Callable[[], None]) -> None:
        """Repeat a step until stopped; after an error a little later, told once."""
        told = ""
        while not self._stopped.is_set():
            try:
                step()
                told = ""
            except Exception as error:  # a thread that ends would notice nothing any more
                line = f"{type(error).__name__}: {error}"
                if line != told:
                    self._log(line)
                told = line
                self._stopped.wait(_RETRY_SECONDS)

    def _refresh(self) -> None:
        """Read the tenants again: a new or changed one is marked."""
        records = [record for record in self._catalog.tenants.all() if record.state == "ACTIVE"]
        self._marks.mark(self._changed(records))
        folders = watched_folders(records, self._base)
        if folders != self._folders:
            self._folders = folders
            self._moved.set()
        self._stopped.wait(_REFRESH_SECONDS)

    def _changed(self, records: Sequence[TenantRecord]) -> list[str]:
        first = not self._configurations
        now: dict[str, object] = {r.id: (r.incarnation, dict(r.config)) for r in records}
        before, self._configurations = self._configurations, now
        return [] if first else [id_ for id_, config in now.items() if before.get(id_) != config]

    def _listen(self) -> None:
        for tenant_id in self._catalog.changes.notifications(timeout=_REFRESH_SECONDS):
            if self._stopped.is_set():
                return
            if tenant_id is not None:
                self._marks.mark([tenant_id])

    def _watch(self) -> None:
        """Watch the present folders until others are to be watched."""
        import watchfiles

        self._moved.clear()
        roots = outermost(self._folders)
        if not roots:
            self._moved.wait()
            return
        changes = watchfiles.watch(
            *roots,
            watch_filter=self._is_of_sources,
            step=_QUIET_MS,
            debounce=_LATEST_MS,
            stop_event=self._moved,
            ignore_permission_denied=True,
            raise_interrupt=False,
        )
        with contextlib.closing(changes):
            for change in changes:
                self._marks.mark(tenants_of((path for _, path in change), self._folders))

    def _is_of_sources(self, _change: object, path: str) -> bool:
        return not path.startswith(self._local) and _GIT not in path

    def _work(self) -> None:
        """Sync marked tenants, a few at a time."""
        while not self._stopped.is_set():
            tenants = self._marks.take(_TENANTS_A_FORK, time.monotonic())
            if not tenants:
                self._marks.wait(timeout=1.0)
                continue
            done = False
            try:
                done = self._sync(tenants)
            except Exception as error:  # a lane that ends would follow nothing any more
                self._log(f"syncing failed ({type(error).__name__})")
            finally:
                if not done:
                    self._marks.mark(tenants, after=time.monotonic() + _RETRY_SECONDS)
                self._marks.finish(tenants, rest_until=time.monotonic() + _REST_SECONDS)
