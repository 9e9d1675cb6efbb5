"""ZIP archives and OLE2 files with no more in them than tells what they are."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def zipped(entries: Mapping[str, str | bytes]) -> bytes:
    """An archive of these entries, the same bytes each time."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            undated = zipfile.ZipInfo(name)
            archive.writestr(undated, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def ooxml(main: str, *, encoding: str = "utf-8") -> bytes:
    """An Office document whose main part is of a content type."""
    types = f'<Types><Override PartName="/x.xml" ContentType="application/vnd.{main}"/></Types>'
    return zipped({"[Content_Types].xml": types.encode(encoding)})


def ole2(*streams: str) -> bytes:
    """An OLE2 file that lists these streams."""
    names = [stream.encode("utf-16-le") for stream in streams]
    entries = [raw.ljust(64, b"\0") + struct.pack("<HB61x", len(raw) + 2, 2) for raw in names]
    return OLE2 + b"".join(entries)
