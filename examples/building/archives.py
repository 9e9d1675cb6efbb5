"""Writes Office files, which are zip archives, without times of creation."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

EPOCH = datetime(2026, 10, 8, 9, 0, tzinfo=UTC)
"""Time of creation in the properties of every document."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)


def with_fixed_times(archive: bytes) -> bytes:
    """Return the archive with all members dated 1 January 1980, the earliest date in zip files."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(archive)) as old,
        zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for name in old.namelist():
            new.writestr(
                zipfile.ZipInfo(name, _EARLIEST),
                old.read(name),
                compress_type=zipfile.ZIP_DEFLATED,
                compresslevel=9,
            )
    return target.getvalue()


def members(archive: bytes) -> dict[str, bytes]:
    """Return the contents of an archive's members, by name."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
