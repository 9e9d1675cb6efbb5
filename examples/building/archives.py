"""Office files are zip archives, and archives remember when they were made: these do not."""

from __future__ import annotations

import io
import zipfile
from datetime import UTC, datetime

EPOCH = datetime(2026, 10, 8, 9, 0, tzinfo=UTC)
"""When every document was made, as far as its properties say."""

_EARLIEST = (1980, 1, 1, 0, 0, 0)


def with_fixed_times(archive: bytes) -> bytes:
    """The same archive with every member of 1 January 1980, the first day that zip knows."""
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
    """What an archive holds, by name."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return {name: opened.read(name) for name in opened.namelist()}
