"""Small files that are replaced in one step: private files of the installation, and user files."""

from __future__ import annotations

import os
import stat
import tempfile
import threading
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Replace a small private file in one step, or raise an OSError; only its owner can read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_native_id()}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def rewrite_file(path: Path, content: bytes, *, new_mode: int) -> None:
    """Replace a file's content in one step, or raise an OSError; keep mode, owner and links.

    A new file gets `new_mode`.
    """
    target = Path(os.path.realpath(path))
    try:
        former = target.stat()
    except FileNotFoundError:
        former = None
    descriptor, name = tempfile.mkstemp(prefix=draft_prefix(target), dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            status = os.fstat(descriptor)
            if former and (former.st_uid, former.st_gid) != (status.st_uid, status.st_gid):
                os.fchown(descriptor, former.st_uid, former.st_gid)
            os.fchmod(descriptor, stat.S_IMODE(former.st_mode) if former else new_mode)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def draft_prefix(target: Path) -> str:
    """Return the name prefix of drafts, which a killed rewrite_file leaves next to a file."""
    return f".{target.name}-"


def sync_folder(folder: Path) -> None:
    """Flush the list of a folder's files to the disk (fsync)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
