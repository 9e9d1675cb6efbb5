"""Watched folder trees: reports the folders in which something changed, using Linux's inotify.

An inotify watch covers one folder, so each folder of a tree has its own watch. Which file changed
does not matter, since a sync lists all sources of the tenant. A new folder is watched before it is
reported, so that files written to it in between are found.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from inotify_simple import INotify, flags

from rag_assets.watch.folders import lies_in

_SAVED = (
    *(flags.CLOSE_WRITE, flags.MOVED_FROM, flags.MOVED_TO, flags.DELETE, flags.ATTRIB),
    *(flags.DELETE_SELF, flags.MOVE_SELF, flags.UNMOUNT),
)
_WRITTEN = (flags.MODIFY, flags.CREATE)
_SAVED_MASK, _WRITTEN_MASK = sum(_SAVED), sum(_WRITTEN)
_MASK = (_SAVED_MASK | _WRITTEN_MASK | flags.ONLYDIR | flags.DONT_FOLLOW) & ~flags.UNMOUNT
_GONE = flags.DELETE_SELF | flags.MOVE_SELF | flags.UNMOUNT | flags.IGNORED
_ENTERED = flags.CREATE | flags.MOVED_TO


TOO_MANY = "too many folders to watch (fs.inotify.max_user_watches)"


class TooManyWatches(OSError):
    """The kernel allows no further inotify watches."""


@dataclass
class Changes:
    """The changes since the last call of `read`.

    Attributes:
        saved: folders in which something was saved, renamed, removed or created.
        written: folders with an open file that is being written.
        gone: roots that are no longer watched, because they were moved or removed.
        refused: roots that are no longer watched, because they now have too many folders.
        overflowed: whether the kernel dropped events.
    """

    saved: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    overflowed: bool = False


class FolderTrees:
    """Watches folder trees; all methods except `wake` must be called from the same thread.

    Args:
        skipped: returns whether a path, with everything below it, is left unwatched.

    Raises:
        OSError: the kernel allows no further user of inotify.
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
        """End every watch."""
        self._inotify.close()
        os.close(self._wakeup)

    @property
    def roots(self) -> set[str]:
        """Return the watched roots that have not been replaced by another folder."""
        return {root for root, identity in self._roots.items() if _identity(root) == identity}

    def wake(self) -> None:
        """Make `read` return at once."""
        os.eventfd_write(self._wakeup, 1)

    def add(self, root: str) -> None:
        """Watch a tree.

        Args:
            root: an absolute path, outside all other roots.

        Raises:
            TooManyWatches: the kernel allows no more; the tree is not watched at all.
            OSError: the root cannot be watched.
        """
        self.remove(root)  # The path may have pointed to another folder before.
        identity = _identity(root)
        if identity is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            self._watch(root)
            self._extend(root)
        except OSError:
            self._drop(root)
            raise
        self._roots[root] = identity

    def remove(self, root: str) -> None:
        """Stop watching a tree."""
        self._roots.pop(root, None)
        self._drop(root)

    def read(self, timeout: float) -> Changes:
        """Wait for changes.

        Args:
            timeout: seconds after which the result is empty.
        """
        self._poller.poll(timeout * 1_000)
        with suppress(BlockingIOError):
            os.eventfd_read(self._wakeup)
        changes = Changes()
        for watch, mask, _, name in self._inotify.read(timeout=0):
            if mask & flags.Q_OVERFLOW:
                changes.overflowed = True
            elif watch in self._folders:
                self._take(changes, watch, mask, name)
        changes.written -= changes.saved
        return changes

    def _take(self, changes: Changes, watch: int, mask: int, name: str) -> None:
        folder = self._folders[watch]
        if mask & flags.IGNORED:
            self._forget(watch)
        elif name:
            path = os.path.join(folder, name)  # noqa: PTH118  (thousands of them)
            if self._skipped(path):
                return
            if mask & flags.ISDIR:
                self._follow(changes, path, mask)
        if not name and mask & _GONE and folder in self._roots:
            self.remove(folder)
            changes.gone.add(folder)
        if mask & _SAVED_MASK or (mask & flags.ISDIR and mask & _ENTERED):
            changes.saved.add(folder)
        elif mask & _WRITTEN_MASK:
            changes.written.add(folder)

    def _follow(self, changes: Changes, path: str, mask: int) -> None:
        """Update the watches after a folder in a tree appeared or disappeared."""
        if mask & flags.MOVED_FROM:
            self._drop(path)
        elif mask & _ENTERED:
            try:
                self._watch(path)
                self._extend(path)
            except TooManyWatches:
                root = next(one for one in self._roots if lies_in(path, one))
                self.remove(root)
                changes.refused.add(root)
            except OSError:
                return  # The folder was removed or is not readable; a listing will report that.

    def _extend(self, folder: str) -> None:
        """Watch all folders below a folder."""
        waiting = [folder]
        while waiting:
            for path in _subfolders(waiting.pop()):
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
        for path in [path for path in self._watches if lies_in(path, folder)]:
            watch = self._watches.pop(path)
            del self._folders[watch]
            with suppress(OSError):
                self._inotify.rm_watch(watch)

    def _forget(self, watch: int) -> None:
        self._watches.pop(self._folders.pop(watch), None)


def _subfolders(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _identity(folder: str) -> tuple[int, int] | None:
    try:
        found = os.stat(folder)  # noqa: PTH116
    except OSError:
        return None
    return found.st_dev, found.st_ino
