"""Places where blobs are stored: a local folder, or a prefix of an object store.

A file is received in a local folder, so that its content can be inspected and hashed before it is
stored. It is then made durable in a staging folder, and moved to its name in one step. So a reader
finds either the whole file or no file, whatever happens to the writer.
"""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PIECE_BYTES = 1 << 20
"""Maximum size of a piece that is read or written at once."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a store of blobs.

    Attributes:
        name: its path relative to the store, with slashes.
    """

    name: str
    size: int
    modified_at: datetime


class Place(Protocol):
    """A store for blobs. Names consist of ids, numbers and hashes, never of user input."""

    def create_receive_folder(self, folder: str) -> Path:
        """Return the local folder that receives files for this folder; create it if needed."""
        ...

    def stage(self, received: Path, name: str) -> None:
        """Make a received file durable in the store, under a temporary (staging) name."""
        ...

    def move(self, name: str, to: str) -> None:
        """Move a staged file to its final name `to`, replacing an existing file."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one step: a reader finds either the former or the new content."""
        ...

    def stream(self, name: str) -> Iterator[bytes]:
        """Yield the content of a file in pieces; raises FileNotFoundError."""
        ...

    def exists(self, name: str) -> bool:
        """Return whether a file of that name exists."""
        ...

    def delete(self, name: str) -> bool:
        """Delete a file; return whether it existed."""
        ...

    def files(self, folder: str) -> Iterator[StoredFile]:
        """Yield the files below a folder, sorted by name; none if the folder does not exist."""
        ...

    def folders(self, folder: str) -> list[str]:
        """Return the sorted names of the folders directly in a folder."""
        ...

    def remove(self, folder: str) -> None:
        """Delete a folder with its contents, if it exists."""
        ...


class FolderPlace:
    """A local folder, readable only by the service's user."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def create_receive_folder(self, folder: str) -> Path:  # noqa: D102
        path = self._path(folder)
        _make_private(path)
        return path

    def stage(self, received: Path, name: str) -> None:  # noqa: D102
        with received.open("rb") as file:
            os.fsync(file.fileno())
        if received != self._path(name):
            received.replace(self._path(name))

    def move(self, name: str, to: str) -> None:  # noqa: D102
        target = self._path(to)
        _make_private(target.parent)
        self._path(name).replace(target)
        _sync_folder(target.parent)

    def write(self, name: str, content: bytes) -> None:  # noqa: D102
        target = self._path(name)
        _make_private(target.parent)
        aside = target.with_name(f"{target.name}.{os.getpid()}.{threading.get_ident()}.new")
        aside.unlink(missing_ok=True)
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(target)
        _sync_folder(target.parent)

    def stream(self, name: str) -> Iterator[bytes]:  # noqa: D102
        with os.fdopen(os.open(self._path(name), _OPEN), "rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def exists(self, name: str) -> bool:  # noqa: D102
        return self._path(name).is_file()

    def delete(self, name: str) -> bool:  # noqa: D102
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            return False
        return True

    def files(self, folder: str) -> Iterator[StoredFile]:  # noqa: D102
        for path in sorted(_list_files(self._path(folder))):
            try:
                facts = os.lstat(path)
            except FileNotFoundError:
                continue  # Deleted while the folder was listed.
            if stat.S_ISREG(facts.st_mode):
                name = os.path.relpath(path, self._root)
                at = datetime.fromtimestamp(facts.st_mtime, UTC)
                yield StoredFile(name, facts.st_size, at)

    def folders(self, folder: str) -> list[str]:  # noqa: D102
        path = self._path(folder) if folder else self._root
        found = path.iterdir() if path.is_dir() else ()
        return sorted(entry.name for entry in found if entry.is_dir())

    def remove(self, folder: str) -> None:  # noqa: D102
        path = self._path(folder)
        # A concurrent receiver may create new files while the folder is being deleted; it then
        # finds that the tenant is gone.
        for _ in range(3):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                break
        else:
            shutil.rmtree(path)
        if path.parent.is_dir() and path.parent != self._root and not any(path.parent.iterdir()):
            path.parent.rmdir()

    def _path(self, name: str) -> Path:
        return self._root / name


class ObjectPlace:
    """A prefix of an object store.

    Args:
        url: its address (s3://bucket/prefix, gs://…, az://…); credentials and settings come from
            the environment, under the same names as for the lake.
        spool: local folder in which files are received.
    """

    def __init__(self, url: str, spool: Path, store: ObjectStore | None = None) -> None:
        self._url = url
        self._spool = spool
        self._opened = store

    @property
    def _store(self) -> Any:
        if self._opened is None:
            from obstore.store import from_url

            self._opened = from_url(self._url)
        return self._opened

    def create_receive_folder(self, folder: str) -> Path:  # noqa: D102
        _make_private(self._spool)
        return self._spool

    def stage(self, received: Path, name: str) -> None:  # noqa: D102
        import obstore

        obstore.put(self._store, name, received)
        received.unlink()

    def move(self, name: str, to: str) -> None:  # noqa: D102
        import obstore

        obstore.rename(self._store, name, to, overwrite=True)

    def write(self, name: str, content: bytes) -> None:  # noqa: D102
        import obstore

        obstore.put(self._store, name, content)

    def stream(self, name: str) -> Iterator[bytes]:  # noqa: D102
        import obstore

        for piece in obstore.get(self._store, name).stream(min_chunk_size=PIECE_BYTES):
            yield bytes(piece)

    def exists(self, name: str) -> bool:  # noqa: D102
        import obstore

        try:
            obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def delete(self, name: str) -> bool:  # noqa: D102
        import obstore

        if not self.exists(name):
            return False
        obstore.delete(self._store, name)
        return True

    def files(self, folder: str) -> Iterator[StoredFile]:  # noqa: D102
        import obstore

        for batch in obstore.list(self._store, f"{folder}/"):
            for found in sorted(batch, key=lambda entry: str(entry["path"])):
                yield StoredFile(found["path"], found["size"], found["last_modified"])

    def folders(self, folder: str) -> list[str]:  # noqa: D102
        import obstore

        listed = obstore.list_with_delimiter(self._store, f"{folder}/" if folder else None)
        return sorted(name.rstrip("/").rpartition("/")[2] for name in listed["common_prefixes"])

    def remove(self, folder: str) -> None:  # noqa: D102
        import obstore

        for batch in obstore.list(self._store, f"{folder}/"):
            obstore.delete(self._store, [found["path"] for found in batch])


def _list_files(folder: Path) -> Iterator[str]:
    for root, _, names in os.walk(folder):
        for name in names:
            yield os.path.join(root, name)  # noqa: PTH118


def _make_private(folder: Path) -> None:
    """Create a folder that only this user can access, and its missing parents, durably."""
    if folder.is_dir():
        return
    _make_private(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    """Flush a folder to disk (fsync), so that a new file in it survives a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
