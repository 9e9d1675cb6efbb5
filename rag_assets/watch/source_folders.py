"""Watching of the folders of all sources, as far as the system allows."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rag_assets.watch.folders import (
    TenantSources,
    find_tenants,
    lies_in,
    outermost,
    readers_of_folders,
)
from rag_assets.watch.mounts import Mounts
from rag_assets.watch.trees import TOO_MANY, FolderTrees

_LOOK_SECONDS = 5.0
"""Seconds between checks for folders that were created, removed, mounted or replaced."""
_SOON_SECONDS = 0.5
_REFUSED_SECONDS = 60.0
_RESTART_SECONDS = 30.0
_TOLD_SECONDS = 3_600.0
_GATHERING_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ChangedTenants:
    """Tenants in whose folders a file was saved, or is being written."""

    saved: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


class SourceFolders:
    """Watches folders; `changes` is called from one thread, everything else from any.

    A folder cannot be watched if it is missing, if it lies on a file system that other machines
    also change, or if it contains too many folders. Then the tenants that read it are not in
    `watched`, and watching it is tried again later.

    Args:
        local: the installation's own folder, which is not watched.
        log: called with a line about a failure.
    """

    def __init__(self, local: Path, log: Callable[[str], None]) -> None:
        self._local = str(local.resolve())
        self._log = log
        self._trees: FolderTrees | None = None
        self._sources: Mapping[str, TenantSources] = {}
        self._readers: Mapping[str, frozenset[str]] = {}
        self._next_look = 0.0
        self._refused: dict[str, float] = {}
        self._began = self._overflowed = False
        self._restarted = self._told = -_TOLD_SECONDS
        self.watched: frozenset[str] = frozenset()
        """Tenants for which the kernel or the catalog reports every change."""

    def read_by(self, sources: Mapping[str, TenantSources]) -> None:
        """Watch the folders of these tenants from now on."""
        if sources != self._sources:
            self._sources = dict(sources)
            self._next_look = 0.0
            self.wake()

    def wake(self) -> None:
        """Make `changes` return at once."""
        if self._trees is not None:
            self._trees.wake()

    def close(self) -> None:
        """Stop watching."""
        self.watched = frozenset()
        if self._trees is not None:
            self._trees.close()

    def changes(self, timeout: float) -> ChangedTenants:
        """Wait for changes.

        Args:
            timeout: seconds after which the result is empty.

        Raises:
            OSError: the system does not allow watching.
        """
        if self._trees is None:
            self._trees = FolderTrees(self._is_skipped)
        added: set[str] = set()
        if time.monotonic() >= self._next_look:
            self._next_look = time.monotonic() + _LOOK_SECONDS
            added = self._look(self._trees)
        found = self._trees.read(0.0 if added else timeout)
        for root in found.refused:
            self._refuse(root, TOO_MANY)
        if found.gone:
            self._next_look = min(self._next_look, time.monotonic() + _SOON_SECONDS)
        if found.overflowed:
            self._overflow()
        if found.saved or found.written:
            time.sleep(_GATHERING_SECONDS)
        return ChangedTenants(
            frozenset(find_tenants({*found.saved, *added}, self._readers)),
            frozenset(find_tenants(found.written, self._readers)),
        )

    def _look(self, trees: FolderTrees) -> set[str]:
        """Watch every folder that can be watched now, and return the newly watched folders."""
        sources = self._sources  # Another thread may replace the mapping meanwhile.
        self._readers = readers_of_folders(sources)
        if self._overflowed and time.monotonic() >= self._restarted + _RESTART_SECONDS:
            self._overflowed = False
            self._restarted = time.monotonic()
            for root in trees.roots:
                trees.remove(root)
        mounts = Mounts()
        folders = [folder for folder in self._readers if os.path.isdir(folder)]  # noqa: PTH112
        wanted = set(outermost(folder for folder in folders if mounts.tell_of_changes(folder)))
        present = trees.roots
        for root in present - wanted:
            trees.remove(root)
        added = {root for root in wanted - present if self._add(trees, root)}
        self.watched = (
            frozenset() if self._overflowed else self._find_observed(trees.roots, sources)
        )
        # Folders of the first call are not reported as new, because the sensor has already listed
        # them all.
        began, self._began = self._began, self._began or bool(sources)
        return {folder for folder in folders if _is_below(folder, added)} if began else set()

    def _add(self, trees: FolderTrees, root: str) -> bool:
        if time.monotonic() < self._refused.get(root, 0.0):
            return False
        try:
            trees.add(root)
        except OSError as error:
            self._refuse(root, error.strerror or type(error).__name__)
            return False
        self._refused.pop(root, None)
        return True

    def _refuse(self, root: str, reason: str) -> None:
        """Stop trying to watch a folder for a while; the sensor lists it meanwhile."""
        if root not in self._refused:
            self._log(f"{root} cannot be watched, so it is listed instead: {reason}")
        self._refused[root] = time.monotonic() + _REFUSED_SECONDS
        self._next_look = 0.0

    def _overflow(self) -> None:
        """Treat all folders as unwatched after lost events, until they are watched again."""
        self._overflowed = True
        self.watched = frozenset()
        self._next_look = min(self._next_look, self._restarted + _RESTART_SECONDS)
        if time.monotonic() - self._told > _TOLD_SECONDS:
            self._log("changes came too fast to be reported: all sources are listed instead")
            self._told = time.monotonic()

    def _find_observed(
        self, roots: set[str], sources: Mapping[str, TenantSources]
    ) -> frozenset[str]:
        within = {folder for folder in self._readers if _is_below(folder, roots)}
        unwatched = {id_ for at, ids in self._readers.items() if at not in within for id_ in ids}
        told = {id_ for id_, of in sources.items() if of.told}
        return frozenset(told - unwatched)

    def _is_skipped(self, path: str) -> bool:
        return os.path.basename(path) == ".git" or lies_in(path, self._local)  # noqa: PTH119


def _is_below(folder: str, roots: set[str]) -> bool:
    while folder not in roots:
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return False
        folder = above
    return True
