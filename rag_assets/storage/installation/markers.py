"""Files that identify an installation in its folders: in the lake, in blobs and in its home.

The file in the home's `.local` records the folder's path, and the identity of its anchor, a file
that is never changed. A copy of the folder has another path and another anchor; a folder that was
moved keeps its anchor.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4, uuid5

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.storage.blobs.store import open_blobs_by_url
from rag_assets.storage.catalog.installation.identity import Place, PlaceKind
from rag_assets.storage.lake.location import Location
from rag_assets.storage.lake.store import Lake

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MARKER: Final = "rag-assets.json"
"""Name of the marker file, in a root and in the `.local` of a home folder."""
ANCHOR: Final = "anchor"
"""Name of an empty file next to a marker, which is never changed."""


class Root:
    """The root of the lake or of the blobs: a local folder, or a prefix of an object store.

    The root's marker contains the owner, the address at which the marker was written, the identity
    of its anchor, and the former places of the installation. In a copy of the root, the address or
    the anchor differs; a root that was renamed keeps its anchor. The marker is read once.
    """

    def __init__(self, kind: PlaceKind, url: str, settings: Settings) -> None:
        self.kind = kind
        self.url = url
        self._settings = settings

    def owner(self) -> UUID | None:
        """Return the id of the installation that the root belongs to; None without a marker.

        None also if the store does not answer; then nothing can be written to it either.
        """
        return parse_uuid(self._marker.get("installation"))

    def is_copy(self) -> bool:
        """Return whether the root is a copy: its marker was written for another root."""
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
        """Return kinds and addresses of the former places that the marker lists."""
        return {(kind, str(address)) for kind, address in self._marker.get("former", [])}

    def has_data(self) -> bool:
        """Return whether the root contains data of any tenant."""
        store = (
            Lake(self.url) if self.kind == "lake" else open_blobs_by_url(self.url, self._settings)
        )
        return any(True for _ in store.incarnations())

    def mark(self, installation: UUID, former: Iterable[Place] = ()) -> None:
        """Write the marker, unless it is up to date; a store that does not answer is skipped."""
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
        return "" if self._is_remote else read_file_identity(Path(self.url) / ANCHOR)

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


def open_roots(settings: Settings) -> list[Root]:
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


def read_file_identity(path: Path) -> str:
    """Return "<inode>:<change time>" of a file, which a copy never shares; "" if it is missing."""
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


class Home:
    """The identity of a home folder."""

    def __init__(self, settings: Settings) -> None:
        self._local = settings.local
        self._path = str(settings.home)
        self._file = settings.local / MARKER
        self._stored = parse_marker(read_text(self._file))

    @property
    def file(self) -> Path:
        """Return the path of the marker file in the home folder's `.local`."""
        return self._file

    @property
    def installation(self) -> UUID | None:
        """Return the installation that the folder belongs to; None for a new folder."""
        return parse_uuid(self._stored.get("installation"))

    @property
    def recorded_path(self) -> str | None:
        """Return the path at which the folder was last used; None for a new folder."""
        path = self._stored.get("path")
        return None if path is None else str(path)

    def is_copy(self) -> bool:
        """Return whether the folder is a copy of the folder that its marker describes."""
        if not self._stored:
            return False
        anchor, recorded = self._anchor_identity(), str(self._stored.get("anchor", ""))
        if anchor == recorded:
            return False
        if self.recorded_path != self._path:
            return True
        # This is the same file with other permissions, or a backup that was restored in place.
        same_file = anchor.partition(":")[0] == recorded.partition(":")[0]
        return not same_file and self._stored.get("machine") != read_machine_name()

    def find_planned_clone(self, original: UUID) -> UUID | None:
        """Return the id of a clone that was started in this folder and not completed, if any."""
        return self.installation if self._stored.get("clone_of") == str(original) else None

    def join(
        self, installation: UUID, recorded_home: UUID | None, *, clone_of: UUID | None = None
    ) -> UUID:
        """Record that the folder belongs to the installation; return the id of the folder.

        A folder that cannot be written to gets an id derived from its path.

        Args:
            recorded_home: the id that the catalog records for a folder with this path. It is used
                if the folder has lost its marker.
            clone_of: the original installation, while the folder is being assigned to a clone.
        """
        home = parse_uuid(self._stored.get("home"))
        if home is None or self.installation != installation:
            home = recorded_home or uuid4()
        try:
            self._local.mkdir(mode=0o700, exist_ok=True)
            make_anchor(self._local)
            described = {
                "installation": str(installation),
                "home": str(home),
                "path": self._path,
                "machine": read_machine_name(),
                "anchor": self._anchor_identity(),
                **({} if clone_of is None else {"clone_of": str(clone_of)}),
            }
            if described != self._stored:
                write_atomically(self._file, json.dumps(described))
        except OSError:
            return uuid5(installation, self._path)
        self._stored = described
        return home

    def _anchor_identity(self) -> str:
        return read_file_identity(self._local / ANCHOR)


def read_machine_name() -> str:
    """Return "<host name>/<machine id>", or only the host name if the machine has no id."""
    machine = read_text(Path("/etc/machine-id")).strip()
    return f"{socket.gethostname()}/{machine}" if machine else socket.gethostname()
