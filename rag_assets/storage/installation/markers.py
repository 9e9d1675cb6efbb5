"""Markers: small files in the roots of lake and blobs that name the installation they belong to."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.storage.blobs.store import open_blobs_at
from rag_assets.storage.catalog.installation import PlaceKind
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.store import Lake

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MARKER: Final = "rag-assets.json"
"""Name of the file in a root, and in the `.local` of a home folder."""


@dataclass(frozen=True, slots=True)
class Root:
    """The root of a store of files: a local folder, or a prefix of an object store.

    Its marker holds the owner, the address at which it was written, and the inode of the folder: in
    a copy of the root, one of the last two differs.
    """

    kind: PlaceKind
    url: str
    settings: Settings

    def owner(self) -> UUID | None:
        """Return the installation that the root belongs to; None without a marker.

        A store that does not answer has no owner: nothing can be written to it either.
        """
        return parse_uuid(self._marker().get("installation"))

    def is_copy(self) -> bool:
        """Return whether the marker was written for another root."""
        marker = self._marker()
        return (marker.get("address"), marker.get("inode")) != (self.url, self._inode())

    def has_data(self) -> bool:
        """Return whether data of any tenant lie in the root."""
        store = Lake(self.url) if self.kind == "lake" else open_blobs_at(self.url, self.settings)
        return any(True for _ in store.incarnations())

    def mark(self, installation: UUID) -> None:
        """Write the marker, unless it is there; a store that does not answer is left alone."""
        marker = {"installation": str(installation), "address": self.url}
        if not self._is_remote:
            with suppress(OSError):
                Path(self.url).mkdir(mode=0o700, parents=True, exist_ok=True)
        described = {**marker, "inode": self._inode()}
        if described != self._marker():
            self._write(json.dumps(described))

    @property
    def _is_remote(self) -> bool:
        return "://" in self.url

    def _marker(self) -> dict[str, Any]:
        return parse_marker(self._read())

    def _inode(self) -> int:
        try:
            return 0 if self._is_remote else Path(self.url).stat().st_ino
        except OSError:
            return 0

    def _read(self) -> str:
        if not self._is_remote:
            return read_text(Path(self.url) / MARKER)
        import obstore

        with suppress(OSError, obstore.exceptions.BaseError):
            return bytes(obstore.get(self._store(), MARKER).bytes()).decode("utf-8", "replace")
        return ""

    def _write(self, text: str) -> None:
        if not self._is_remote:
            with suppress(OSError):
                write_atomically(Path(self.url) / MARKER, text)
            return
        import obstore

        with suppress(OSError, obstore.exceptions.BaseError):
            obstore.put(self._store(), MARKER, text.encode())

    def _store(self) -> ObjectStore:
        from obstore.store import from_url

        return from_url(self.url)


def roots(settings: Settings) -> list[Root]:
    """Return the roots of the lake and of blobs."""
    lake = Location.parse(settings.lake_url).url
    return [Root("lake", lake, settings), Root("blobs", settings.blobs_url, settings)]


def read_text(path: Path) -> str:
    """Return the content of a small file; empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def parse_marker(content: str) -> dict[str, Any]:
    """Return the fields of a marker; none if it is missing or damaged."""
    try:
        fields = json.loads(content) if content else {}
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def parse_uuid(value: object) -> UUID | None:
    """Return a UUID; None if the value is not one."""
    try:
        return UUID(str(value))
    except ValueError:
        return None
