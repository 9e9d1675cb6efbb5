"""Locations of the lake (local folders or prefixes of an object store), and its notes."""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rag_assets.common.errors import ConfigurationError, ServiceUnavailable
from rag_assets.common.hashing import sha256_hex

_UNUSABLE = re.compile(r"[\[\]|^\\]|%[0-9A-Fa-f]{2}")  # Delta Lake fails if a path contains these
_STAGED = re.compile(r"#[0-9]+$")
SPOOL_FOLDER = "_spool"
"""The folder of vectors that are not in a table yet; no table has this name."""
_NAME = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*", re.ASCII)


def build_embedder_slug(embedder_id: str) -> str:
    """Return a readable folder name for an embedder; each embedder_id has a different name."""
    readable = re.sub(r"[^a-z0-9]+", "-", embedder_id.lower())[:40].strip("-")
    return f"{readable}-{sha256_hex(embedder_id)[:16]}".lstrip("-")


@dataclass(frozen=True, slots=True)
class Location:
    """A folder, or a prefix of an object store; its credentials come from the environment.

    Attributes:
        url: an absolute local path, or an address with a scheme (s3://bucket/prefix, …).
    """

    url: str

    @classmethod
    def parse(cls, url: str) -> Location:
        """Parse RAG_ASSETS_LAKE_URL: a path (absolute, relative or with ~) or an address.

        Raises:
            ConfigurationError: the lake cannot use that location.
        """
        url = url.removeprefix("file://")
        if not url:
            raise ConfigurationError("the lake's address is empty", hint="set RAG_ASSETS_LAKE_URL")
        if "://" not in url:
            url = str(Path(url).expanduser().absolute())
            if _UNUSABLE.search(url):
                raise ConfigurationError(
                    "the lake's path contains one of the characters []|^\\ or an escape such"
                    f" as %41: {url}",
                    hint="set RAG_ASSETS_LAKE_URL to another folder",
                )
        return cls(url.rstrip("/") or "/")

    @property
    def is_local(self) -> bool:
        """Return whether the location is a local folder."""
        return "://" not in self.url

    def __truediv__(self, name: str) -> Location:
        for part in name.split("/"):
            if not _NAME.fullmatch(part):
                raise ConfigurationError(f"invalid folder name in the lake: {part[:80]!r}")
        return Location(f"{self.url.rstrip('/')}/{name}")

    def folders(self) -> Iterator[str]:
        """Yield the sorted names of subfolders that are valid in a lake; none if it is missing."""
        if self.is_local:
            path = Path(self.url)
            names = [p.name for p in path.iterdir() if p.is_dir()] if path.is_dir() else []
        else:
            filesystem, root = self._open_filesystem()
            entries = filesystem.ls(root, detail=True) if filesystem.exists(root) else []
            names = [
                entry["name"].rstrip("/").rsplit("/", 1)[-1]
                for entry in entries
                if entry["type"] == "directory"
            ]
        yield from sorted(name for name in names if _NAME.fullmatch(name))

    def read_file_size(self, url: str) -> int | None:
        """Return the size in bytes of a file in the location; None if the file does not exist."""
        try:
            if self.is_local:
                return Path(url).stat().st_size
            return int(self._open_filesystem()[0].info(url)["size"])
        except FileNotFoundError:
            return None

    def files(self) -> Iterator[str]:
        """Yield the sorted addresses of all files below the location; none if it does not exist."""
        if self.is_local:
            path = Path(self.url)
            paths = path.rglob("*") if path.is_dir() else ()
            yield from sorted(str(file) for file in paths if file.is_file())
            return
        filesystem, root = self._open_filesystem()
        scheme = self.url.split("://", maxsplit=1)[0]
        names = filesystem.find(root) if filesystem.exists(root) else []
        yield from sorted(f"{scheme}://{name}" for name in names)

    def read(self, url: str) -> str:
        """Return the text of a file in the location; invalid UTF-8 is replaced."""
        if self.is_local:
            return Path(url).read_text(encoding="utf-8", errors="replace")
        filesystem, _ = self._open_filesystem()
        return str(filesystem.cat_file(url).decode("utf-8", "replace"))

    def write(self, name: str, text: str) -> None:
        """Write a whole file in the location: a reader finds either the former or the new text."""
        if not self.is_local:
            filesystem, root = self._open_filesystem()
            filesystem.pipe_file(f"{root}/{name}", text.encode())
            return
        folder = (Path(self.url) / name).parent
        folder.mkdir(parents=True, exist_ok=True)
        # The name is unique per thread, too; staged_files() finds names that end with a number.
        aside = Path(self.url) / f"{name}#{os.getpid()}{threading.get_ident()}"
        with aside.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(Path(self.url) / name)

    def delete(self, name: str) -> None:
        """Delete a file in the location, if it exists."""
        if self.is_local:
            (Path(self.url) / name).unlink(missing_ok=True)
            return
        filesystem, root = self._open_filesystem()
        if filesystem.exists(f"{root}/{name}"):
            filesystem.rm_file(f"{root}/{name}")

    def remove(self) -> None:
        """Delete the location with its contents, if it exists."""
        if self.is_local:
            path = Path(self.url)
            if path.exists():
                shutil.rmtree(path)
            return
        filesystem, root = self._open_filesystem()
        if filesystem.exists(root):
            filesystem.rm(root, recursive=True)

    def staged_files(self) -> list[Path]:
        """Return incomplete files that a killed writer left; Delta's own vacuum does not find them.

        A local file is written as `<name>#<number>` and then renamed; listings omit such names. An
        object store keeps unfinished uploads separately, and its lifecycle rule deletes them.
        """
        path = Path(self.url)
        paths = path.rglob("*#*") if self.is_local and path.is_dir() else ()
        return [file for file in paths if _STAGED.search(file.name)]

    def remove_if_empty(self) -> None:
        """Delete a local folder if it is empty; object stores have no empty folders."""
        path = Path(self.url)
        if self.is_local and path.is_dir() and not any(path.iterdir()):
            path.rmdir()

    def _open_filesystem(self) -> tuple[Any, str]:
        """Return the object store as an fsspec file system, for listing and deleting folders."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        try:
            filesystem, root = url_to_fs(self.url)
        except ImportError as error:
            raise ConfigurationError(
                f"no package can list and delete {self.url.split('://')[0]}:// folders: {error}",
                hint="install the fsspec package of your object store (s3fs, gcsfs, adlfs)",
            ) from error
        return filesystem, str(root)


class LakeNotes:
    """Reads and writes notes about the catalog in the lake's root folder (see NoteStore)."""

    def __init__(self, location: Location) -> None:
        self._location = location

    def read(self, name: str) -> str | None:
        """Return a note; None if it does not exist."""
        with _convert_errors("read"):
            try:
                return self._location.read(f"{self._location.url}/{name}")
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write(self, name: str, text: str) -> None:
        """Write a note, replacing the former note."""
        with _convert_errors("written"):
            self._location.write(name, text)

    def delete(self, name: str) -> None:
        """Delete a note, if it exists."""
        with _convert_errors("deleted"):
            self._location.delete(name)


@contextmanager
def _convert_errors(action: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ServiceUnavailable(
            f"a note in the lake cannot be {action}: {error.strerror or error}",
            hint="check RAG_ASSETS_LAKE_URL, its credentials, permissions and free space",
        ) from error
