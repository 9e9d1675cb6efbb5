"""Free space of disks, compared with the space that Elasticsearch leaves free.

From its flood stage on, Elasticsearch accepts no entries. The embedded one has it at 1 GB, and the
same is required of the disks with the lake and uploaded files: with less, syncs and servers are
about to stop. Of a disk below 20 GB, 5 % have to be free.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError, DiskFull
from rag_assets.common.settings import Settings

FLOOD_STAGE_BYTES: Final = 1 << 30
"""Of the embedded Elasticsearch; see rag_assets.local_stack.elasticsearch_node."""
_LEAST_SHARE: Final = 0.05
_HINT: Final = (
    "free or add disk space there; what was paid for is kept. Then sync again, after `rag-assets"
    " up` where servers stopped"
)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The space of the disk that a folder is on.

    Attributes:
        place: the folder, or a node of Elasticsearch.
        required_bytes: that have to be free.
    """

    place: str
    free_bytes: int
    required_bytes: int

    @property
    def is_nearly_full(self) -> bool:
        """Whether less is free than has to be."""
        return self.free_bytes < self.required_bytes

    def __str__(self) -> str:
        return (
            f"the disk of {self.place} is nearly full: {in_megabytes(self.free_bytes)} are free,"
            f" and {in_megabytes(self.required_bytes)} have to be (Elasticsearch's flood stage)"
        )

    @property
    def error(self) -> DiskFull:
        """The error that reports it."""
        return DiskFull(str(self), hint=_HINT)


def disk_spaces(folders: Iterable[Path | str]) -> list[DiskSpace]:
    """Return the space of each disk that these folders are on, once; not of addresses of stores."""
    found: dict[int, DiskSpace] = {}
    for folder in folders:
        if "://" in str(folder) or (existing := _existing(Path(folder))) is None:
            continue
        usage = shutil.disk_usage(existing)
        required = min(int(usage.total * _LEAST_SHARE), FLOOD_STAGE_BYTES)
        space = DiskSpace(str(folder), usage.free, required)
        found.setdefault(existing.stat().st_dev, space)
    return list(found.values())


def own_disks(settings: Settings) -> list[DiskSpace]:
    """Return the disks of an installation's folders: data of servers, lake, uploaded files."""
    return disk_spaces([settings.local, settings.lake_url, settings.blobs_url])


def hint_to_start(variable: str) -> str:
    """Return the remedy for a server that does not answer: it may have stopped on a full disk.

    Args:
        variable: that names the server's address.
    """
    try:
        own = own_disks(Settings.from_environment())
        full = next((space for space in own if space.is_nearly_full), None)
    except (ConfigurationError, OSError):
        full = None
    if full is not None:
        return f"{full}. {_HINT[0].upper()}{_HINT[1:]}"
    return f"start it with `rag-assets up`, or check {variable}"


def disk_full(folder: Path | str, consequence: str) -> DiskFull:
    """Return the error for a write to a full disk."""
    existing = _existing(Path(folder))
    free = in_megabytes(shutil.disk_usage(existing).free) if existing else "nothing"
    return DiskFull(f"the disk of {folder} is full ({free} free): {consequence}", hint=_HINT)


def in_megabytes(size: int) -> str:
    """Return a number of bytes for people."""
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{size / 1e6:,.1f} MB"


def _existing(folder: Path) -> Path | None:
    """Return the folder, or the nearest one above it that exists and can be opened."""
    for path in (folder, *folder.parents):
        try:
            path.stat()
        except OSError:
            continue
        return path
    return None
