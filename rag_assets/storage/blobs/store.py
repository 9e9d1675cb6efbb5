"""Uploaded files of all tenants, content-addressed per tenant and incarnation.

`<tenant>/<incarnation>/blobs/<2 digits>/<sha-256>` contains a file as received. The catalog lists
the needed files; upkeep deletes a blob that no upload needs.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self
from uuid import uuid4

from rag_assets.common.errors import (
    BlobAltered,
    BlobMissing,
    ConfigurationError,
    RagAssetsError,
    ServiceUnavailable,
)
from rag_assets.common.settings import Settings
from rag_assets.common.tenant_folders import tenant_folder

if TYPE_CHECKING:
    from obstore.store import ObjectStore

_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Blob:
    """An uploaded file in the store.

    Attributes:
        sha256: hash of the content as received; it is the blob's name. The stored content may have
            been altered since.
    """

    sha256: str
    size: int
    modified_at: datetime


class BlobStore:
    """The blobs of all tenants."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def tenant(self, tenant: str, incarnation: int) -> TenantBlobs:
        """Return the blobs of one tenant, without opening or creating files.

        Raises:
            ConfigurationError: the id or the incarnation is invalid.
        """
        return TenantBlobs(self._place, tenant_folder(tenant, incarnation))

    @property
    def notes(self) -> BlobNotes:
        """Return the store of notes about the catalog, which are next to the blobs."""
        return BlobNotes(self._place)

    def incarnations(self) -> Iterator[tuple[str, int]]:
        """Yield the id and incarnation of every tenant with blobs."""
        with _convert_errors():
            for tenant in self._place.folders(""):
                for incarnation in self._place.folders(tenant):
                    if incarnation.isdecimal():
                        yield tenant, int(incarnation)


class BlobNotes:
    """Notes (see NoteStore), stored as small files next to the blobs and in tenants' folders."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def read(self, name: str) -> str | None:
        """Return a note; None if it does not exist."""
        try:
            with _convert_errors(may_be_missing=True):
                return b"".join(self._place.stream(name)).decode("utf-8", "replace")
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Write a note, replacing the former note."""
        with _convert_errors():
            self._place.write(name, text.encode())

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        with _convert_errors():
            self._place.delete(name)


class TenantBlobs:
    """The blobs of one tenant's incarnation; see BlobStore.tenant.

    Methods raise ServiceUnavailable if the store does not answer, or its disk is full.
    """

    def __init__(self, place: Place, folder: str) -> None:
        self._place = place
        self._folder = folder

    def receive(self) -> ReceivedFile:
        """Open a new file for an upload; leaving the `with` block deletes it unless it was kept."""
        with _convert_errors():
            folder = self._place.create_receive_folder(f"{self._folder}/staged")
            return ReceivedFile(self._place, self._folder, folder / uuid4().hex)

    def stream(self, sha256: str) -> Iterator[bytes]:
        """Yield the content of a blob in pieces of at most a few MiB.

        Raises:
            BlobMissing: no blob has that hash.
            BlobAltered: the content has another hash. This is raised after the last piece, so do
                not trust any piece before the end.
        """
        digest = hashlib.sha256()
        try:
            with _convert_errors(may_be_missing=True):
                for piece in self._place.stream(_build_name(self._folder, sha256)):
                    digest.update(piece)
                    yield piece
        except FileNotFoundError:
            raise BlobMissing(
                f"the uploaded file is not in the blob store: {sha256[:16]}",
                hint="upload the file again",
            ) from None
        if digest.hexdigest() != sha256:
            raise BlobAltered(
                f"the uploaded file is damaged in the blob store: {sha256[:16]}",
                hint="upload the file again",
            )

    def exists(self, sha256: str) -> bool:
        """Return whether a blob has this name, without verifying its content."""
        with _convert_errors():
            return self._place.exists(_build_name(self._folder, sha256))

    def delete(self, sha256: str) -> bool:
        """Delete a blob; return whether it existed."""
        with _convert_errors():
            return self._place.delete(_build_name(self._folder, sha256))

    def all(self) -> Iterator[Blob]:
        """Yield the tenant's blobs."""
        with _convert_errors():
            for file in self._place.files(f"{self._folder}/blobs"):
                sha256 = file.name.rpartition("/")[2]
                if _SHA256.fullmatch(sha256):
                    yield Blob(sha256, file.size, file.modified_at)

    def discard_staged(self, before: datetime) -> int:
        """Delete files that were received before a time but not kept; return their number."""
        with _convert_errors():
            old = [
                file.name
                for file in self._place.files(f"{self._folder}/staged")
                if file.modified_at < before
            ]
            return sum(self._place.delete(name) for name in old)

    def purge(self) -> None:
        """Delete all blobs of this incarnation."""
        with _convert_errors():
            self._place.remove(self._folder)


class ReceivedFile:
    """An uploaded file while it is being received; it becomes a blob with `keep`."""

    def __init__(self, place: Place, folder: str, path: Path) -> None:
        self._place = place
        self._folder = folder
        self._path = path
        self._staged = f"{folder}/staged/{path.name}"
        self._digest = hashlib.sha256()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._file = os.fdopen(os.open(path, flags, 0o600), "r+b", buffering=0)
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def write(self, piece: bytes) -> None:
        """Append a piece of the content."""
        with _convert_errors():
            remaining = memoryview(piece)
            while remaining:
                remaining = remaining[self._file.write(remaining) or 0 :]
        self._digest.update(piece)
        self.size += len(piece)

    @property
    def sha256(self) -> str:
        """Return the SHA-256, in hexadecimal, of the bytes written so far."""
        return self._digest.hexdigest()

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """Open the bytes written so far for reading."""
        with _convert_errors(), self._path.open("rb") as file:
            yield file

    def stage(self) -> None:
        """Make the file durable in the staging folder; it can no longer be written to."""
        with _convert_errors():
            self._file.close()
            self._place.stage(self._path, self._staged)

    def keep(self) -> None:
        """Make the staged file a blob: move it to the name of its hash.

        Call it right before the catalog records that it needs the blob.
        """
        with _convert_errors():
            self._place.move(self._staged, _build_name(self._folder, self.sha256))

    def discard(self) -> None:
        """Delete the received file, unless it was kept."""
        self._file.close()
        self._path.unlink(missing_ok=True)
        with _convert_errors():
            self._place.delete(self._staged)


def open_blobs(settings: Settings) -> BlobStore:
    """Return the installation's blobs, without opening or creating files."""
    return open_blobs_by_url(settings.blobs_url, settings)


def open_blobs_by_url(url: str, settings: Settings) -> BlobStore:
    """Return the blobs at this address, which may be a former address of the installation."""
    return _open_store(url, settings.local / "received")


def find_blobs_folder(url: str) -> Path | None:
    """Return the local folder of blobs; None if they are in an object store."""
    return None if "://" in url else Path(url)


@lru_cache(maxsize=4)
def _open_store(url: str, spool: Path) -> BlobStore:
    folder = find_blobs_folder(url)
    return BlobStore(ObjectPlace(url, spool) if folder is None else FolderPlace(folder))


def _build_name(folder: str, sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise ConfigurationError(f"not a SHA-256: {sha256[:80]!r}")
    return f"{folder}/blobs/{sha256[:2]}/{sha256}"


@contextmanager
def _convert_errors(*, may_be_missing: bool = False) -> Iterator[None]:
    """Convert errors of the file system and of object stores to the project's errors.

    Args:
        may_be_missing: whether a missing file is expected, so that FileNotFoundError is passed on
            unchanged.
    """
    try:
        yield
    except (RagAssetsError, GeneratorExit):
        raise
    except OSError as error:
        if may_be_missing and isinstance(error, FileNotFoundError):
            raise
        raise ServiceUnavailable(
            f"the blob store failed: {error.strerror or type(error).__name__}",
            hint="check that the folder in RAG_ASSETS_BLOBS_URL is writable and has free space",
        ) from None
    except Exception as error:
        if not type(error).__module__.startswith("obstore"):
            raise
        # The error's message may contain an address with credentials.
        raise ServiceUnavailable(
            f"the blob store failed: {type(error).__name__}",
            hint="check RAG_ASSETS_BLOBS_URL and the credentials of the object store",
        ) from None


PIECE_BYTES = 1 << 20
"""Maximum size of a piece that is read or written at once."""

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in a blob store.

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
        path = self._build_path(folder)
        _make_private(path)
        return path

    def stage(self, received: Path, name: str) -> None:  # noqa: D102
        with received.open("rb") as file:
            os.fsync(file.fileno())
        if received != self._build_path(name):
            received.replace(self._build_path(name))

    def move(self, name: str, to: str) -> None:  # noqa: D102
        target = self._build_path(to)
        _make_private(target.parent)
        self._build_path(name).replace(target)
        _sync_folder(target.parent)

    def write(self, name: str, content: bytes) -> None:  # noqa: D102
        target = self._build_path(name)
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
        with os.fdopen(os.open(self._build_path(name), _OPEN), "rb", buffering=0) as file:
            while piece := file.read(PIECE_BYTES):
                yield piece

    def exists(self, name: str) -> bool:  # noqa: D102
        return self._build_path(name).is_file()

    def delete(self, name: str) -> bool:  # noqa: D102
        try:
            self._build_path(name).unlink()
        except FileNotFoundError:
            return False
        return True

    def files(self, folder: str) -> Iterator[StoredFile]:  # noqa: D102
        for path in sorted(_list_files(self._build_path(folder))):
            try:
                facts = os.lstat(path)
            except FileNotFoundError:
                continue  # Deleted while the folder was listed.
            if stat.S_ISREG(facts.st_mode):
                name = os.path.relpath(path, self._root)
                at = datetime.fromtimestamp(facts.st_mtime, UTC)
                yield StoredFile(name, facts.st_size, at)

    def folders(self, folder: str) -> list[str]:  # noqa: D102
        path = self._build_path(folder) if folder else self._root
        entries = path.iterdir() if path.is_dir() else ()
        return sorted(entry.name for entry in entries if entry.is_dir())

    def remove(self, folder: str) -> None:  # noqa: D102
        path = self._build_path(folder)
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

    def _build_path(self, name: str) -> Path:
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
            obstore.delete(self._store, [entry["path"] for entry in batch])


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
