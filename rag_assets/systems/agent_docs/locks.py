"""Locks of builders: files whose lock the death of a process frees."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rag_assets.common.errors import ConfigurationError


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold a lock on a file, which is made where there is none; waits for it.

    Args:
        path: of the file.
        shared: whether others may hold a shared one as well.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def foreign(path: Path, why: str) -> ConfigurationError:
    """Return the error of a file that is not ours to read or to write."""
    return ConfigurationError(
        f"{path} {why}; nothing was changed",
        hint="name another place in `rag.path`, or move the file away",
    )


def set_aside(path: Path) -> Path:
    """Rename a damaged file, so that nothing of it is lost; returns its new name."""
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    return path.rename(aside)
