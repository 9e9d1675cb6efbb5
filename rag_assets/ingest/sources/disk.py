"""Safe access to the folders of sources: allowed roots, no links, time limits.

Every path component is opened relative to its parent (openat with O_NOFOLLOW). So a component that
is replaced by a link in the meantime cannot lead elsewhere.

If the server of a share is unreachable, a reader is blocked in the kernel, where neither an
exception nor a signal reaches it. So a source reads its folder in threads that the process can
abandon.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar
from urllib.parse import quote_from_bytes, unquote_to_bytes

from rag_assets.common.errors import (
    ConfigurationError,
    DocumentRejected,
    DocumentTooLarge,
    DocumentUnreachable,
    DocumentVanished,
    ListingFailed,
)

PIECE_BYTES = 1 << 20

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# If the system supports it, passing through a folder needs no permission to list the folder.
_PASS = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
_LIST = _FOLDER | os.O_RDONLY
_PATH_ERRORS = frozenset(
    {
        *(errno.ELOOP, errno.EMLINK, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG),
        *(errno.ENXIO, errno.ENODEV, errno.EINVAL),
    }
)
"""Errors that the path itself causes. Other errors come from a device or a share, and may be
temporary."""
# Never wait for the other end of a FIFO, and never let a terminal become the controlling terminal.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def open_root(root: Path) -> int:
    """Open an absolute, resolved folder for listing, and return its descriptor."""
    return open_subfolder(None, root.parts)


def open_subfolder(folder: int | None, names: Sequence[str]) -> int:
    """Open a nested folder for listing, and return its descriptor.

    The caller closes the descriptor.

    Args:
        folder: descriptor of the folder from which to start; None: the first name is absolute.
        names: names of the folders to enter, one after another.
    """
    with _open_innermost_folder(folder, names[:-1]) as last:
        return os.open(names[-1], _LIST, dir_fd=last)


def open_regular(name: str, folder: int | None) -> int | None:
    """Open a regular file in a folder, and return its descriptor; None for other kinds of files."""
    descriptor = os.open(name, _FILE, dir_fd=folder)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def stream_file(root: Path, path: str, *, max_bytes: int) -> Iterator[bytes]:
    """Yield the content of a regular file below a root, in pieces of at most 1 MiB.

    Args:
        root: absolute, resolved folder.
        path: POSIX path below the root.
        max_bytes: maximum size; a file that is larger, or grows beyond it while it is read, is
            refused.

    Raises:
        DocumentTooLarge, DocumentVanished, DocumentRejected: see DocumentSource.read.
    """
    names = path.split("/")
    if "\0" in path or any(name in ("", ".", "..") for name in names):
        raise DocumentRejected(f"the path {path!r} does not lie within the source")
    with _convert_errors(path):
        with _open_innermost_folder(None, [*root.parts, *names[:-1]]) as folder:
            descriptor = open_regular(names[-1], folder)
        if descriptor is None:
            raise DocumentRejected(f"{path!r} is not a regular file")
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            if size > max_bytes:
                raise _build_too_large_error(path, max_bytes)
            bytes_left = max_bytes
            # Read one byte more than the expected size, so that a small file needs only one
            # allocation.
            while piece := file.read(min(PIECE_BYTES, bytes_left + 1, size + 1)):
                bytes_left -= len(piece)
                if bytes_left < 0:
                    raise _build_too_large_error(path, max_bytes)
                yield piece


@contextmanager
def _open_innermost_folder(start: int | None, names: Sequence[str]) -> Iterator[int | None]:
    """Open nested folders by name, and yield the last; close all of them afterwards."""
    innermost: int | None = None
    try:
        for name in names:
            descriptor = os.open(name, _PASS, dir_fd=start if innermost is None else innermost)
            if innermost is not None:
                os.close(innermost)
            innermost = descriptor
        yield start if innermost is None else innermost
    finally:
        if innermost is not None:
            os.close(innermost)


@contextmanager
def _convert_errors(path: str) -> Iterator[None]:
    """Convert errors of the operating system in this block to errors about one document."""
    try:
        yield
    except FileNotFoundError as error:
        raise DocumentVanished(f"the file {path!r} was removed after it was listed") from error
    except UnicodeEncodeError as error:
        raise DocumentRejected(f"{path!r} is not a valid file name") from error
    except PermissionError as error:
        raise DocumentRejected(
            f"no permission to read {path!r}",
            hint="give the user of this service read access to the file",
        ) from error
    except OSError as error:
        if error.errno not in _PATH_ERRORS:
            raise DocumentUnreachable(
                f"the file {path!r} cannot be read now ({error.strerror})",
                hint="the file is read again later; check the disk or share that contains it",
            ) from error
        raise DocumentRejected(
            f"the file {path!r} cannot be read ({error.strerror})",
            hint="check whether its path contains a link or a special file; both are refused",
        ) from error


def _build_too_large_error(path: str, max_bytes: int) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"the file {path!r} is over the limit of {format_size(max_bytes)}",
        hint="increase max_bytes of the source, or exclude the file",
    )


def format_size(size: int) -> str:
    """Format a number of bytes in the largest unit that gives a whole number."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power} {unit}"
    return f"{size} bytes"


MAX_MOUNTS: Final = 1_000
"""Maximum number of mount points below a root that are remembered; snapshots may exceed it."""


@dataclass(frozen=True, slots=True)
class FolderIdentity:
    """The identity of a folder, which distinguishes it from other folders at the same path.

    The device number is not part of the identity, since it may change whenever the machine starts.

    Attributes:
        inode: number of the folder in its file system; 0 to match any folder of the file
            system.
        file_system: the id of the file system (f_fsid of statvfs); 0 if unknown.
    """

    inode: int
    file_system: int

    @classmethod
    def from_descriptor(cls, descriptor: int) -> FolderIdentity:
        """Return the identity of an open folder."""
        return cls(os.fstat(descriptor).st_ino, os.fstatvfs(descriptor).f_fsid)

    @classmethod
    def from_path(cls, path: Path) -> FolderIdentity | None:
        """Return the identity of the folder at a path without links; None if it is missing."""
        try:
            descriptor = open_root(path)
        except OSError:
            return None
        try:
            return cls.from_descriptor(descriptor)
        finally:
            os.close(descriptor)

    def is_same(self, other: FolderIdentity) -> bool:
        """Return whether both may identify the same folder; a value of 0 matches any value."""
        inodes = {self.inode, other.inode} - {0}
        file_systems = {self.file_system, other.file_system} - {0}
        return len(inodes) <= 1 and len(file_systems) <= 1

    def as_file_system(self) -> FolderIdentity:
        """Return an identity that matches every folder of the same file system.

        If the file system's id is unknown, return the folder's own identity.
        """
        return replace(self, inode=0) if self.file_system else self


def encode_folders(folders: Mapping[str, FolderIdentity]) -> list[list[Any]]:
    """Return the identities of folders by path as JSON lists; paths are quoted."""
    return [
        [quote_from_bytes(os.fsencode(path)), folder.inode, folder.file_system]
        for path, folder in sorted(folders.items())
    ]


def decode_folders(folders: Iterable[Sequence[Any]]) -> dict[str, FolderIdentity]:
    """Return the identities of folders by path; the inverse of encode_folders."""
    return {os.fsdecode(unquote_to_bytes(path)): FolderIdentity(*at) for path, *at in folders}


@dataclass(frozen=True, slots=True)
class Roots:
    """The folders in which a source's root may lie, and folders with the project's own state.

    A root is, or lies in, one of the allowed folders, if there are any. It must not lie in, be or
    contain a folder with the project's state.
    """

    allowed: tuple[Path, ...] = ()
    forbidden: tuple[Path, ...] = ()

    def locate(self, source: str, root: Path, *, follow_link: bool) -> Path:
        """Return the path of the folder to read for a root, after checking that it may be read.

        Links are followed for sources that request it, and between allowed roots. The code that
        opens the folder does not follow links, so a link that is created later is refused as well.

        Raises:
            ConfigurationError: the root must not be used.
        """
        real = Path(os.path.realpath(root))
        self.require(source, real)
        return real if follow_link or self.allowed else resolve_system_link(root)

    def require(self, source: str, root: Path) -> None:
        """Raise ConfigurationError for an absolute and resolved root that must not be read."""
        allowed = [folder.resolve() for folder in self.allowed]
        if allowed and not any(root.is_relative_to(folder) for folder in allowed):
            raise ConfigurationError(
                f"source {source}: the root {root} lies in none of the allowed roots",
                hint="move the documents into an allowed root, or add a folder that contains them"
                " to RAG_ASSETS_ALLOWED_ROOTS",
            )
        for state in (folder.resolve() for folder in self.forbidden):
            if root.is_relative_to(state) or state.is_relative_to(root):
                raise ConfigurationError(
                    f"source {source}: the root {root} overlaps {state}, where rag-assets stores"
                    " its own data",
                    hint=f"choose a folder that neither contains {state} nor lies in it",
                )


def resolve_system_link(root: Path) -> Path:
    """Resolve a link directly in `/`, such as /tmp or /home, which only the superuser can create.

    A root that is itself such a link is returned unchanged.
    """
    normal = Path(os.path.normpath(root))
    top = Path(*normal.parts[:2])
    below = normal.parts[2:]
    return Path(os.path.realpath(top), *below) if below and top.is_symlink() else normal


def is_reached_by_link(root: Path) -> bool:
    """Return whether a root from Roots.locate, or a folder above that root, is a link."""
    return os.path.realpath(root) != str(root)


def require_no_link(root: Path) -> None:
    """Raise an error if a root is reached by a link; see is_reached_by_link."""
    if is_reached_by_link(root):
        real = os.path.realpath(root)
        raise ListingFailed(
            f"the root {str(root)!r} is a link, or lies below a link, and leads to {real!r}",
            hint="to read that folder, set it as the root in tenants.yaml, or set"
            " `follow_root_link: true` for the source",
        )


def find_owner_home() -> Path:
    """Return the home folder of the owner of this process, as the user database states it.

    The variable HOME is not used, since it may differ between a shell and a service.
    """
    try:
        return Path(os.path.realpath(pwd.getpwuid(os.getuid()).pw_dir))
    except KeyError:
        raise ConfigurationError(
            f"'~' cannot be resolved: user {os.getuid()} is not in the user database",
            hint="set the absolute path of the folder instead",
        ) from None


LOCATE_SECONDS: Final = 20.0
"""Time limit for the folder itself to respond, which shows whether the share is available."""
READ_SECONDS: Final = 180.0
"""Time limit for a few hundred files of a listing, or for a few pieces of a file."""
DOCUMENTS_AT_ONCE = 256
"""Number of files of a listing that are read together under one time limit."""

_Result = TypeVar("_Result")


class DiskReader:
    """Runs functions that read a source's folder, and gives up if the folder does not respond."""

    def __init__(self, source: str, folder: Path) -> None:
        self._source = source
        self._folder = folder
        self._hung_seconds = 0.0
        self._idle: list[_DiskWorker] = []

    def locate(self, roots: Roots, *, follow_link: bool) -> Path:
        """Return the folder to read; if it does not respond, return the configured root."""
        locate = partial(roots.locate, self._source, self._folder, follow_link=follow_link)
        try:
            return self.call(locate, LOCATE_SECONDS)
        except ListingFailed:
            return self._folder

    def call(self, read: Callable[[], _Result], seconds: float | None = None) -> _Result:
        """Call a function that reads the folder, and return its result.

        A call within another call shares the time limit of the outer call.

        Raises:
            ListingFailed: the folder does not respond, or did not respond to an earlier call.
        """
        seconds = seconds or READ_SECONDS
        if self._hung_seconds:
            raise self._build_failure()
        if isinstance(threading.current_thread(), _DiskThread):
            return read()
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = _DiskWorker()
        try:
            result = worker.call(read, seconds)
        except Empty:
            self._hung_seconds = seconds
            raise self._build_failure() from None
        self._idle.append(worker)
        if isinstance(result, _CallError):
            raise result.error
        return result

    def iter_items(self, items: Iterator[_Result], at_once: int | None = None) -> Iterator[_Result]:
        """Yield the items of an iterator that reads the folder, a few items per time limit."""
        at_once = at_once or DOCUMENTS_AT_ONCE
        while batch := self.call(lambda: list(islice(items, at_once))):
            yield from batch
            if len(batch) < at_once:
                return

    def iter_content(self, pieces: Iterator[bytes], path: str) -> Iterator[bytes]:
        """Yield the content of a file in pieces, each within the time limit."""
        try:
            yield from self.iter_items(pieces, at_once=1)
        except ListingFailed as error:
            raise DocumentUnreachable(
                f"the document {path!r} cannot be read now ({error.message})",
                hint="the document is read again later; check the disk or share that contains it",
            ) from error

    def _build_failure(self) -> ListingFailed:
        return ListingFailed(
            f"the folder {str(self._folder)!r} did not answer for {self._hung_seconds:.0f} s",
            hint="mount the disk or share of the folder again; until then its documents are kept",
        )


class _CallError:
    def __init__(self, error: BaseException) -> None:
        self.error = error


class _DiskThread(threading.Thread):
    pass


class _DiskWorker:
    """A thread that calls functions until its reader is deleted or the process ends."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._results: SimpleQueue[object] = SimpleQueue()
        _DiskThread(
            target=_run_calls, args=(self._calls, self._results), name="disk", daemon=True
        ).start()

    def __del__(self) -> None:
        self._calls.put(None)

    def call(self, read: Callable[[], _Result], seconds: float) -> _Result | _CallError:
        """Call a function in the thread, and return its result or its error; may raise Empty."""
        self._calls.put(read)
        return self._results.get(timeout=seconds)  # type: ignore[return-value]


def _run_calls(
    calls: SimpleQueue[Callable[[], object] | None], results: SimpleQueue[object]
) -> None:
    while (read := calls.get()) is not None:
        try:
            results.put(read())
        except BaseException as error:  # the caller raises it
            results.put(_CallError(error))
        del read
