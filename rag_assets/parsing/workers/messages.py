"""Messages between a pool and its workers: a JSON header, and bytes beside it."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import IO, Any

_LENGTHS = struct.Struct(">QQ")


def write_message(stream: IO[bytes], header: Mapping[str, Any], data: bytes = b"") -> None:
    """Write one message and flush it."""
    raw = json.dumps(header).encode()
    stream.write(_LENGTHS.pack(len(raw), len(data)))
    stream.write(raw)
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; None when the other side is gone, be it in the midst of one."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, data_length = _LENGTHS.unpack(lengths)
    raw = stream.read(header_length)
    data = stream.read(data_length)
    if len(raw) < header_length or len(data) < data_length:
        return None
    return json.loads(raw), data
