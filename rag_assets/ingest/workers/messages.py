"""Messages between a pool and its workers: a JSON header, followed by bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import IO, Any

import orjson

_LENGTHS = struct.Struct(">QQ")


def packed(header: Mapping[str, Any]) -> bytes:
    """Encode a header for sending.

    Raises:
        UnicodeEncodeError: a text in the header contains a lone surrogate, which no store
            accepts.
    """
    try:
        return orjson.dumps(header)
    except TypeError:
        # The json module names the value that it cannot encode, and accepts deeper values and
        # larger numbers.
        return json.dumps(header, ensure_ascii=False).encode()


def write_message(stream: IO[bytes], header: Mapping[str, Any], data: bytes = b"") -> None:
    """Write one message to a stream and flush the stream."""
    write_packed(stream, packed(header), data)


def write_packed(stream: IO[bytes], header: bytes, data: bytes) -> None:
    """Write one message whose header is already packed, and flush the stream."""
    stream.write(_LENGTHS.pack(len(header), len(data)))
    stream.write(header)
    stream.write(data)
    stream.flush()


def read_message(stream: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; return None if the other side has ended, even in mid-message."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_length, data_length = _LENGTHS.unpack(lengths)
    raw = stream.read(header_length)
    data = stream.read(data_length)
    if len(raw) < header_length or len(data) < data_length:
        return None
    return orjson.loads(raw), data
