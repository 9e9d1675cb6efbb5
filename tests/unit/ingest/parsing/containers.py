"""ZIP archives and OLE2 files with only the parts that identify their type."""

import io
import struct
import zipfile
from collections.abc import Mapping

OLE2 = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


def zipped(entries: Mapping[str, str | bytes]) -> bytes:
    """Return a reproducible archive of these entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            undated = zipfile.ZipInfo(name)
            archive.writestr(undated, content, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def ooxml(main: str, *, encoding: str = "utf-8") -> bytes:
    """Return an Office document whose main part has a content type."""
    types = f'<Types><Override PartName="/x.xml" ContentType="application/vnd.{main}"/></Types>'
    return zipped({"[Content_Types].xml": types.encode(encoding)})


def ole2(*streams: str) -> bytes:
    """Return an OLE2 file that lists these streams."""
    names = [stream.encode("utf-16-le") for stream in streams]
    entries = [raw.ljust(64, b"\0") + struct.pack("<HB61x", len(raw) + 2, 2) for raw in names]
    return OLE2 + b"".join(entries)
