"""File systems that a test mounts, including hung and nearly full ones."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

_CLONE_NEWNS = 0x0002_0000
_MS_RDONLY, _MS_REMOUNT, _MS_BIND = 0x1, 0x20, 0x1000
_MS_REC, _MS_PRIVATE = 0x4000, 0x40000
_MNT_DETACH = 0x2

_T = TypeVar("_T")


def with_mounts(test: Callable[[Mounts], _T]) -> _T:
    """Run a function in a thread with private mounts; skip the test if that is not possible."""
    outcome: list[_T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            outcome.append(test(Mounts()))
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return outcome[0]


class Mounts:
    """The mounts of the calling thread, which are private to it from now on."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        if self._libc.unshare(_CLONE_NEWNS):
            pytest.skip("only the superuser can mount")
        self._mount(None, "/", _MS_REC | _MS_PRIVATE)

    def mount(self, folder: Path, kilobytes: int | None = None) -> None:
        """Mount an empty file system of this size."""
        folder.mkdir(parents=True, exist_ok=True)
        self._mount("tmpfs", folder, 0, kind="tmpfs", options=_size(kilobytes))

    def resize(self, folder: Path, kilobytes: int) -> None:
        """Change the size of a mounted file system."""
        self._mount("tmpfs", folder, _MS_REMOUNT, options=_size(kilobytes))

    def make_read_only(self, folder: Path) -> None:
        """Make a mounted file system read-only."""
        self._mount("tmpfs", folder, _MS_REMOUNT | _MS_RDONLY)

    def move(self, mounted: Path, elsewhere: Path) -> None:
        """Move a mount, which may be in use, to another folder."""
        elsewhere.mkdir(parents=True, exist_ok=True)
        self.bind(mounted, elsewhere)
        self.unmount(mounted)

    def bind(self, original: Path, elsewhere: Path) -> None:
        """Mount a folder or file at a second path."""
        self._mount(original, elsewhere, _MS_BIND)

    def unmount(self, folder: Path) -> None:
        """Unmount a folder, which may be in use."""
        self._require(self._libc.umount2(os.fsencode(folder), _MNT_DETACH))

    def _mount(
        self,
        source: str | Path | None,
        folder: str | Path,
        flags: int,
        kind: str | None = None,
        options: bytes | None = None,
    ) -> None:
        names = [None if name is None else os.fsencode(name) for name in (source, folder, kind)]
        self._require(self._libc.mount(*names, flags, options))

    def _require(self, result: int) -> None:
        if result:
            error = ctypes.get_errno()
            raise OSError(error, os.strerror(error))


def _size(kilobytes: int | None) -> bytes | None:
    return None if kilobytes is None else f"size={kilobytes}k".encode()


_LIBC = ctypes.CDLL(None, use_errno=True)
_LAZY = 2  # MNT_DETACH of umount2(2)


def can_mount() -> bool:
    return os.geteuid() == 0 and os.access("/dev/fuse", os.R_OK | os.W_OK)


@contextmanager
def hung_mount(folder: Path) -> Iterator[None]:
    """Mount a file system that never responds."""
    descriptor = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    try:
        with _mounted(folder, "fuse", f"fd={descriptor},rootmode=40000,user_id=0,group_id=0"):
            yield
    finally:
        os.close(descriptor)  # requests that wait for it fail


@contextmanager
def small_disk(folder: Path, size_bytes: int) -> Iterator[None]:
    """Mount a file system of this size."""
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
