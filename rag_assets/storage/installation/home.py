"""The home folder of an installation, described by a file in the folder's `.local`.

The file records the folder's path, and the identity of its anchor, a file that is never changed. A
copy of the folder has another path and another anchor; a folder that was moved keeps its anchor.
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from uuid import UUID, uuid4, uuid5

from rag_assets.common.private_files import write_atomically
from rag_assets.common.settings import Settings
from rag_assets.storage.installation.markers import (
    ANCHOR,
    MARKER,
    file_identity,
    make_anchor,
    parse_marker,
    parse_uuid,
    read_text,
)


class Home:
    """The identity of a home folder.

    Args:
        settings: settings that name the folder.
    """

    def __init__(self, settings: Settings) -> None:
        self._local = settings.local
        self._path = str(settings.home)
        self._file = settings.local / MARKER
        self._stored = parse_marker(read_text(self._file))

    @property
    def file(self) -> Path:
        """Return the file that describes the folder."""
        return self._file

    @property
    def installation(self) -> UUID | None:
        """Return the installation that the folder belongs to; None for a new folder."""
        return parse_uuid(self._stored.get("installation"))

    @property
    def recorded_path(self) -> str | None:
        """Return the path at which the folder was last used."""
        path = self._stored.get("path")
        return None if path is None else str(path)

    def is_copy(self) -> bool:
        """Return whether the folder is a copy of the folder that its file describes."""
        if not self._stored:
            return False
        anchor, recorded = self._anchor_identity(), str(self._stored.get("anchor", ""))
        if anchor == recorded:
            return False
        if self.recorded_path != self._path:
            return True
        # This is the same file with other permissions, or a backup that was restored in place.
        same_file = anchor.partition(":")[0] == recorded.partition(":")[0]
        return not same_file and self._stored.get("machine") != machine_name()

    def planned_clone(self, original: UUID) -> UUID | None:
        """Return the id of a clone that was started here and not completed."""
        return self.installation if self._stored.get("clone_of") == str(original) else None

    def join(
        self, installation: UUID, recorded_home: UUID | None, *, clone_of: UUID | None = None
    ) -> UUID:
        """Record that the folder belongs to the installation; return the id of the folder.

        A folder that cannot be written to gets an id derived from its path.

        Args:
            installation: the new owner of the folder.
            recorded_home: the id in the catalog of a folder with this path, used if the folder lost
                its `.local`.
            clone_of: the original, while the folder is being assigned to a clone.
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
                "machine": machine_name(),
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
        return file_identity(self._local / ANCHOR)


def machine_name() -> str:
    """Return the host name, with the machine id if it exists."""
    machine = read_text(Path("/etc/machine-id")).strip()
    return f"{socket.gethostname()}/{machine}" if machine else socket.gethostname()
