"""File systems that misbehave: one whose server never answers, and one that is soon full."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_LIBC = ctypes.CDLL(None, use_errno=True)
_LAZY = 2  # MNT_DETACH of umount2(2)


def can_mount() -> bool:
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextmanager
def hung_mount(folder: Path) -> Iterator[None]:
    """Mount a file system over a folder whose server never answers."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        with _mounted(folder, "fuse", f"fd={descriptor},rootmode=40000,user_id=0,group_id=0"):
            yield
    finally:
        os.close(descriptor)  # what waits for it gets an error


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """Mount a file system of so many bytes over a folder."""
    with _mounted(folder, "tmpfs", f"size={size_bytes}"):
        yield


@contextmanager
def _mounted(folder: Path, kind: str, options: str) -> Iterator[None]:
    target = os.fsencode(folder)
    if _LIBC.mount(b"test", target, kind.encode(), 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"cannot mount a {kind} over {folder}")
    try:
        yield
    finally:
        _LIBC.umount2(target, _LAZY)
