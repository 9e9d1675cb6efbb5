"""Open folders and files below a root without following links.

Every path component is opened relative to its parent (openat with O_NOFOLLOW). So a component that
is replaced by a link in the meantime cannot lead elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rag_assets.common.errors import (
    DocumentRejected,
    DocumentTooLarge,
    DocumentUnreachable,
    DocumentVanished,
)

PIECE_BYTES = 1 << 20

_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# If the system supports it, passing through a folder needs no permission to list the folder.
_PASS = _FOLDER | getattr(os, "O_PATH", os.O_RDONLY)
_LIST = _FOLDER | os.O_RDONLY
_OF_THE_PATH = frozenset(
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
    """Open an absolute, resolved folder for listing; the caller closes the descriptor."""
    return open_below(None, root.parts)


def open_below(folder: int | None, names: Sequence[str]) -> int:
    """Open the folder reached by names for listing; the caller closes the descriptor."""
    with _innermost_folder(folder, names[:-1]) as last:
        return os.open(names[-1], _LIST, dir_fd=last)


def open_regular(name: str, folder: int | None) -> int | None:
    """Open a regular file directly in a folder; return None if it is not a regular file."""
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
    with _document_error(path):
        with _innermost_folder(None, [*root.parts, *names[:-1]]) as folder:
            descriptor = open_regular(names[-1], folder)
        if descriptor is None:
            raise DocumentRejected(f"{path!r} is not a regular file")
        with os.fdopen(descriptor, "rb", buffering=0) as file:
            size = os.fstat(descriptor).st_size
            if size > max_bytes:
                raise _too_large(path, max_bytes)
            left = max_bytes
            # Read one byte more than the expected size, so that a small file needs only one
            # allocation.
            while piece := file.read(min(PIECE_BYTES, left + 1, size + 1)):
                left -= len(piece)
                if left < 0:
                    raise _too_large(path, max_bytes)
                yield piece


@contextmanager
def _innermost_folder(start: int | None, names: Sequence[str]) -> Iterator[int | None]:
    """Open nested folders by their names and yield the last one; it is closed afterwards."""
    reached: int | None = None
    try:
        for name in names:
            below = os.open(name, _PASS, dir_fd=start if reached is None else reached)
            if reached is not None:
                os.close(reached)
            reached = below
        yield start if reached is None else reached
    finally:
        if reached is not None:
            os.close(reached)


@contextmanager
def _document_error(path: str) -> Iterator[None]:
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
        if error.errno not in _OF_THE_PATH:
            raise DocumentUnreachable(
                f"the file {path!r} cannot be read now ({error.strerror})",
                hint="the file is read again later; check the disk or share that contains it",
            ) from error
        raise DocumentRejected(
            f"the file {path!r} cannot be read ({error.strerror})",
            hint="check whether its path contains a link or a special file; both are refused",
        ) from error


def _too_large(path: str, max_bytes: int) -> DocumentTooLarge:
    return DocumentTooLarge(
        f"the file {path!r} is over the limit of {readable_size(max_bytes)}",
        hint="increase max_bytes of the source, or exclude the file",
    )


def readable_size(size: int) -> str:
    """Format a number of bytes in the largest unit that gives a whole number."""
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size and size % 1024**power == 0:
            return f"{size // 1024**power} {unit}"
    return f"{size} bytes"
