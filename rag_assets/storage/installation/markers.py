"""Markers: small files in the roots of lake and blobs that name the installation they belong to."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.storage.blobs.store import open_blobs_by_url
from rag_assets.storage.catalog.installation.identity import Place, PlaceKind
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.store import Lake

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MARKER: Final = "rag-assets.json"
"""Name of the file in a root, and in the `.local` of a home folder."""
ANCHOR: Final = "anchor"
"""Name of an empty file next to a marker, which is never changed."""


class Root:
    """The root of a store of files: a local folder, or a prefix of an object store.

    The root's marker contains the owner, the address at which the marker was written, the identity
    of its anchor, and the former places of the installation. In a copy of the root, the address or
    the anchor differs; a root that was renamed keeps its anchor. The marker is read once.

    Args:
        kind: the kind of the store.
        url: the address.
        settings: the settings of the installation.
    """

    def __init__(self, kind: PlaceKind, url: str, settings: Settings) -> None:
        self.kind = kind
        self.url = url
        self._settings = settings

    def owner(self) -> UUID | None:
        """Return the installation that the root belongs to; None without a marker.

        A store that does not answer has no owner: it cannot be written to either.
        """
        return parse_uuid(self._marker.get("installation"))

    def is_copy(self) -> bool:
        """Return whether the marker was written for another root."""
        marker = self._marker
        return (marker.get("address"), marker.get("anchor", "")) != (self.url, self._anchor())

    def former_address(self) -> str | None:
        """Return the address that the root had before it, or a parent folder, was renamed.

        Nothing exists at the former address now. None if the root was not renamed, or was copied.
        """
        marker, anchor = self._marker, self._anchor()
        if not anchor or marker.get("anchor") != anchor or marker.get("address") == self.url:
            return None
        return str(marker["address"])

    def former_places(self) -> set[tuple[PlaceKind, str]]:
        """Return kinds and addresses of the installation's former places, according to the marker.

        A catalog that was restored from an earlier dump may lack them.
        """
        return {(kind, str(address)) for kind, address in self._marker.get("former", [])}

    def has_data(self) -> bool:
        """Return whether the root contains data of any tenant."""
        store = (
            Lake(self.url) if self.kind == "lake" else open_blobs_by_url(self.url, self._settings)
        )
        return any(True for _ in store.incarnations())

    def mark(self, installation: UUID, former: Iterable[Place] = ()) -> None:
        """Write the marker, unless it is up to date; a store that does not answer is skipped.

        Args:
            installation: the owner.
            former: the former places of the installation.
        """
        if not self._is_remote:
            with suppress(OSError):
                Path(self.url).mkdir(mode=0o700, parents=True, exist_ok=True)
                make_anchor(Path(self.url))
        marker = {
            "installation": str(installation),
            "address": self.url,
            "anchor": self._anchor(),
            "former": sorted([place.kind, place.address] for place in former),
        }
        if marker != self._marker:
            self._write(json.dumps(marker))
            self._marker = marker

    @property
    def _is_remote(self) -> bool:
        return "://" in self.url

    @cached_property
    def _marker(self) -> dict[str, Any]:
        return parse_marker(self._read())

    def _anchor(self) -> str:
        return "" if self._is_remote else file_identity(Path(self.url) / ANCHOR)

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


def make_anchor(folder: Path) -> None:
    """Create the anchor of a folder; an existing anchor is kept, with its change time."""
    with suppress(FileExistsError):
        (folder / ANCHOR).touch(mode=0o600, exist_ok=False)


def file_identity(path: Path) -> str:
    """Return inode and change time of a file, which a copy never shares; empty if missing."""
    try:
        facts = path.stat()
    except OSError:
        return ""
    return f"{facts.st_ino}:{facts.st_ctime_ns}"


def parse_marker(content: str) -> dict[str, Any]:
    """Return the fields of a marker; empty if it is missing or damaged."""
    try:
        fields = json.loads(content) if content else {}
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def parse_uuid(value: object) -> UUID | None:
    """Return a UUID; None if the value is not a UUID."""
    try:
        return UUID(str(value))
    except ValueError:
        return None
