"""Free disk space, compared with the space that Elasticsearch leaves free.

Elasticsearch accepts no entries once its flood stage is reached. The embedded server's flood stage
is 1 GB of free space. The disks with the lake and uploaded files need the same amount: with less
free space, syncs and servers are about to stop. On a disk below 20 GB, 5 % have to be free.
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
"""Flood stage of the embedded Elasticsearch; see rag_assets.runtime.elasticsearch_node."""
_MIN_FREE_SHARE: Final = 0.05
_HINT: Final = (
    "free or add disk space there; results that were already paid for are kept. Run"
    " `rag-assets up` if servers have stopped, then sync again"
)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """The free space on a disk, and the space that must stay free on it."""

    place: str
    free_bytes: int
    required_bytes: int

    @property
    def is_nearly_full(self) -> bool:
        """Return whether less space is free than required."""
        return self.free_bytes < self.required_bytes

    def __str__(self) -> str:
        return (
            f"the disk of {self.place} is nearly full: {in_megabytes(self.free_bytes)} are"
            f" free, but {in_megabytes(self.required_bytes)} must be free (Elasticsearch's"
            " flood stage)"
        )

    @property
    def error(self) -> DiskFull:
        """Return the error that reports this disk as nearly full."""
        return DiskFull(str(self), hint=_HINT)


def measure_disks(folders: Iterable[Path | str]) -> list[DiskSpace]:
    """Return the space of each disk with one of these folders; object stores are skipped."""
    disks: dict[int, DiskSpace] = {}
    for folder in folders:
        if "://" in str(folder) or (existing := _find_existing(Path(folder))) is None:
            continue
        usage = shutil.disk_usage(existing)
        required = min(int(usage.total * _MIN_FREE_SHARE), FLOOD_STAGE_BYTES)
        space = DiskSpace(str(folder), usage.free, required)
        disks.setdefault(existing.stat().st_dev, space)
    return list(disks.values())


def measure_own_disks(settings: Settings) -> list[DiskSpace]:
    """Return the space of the disks of an installation: data of servers, lake, uploaded files."""
    return measure_disks([settings.local, settings.lake_url, settings.blobs_url])


def hint_to_start(variable: str) -> str:
    """Return the hint for a server that does not answer; a full disk may be the cause."""
    try:
        own = measure_own_disks(Settings.from_environment())
        full = next((space for space in own if space.is_nearly_full), None)
    except (ConfigurationError, OSError):
        full = None
    if full is not None:
        return f"{full}. {_HINT[0].upper()}{_HINT[1:]}"
    return f"start it with `rag-assets up`, or check {variable}"


def build_disk_full_error(folder: Path | str, consequence: str) -> DiskFull:
    """Return the error for a write to a full disk; its message ends with the consequence."""
    existing = _find_existing(Path(folder))
    free = in_megabytes(shutil.disk_usage(existing).free) if existing else "nothing"
    return DiskFull(f"the disk of {folder} is full ({free} free): {consequence}", hint=_HINT)


def in_megabytes(size: int) -> str:
    """Format a number of bytes in MB or GB, for people."""
    return f"{size / 1e9:,.1f} GB" if size >= 10**9 else f"{size / 1e6:,.1f} MB"


def _find_existing(folder: Path) -> Path | None:
    """Return the folder, or its nearest parent that exists and can be opened."""
    for path in (folder, *folder.parents):
        try:
            path.stat()
        except OSError:
            continue
        return path
    return None
