"""Watches on the folders of all sources, with inotify of Linux.

An inotify watch covers one folder, so each folder of a tree has its own watch. A new folder is
watched before it is reported, so that no file in it is missed. Network file systems report no
changes, so they are not watched.
"""

from __future__ import annotations

import errno
import os
import re
import select
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from inotify_simple import INotify, flags

from rag_assets.common.errors import ConfigurationError
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class TenantSources:
    """The folders of a tenant's sources.

    Attributes:
        folders: absolute paths with unresolved symbolic links.
        is_reported: whether every change of all sources is reported, by the kernel (folders) or by
            the catalog (pushes and uploads). Otherwise changes are found only by listing.
    """

    folders: tuple[str, ...] = ()
    is_reported: bool = False


def find_sources(record: TenantRecord, base: Path) -> TenantSources:
    """Return the sources of a tenant; empty if its configuration cannot be read.

    Args:
        base: base folder of relative paths in the configuration.
    """
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        return TenantSources()
    kinds = [(tenant.source_kind(source), source) for source in tenant.sources]
    folders = [folder for kind, source in kinds for folder in kind.get_watched_folders(source)]
    return TenantSources(
        tuple(str(base / folder) for folder in folders),
        all(kind.reports_every_change(source) for kind, source in kinds),
    )


def map_readers(tenants: Mapping[str, TenantSources]) -> dict[str, frozenset[str]]:
    """Return, for the resolved path of each folder, the tenants that read the folder."""
    tenants_by_folder: dict[str, set[str]] = {}
    for tenant_id, sources in tenants.items():
        for folder in sources.folders:
            tenants_by_folder.setdefault(os.path.realpath(folder), set()).add(tenant_id)
    return {folder: frozenset(readers) for folder, readers in tenants_by_folder.items()}


def find_tenants(paths: Iterable[str], folders: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the tenants that read a folder which contains any of the paths.

    Args:
        folders: the readers of each folder; see map_readers.
    """
    known: set[str] = set()
    for path in paths:
        while path not in known:
            known.add(path)
            path = os.path.dirname(path)  # noqa: PTH120, PLW2901
    return {tenant for folder in known & folders.keys() for tenant in folders[folder]}


def select_outermost(folders: Iterable[str]) -> list[str]:
    """Return the folders that are not inside another of the folders."""
    kept_folders: list[str] = []
    for folder in sorted(folders, key=lambda path: Path(path).parts):
        if not kept_folders or not is_in_folder(folder, kept_folders[-1]):
            kept_folders.append(folder)
    return kept_folders


def is_in_folder(path: str, folder: str) -> bool:
    """Return whether a path is the folder itself or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


_MOUNTS = Path("/proc/self/mountinfo")
_LOCAL_FILE_SYSTEMS = frozenset(
    (
        *("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "reiserfs"),
        *("tmpfs", "ramfs", "overlay", "aufs", "vfat", "exfat", "msdos", "ntfs", "ntfs3"),
        *("nilfs2", "hfsplus", "erofs", "squashfs", "iso9660", "udf"),
    )
)
"""File systems that only this machine changes; others, such as NFS, are changed by other machines
too."""
_OCTAL_ESCAPE = re.compile(r"\\([0-7]{3})")


class Mounts:
    """The file systems that are mounted on this machine, by mount point.

    Args:
        listed: text in the format of proc_pid_mountinfo(5); by default, the mounts of this process.
    """

    def __init__(self, listed: str | None = None) -> None:
        if listed is None:
            listed = _MOUNTS.read_text(errors="surrogateescape") if _MOUNTS.exists() else ""
        # If several file systems are mounted on one path, the last mount counts.
        self._kinds = dict(_parse_mount(line) for line in listed.splitlines())
        self._others = [at for at, kind in self._kinds.items() if kind not in _LOCAL_FILE_SYSTEMS]

    def reports_every_change(self, folder: str) -> bool:
        """Return whether the kernel reports every change in a folder.

        It does if the file system of the folder, and all file systems mounted below, are local.

        Args:
            folder: absolute path without symbolic links.
        """
        mount = folder
        while mount not in self._kinds and mount != os.sep:
            mount = os.path.dirname(mount)  # noqa: PTH120
        is_local = self._kinds.get(mount) in _LOCAL_FILE_SYSTEMS
        return is_local and not any(is_in_folder(other, folder) for other in self._others)


def _parse_mount(line: str) -> tuple[str, str]:
    """Return the mount point and the type of the file system in a line of mountinfo."""
    before, _, after = line.partition(" - ")
    point = _OCTAL_ESCAPE.sub(lambda escaped: chr(int(escaped[1], 8)), before.split(" ")[4])
    return point, after.split(" ", 1)[0]


_SAVED = (
    *(flags.CLOSE_WRITE, flags.MOVED_FROM, flags.MOVED_TO, flags.DELETE, flags.ATTRIB),
    *(flags.DELETE_SELF, flags.MOVE_SELF, flags.UNMOUNT),
)
_WRITTEN = (flags.MODIFY, flags.CREATE)
_SAVED_MASK, _WRITTEN_MASK = sum(_SAVED), sum(_WRITTEN)
_MASK = (_SAVED_MASK | _WRITTEN_MASK | flags.ONLYDIR | flags.DONT_FOLLOW) & ~flags.UNMOUNT
_GONE_MASK = flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT | flags.IGNORED
_APPEARED_MASK = flags.CREATE | flags.MOVED_TO


TOO_MANY = "too many folders to watch (fs.inotify.max_user_watches)"


class TooManyWatches(OSError):
    """The kernel does not allow further inotify watches."""


@dataclass
class Changes:
    """The changes that the kernel has reported since the last call of `read`.

    Attributes:
        saved: folders in which a file or folder was saved, renamed, removed or created.
        written: folders in which a file is being written.
        gone: roots that are no longer watched because they were moved or removed.
        refused: roots that are no longer watched because they have too many folders.
    """

    saved: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    overflowed: bool = False


class FolderTrees:
    """A set of inotify watches on whole folder trees; only `wake` may be called in other threads.

    Args:
        skipped: returns whether to skip a path and everything below it.

    Raises:
        OSError: the kernel does not allow a further inotify instance.
    """

    def __init__(self, skipped: Callable[[str], bool]) -> None:
        self._inotify = INotify(nonblocking=True)
        self._skipped = skipped
        self._folders: dict[int, str] = {}
        self._watches: dict[str, int] = {}
        self._roots: dict[str, tuple[int, int]] = {}
        self._wakeup = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._poller = select.poll()
        for descriptor in (self._inotify.fileno(), self._wakeup):
            self._poller.register(descriptor, select.POLLIN)

    def close(self) -> None:
        """Remove all watches."""
        self._inotify.close()
        os.close(self._wakeup)

    @property
    def roots(self) -> set[str]:
        """Return the watched roots whose path still leads to the folder that is watched."""
        return {root for root, identity in self._roots.items() if _find_identity(root) == identity}

    def wake(self) -> None:
        """Make `read` return immediately."""
        os.eventfd_write(self._wakeup, 1)

    def add(self, root: str) -> None:
        """Watch a folder and all folders below it.

        Args:
            root: an absolute path, outside all other roots.

        Raises:
            TooManyWatches: the tree has too many folders, and is not watched at all.
            OSError: the root cannot be watched.
        """
        self.remove(root)  # The path may have pointed to another folder before.
        identity = _find_identity(root)
        if identity is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            self._watch(root)
            self._watch_subfolders(root)
        except OSError:
            self._drop(root)
            raise
        self._roots[root] = identity

    def remove(self, root: str) -> None:
        """Stop watching a root and all folders below it."""
        self._roots.pop(root, None)
        self._drop(root)

    def read(self, timeout: float) -> Changes:
        """Wait up to `timeout` seconds for changes or a call of `wake`, and return the changes."""
        self._poller.poll(timeout * 1_000)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakeup)
        changes = Changes()
        for watch, mask, _, name in self._inotify.read(timeout=0):
            if mask & flags.Q_OVERFLOW:
                changes.overflowed = True
            elif watch in self._folders:
                self._handle_event(changes, watch, mask, name)
        changes.written -= changes.saved
        return changes

    def _handle_event(self, changes: Changes, watch: int, mask: int, name: str) -> None:
        folder = self._folders[watch]
        if mask & flags.IGNORED:
            self._forget(watch)
        elif name:
            path = os.path.join(folder, name)  # noqa: PTH118  (thousands of them)
            if self._skipped(path):
                return
            if mask & flags.ISDIR:
                self._update_folder(changes, path, mask)
        if not name and mask & _GONE_MASK and folder in self._roots:
            self.remove(folder)
            changes.gone.add(folder)
        if mask & _SAVED_MASK or (mask & flags.ISDIR and mask & _APPEARED_MASK):
            changes.saved.add(folder)
        elif mask & _WRITTEN_MASK:
            changes.written.add(folder)

    def _update_folder(self, changes: Changes, path: str, mask: int) -> None:
        """Start or stop watching a folder that appeared or disappeared, and its subfolders."""
        if mask & flags.MOVED_FROM:
            self._drop(path)
        elif mask & _APPEARED_MASK:
            try:
                self._watch(path)
                self._watch_subfolders(path)
            except TooManyWatches:
                root = next(root for root in self._roots if is_in_folder(path, root))
                self.remove(root)
                changes.refused.add(root)
            except OSError:
                return  # The folder was removed or is not readable; a listing will report that.

    def _watch_subfolders(self, folder: str) -> None:
        """Watch all folders below a folder."""
        waiting = [folder]
        while waiting:
            for path in _list_subfolders(waiting.pop()):
                if self._skipped(path):
                    continue
                try:
                    self._watch(path)
                except TooManyWatches:
                    raise
                except OSError:
                    continue
                waiting.append(path)

    def _watch(self, folder: str) -> None:
        try:
            watch = self._inotify.add_watch(folder, _MASK)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.ENOMEM):
                raise TooManyWatches(error.errno, TOO_MANY) from None
            raise
        # A folder that was moved keeps its watch.
        self._watches.pop(self._folders.get(watch, ""), None)
        self._folders[watch] = folder
        self._watches[folder] = watch

    def _drop(self, folder: str) -> None:
        for path in [path for path in self._watches if is_in_folder(path, folder)]:
            watch = self._watches.pop(path)
            del self._folders[watch]
            with suppress(OSError):
                self._inotify.rm_watch(watch)

    def _forget(self, watch: int) -> None:
        self._watches.pop(self._folders.pop(watch), None)


def _list_subfolders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _find_identity(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


_UPDATE_SECONDS = 5.0
"""Seconds between checks for folders that were created, removed, mounted or replaced."""
_SOON_SECONDS = 0.5
_REFUSED_SECONDS = 60.0
_RESTART_SECONDS = 30.0
_LOG_INTERVAL_SECONDS = 3_600.0
_GATHERING_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class ChangedTenants:
    """The tenants with changed files.

    Attributes:
        saved: tenants with a saved, renamed, removed or new file, or with a newly watched folder.
        written: tenants with a file that is being written.
    """

    saved: frozenset[str] = frozenset()
    written: frozenset[str] = frozenset()


class SourceFolders:
    """The watched folders of sources; call `wait_for_changes` from a single thread.

    A folder cannot be watched if it is missing, on a file system that other machines change, or has
    too many subfolders. Then its tenants are not in `watched`, and watching is tried again later.

    Args:
        local: the installation's own folder, which is not watched.
    """

    def __init__(self, local: Path, log: Callable[[str], None]) -> None:
        self._local = str(local.resolve())
        self._log = log
        self._trees: FolderTrees | None = None
        self._sources: Mapping[str, TenantSources] = {}
        self._readers: Mapping[str, frozenset[str]] = {}
        self._next_update = 0.0
        self._refused: dict[str, float] = {}
        self._has_started = self._overflowed = False
        self._restarted = self._logged_at = -_LOG_INTERVAL_SECONDS
        self.watched: frozenset[str] = frozenset()
        """Tenants for which the kernel or the catalog reports every change."""

    def watch_sources(self, sources: Mapping[str, TenantSources]) -> None:
        """Watch the folders of these sources from now on, instead of those of the last call."""
        if sources != self._sources:
            self._sources = dict(sources)
            self._next_update = 0.0
            self.wake()

    def wake(self) -> None:
        """Make `wait_for_changes` return immediately."""
        if self._trees is not None:
            self._trees.wake()

    def close(self) -> None:
        """Stop watching."""
        self.watched = frozenset()
        if self._trees is not None:
            self._trees.close()

    def wait_for_changes(self, timeout: float) -> ChangedTenants:
        """Wait up to `timeout` seconds for changes, and return the tenants with changed files."""
        if self._trees is None:
            self._trees = FolderTrees(self._is_skipped)
        added: set[str] = set()
        if time.monotonic() >= self._next_update:
            self._next_update = time.monotonic() + _UPDATE_SECONDS
            added = self._update_watches(self._trees)
        changes = self._trees.read(0.0 if added else timeout)
        for root in changes.refused:
            self._postpone(root, TOO_MANY)
        if changes.gone:
            self._next_update = min(self._next_update, time.monotonic() + _SOON_SECONDS)
        if changes.overflowed:
            self._handle_overflow()
        if changes.saved or changes.written:
            time.sleep(_GATHERING_SECONDS)
        return ChangedTenants(
            frozenset(find_tenants({*changes.saved, *added}, self._readers)),
            frozenset(find_tenants(changes.written, self._readers)),
        )

    def _update_watches(self, trees: FolderTrees) -> set[str]:
        """Watch all folders that can be watched now, and stop watching all others.

        Returns:
            The newly watched folders, whose tenants must be synced; empty for the first call.
        """
        sources = self._sources  # Another thread may replace the mapping meanwhile.
        self._readers = map_readers(sources)
        if self._overflowed and time.monotonic() >= self._restarted + _RESTART_SECONDS:
            self._overflowed = False
            self._restarted = time.monotonic()
            for root in trees.roots:
                trees.remove(root)
        mounts = Mounts()
        folders = [folder for folder in self._readers if os.path.isdir(folder)]  # noqa: PTH112
        wanted_roots = set(
            select_outermost(folder for folder in folders if mounts.reports_every_change(folder))
        )
        present = trees.roots
        for root in present - wanted_roots:
            trees.remove(root)
        added = {root for root in wanted_roots - present if self._add(trees, root)}
        self.watched = (
            frozenset() if self._overflowed else self._find_watched_tenants(trees.roots, sources)
        )
        # Folders of the first call are not new, because the sensor has listed them.
        began, self._has_started = self._has_started, self._has_started or bool(sources)
        return {folder for folder in folders if _is_below_root(folder, added)} if began else set()

    def _add(self, trees: FolderTrees, root: str) -> bool:
        if time.monotonic() < self._refused.get(root, 0.0):
            return False
        try:
            trees.add(root)
        except OSError as error:
            self._postpone(root, error.strerror or type(error).__name__)
            return False
        self._refused.pop(root, None)
        return True

    def _postpone(self, root: str, reason: str) -> None:
        """Try to watch a folder again only later; until then, Dagster's sensor lists it."""
        if root not in self._refused:
            self._log(f"{root} cannot be watched, so it is listed instead: {reason}")
        self._refused[root] = time.monotonic() + _REFUSED_SECONDS
        self._next_update = 0.0

    def _handle_overflow(self) -> None:
        """Treat all folders as unwatched, because the kernel dropped events."""
        self._overflowed = True
        self.watched = frozenset()
        self._next_update = min(self._next_update, self._restarted + _RESTART_SECONDS)
        if time.monotonic() - self._logged_at > _LOG_INTERVAL_SECONDS:
            self._log("the kernel dropped change events: all sources are listed instead")
            self._logged_at = time.monotonic()

    def _find_watched_tenants(
        self, roots: set[str], sources: Mapping[str, TenantSources]
    ) -> frozenset[str]:
        within = {folder for folder in self._readers if _is_below_root(folder, roots)}
        unwatched = {id_ for at, ids in self._readers.items() if at not in within for id_ in ids}
        reported = {id_ for id_, source in sources.items() if source.is_reported}
        return frozenset(reported - unwatched)

    def _is_skipped(self, path: str) -> bool:
        return os.path.basename(path) == ".git" or is_in_folder(path, self._local)  # noqa: PTH119


def _is_below_root(folder: str, roots: set[str]) -> bool:
    while folder not in roots:
        above = os.path.dirname(folder)  # noqa: PTH120
        if above == folder:
            return False
        folder = above
    return True
