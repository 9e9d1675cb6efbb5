"""Hashes that identify content, and keys that identify the output of a stage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Hashable: TypeAlias = (
    "str | int | float | bool | Sequence[Hashable] | Mapping[str, Hashable] | None"
)

# Created once: json.dumps creates an encoder for each call with options.
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
"""The JSON text of a value, the same on every machine."""


def sha256_hex(data: bytes | str) -> str:
    """The SHA-256 of bytes, or of a text's UTF-8, as 64 hexadecimal digits.

    A lone surrogate (an undecodable byte in a POSIX file name) is hashed as the byte it
    represents, so that every file name has a hash.
    """
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def keyed_digest(key: bytes, kind: str, *parts: Hashable) -> str:
    """A digest of these parts with a secret key: 128 bits, as 32 hexadecimal digits.

    Args:
        key: at most 64 bytes.
        kind, parts: as for key_of().
    """
    content = canonical([kind, *parts]).encode()
    return hashlib.blake2b(content, key=key, digest_size=16).hexdigest()


def key_of(kind: str, *parts: Hashable) -> str:
    """A 128-bit key, as 32 hexadecimal digits, over everything that determines an output.

    Args:
        kind: what the key identifies ("parse", "chunk_set", …); keys of two kinds never collide.
        parts: JSON-like values; mappings are sorted, so equal values have equal keys on every
            machine.
    """
    return short_digest(canonical([kind, *parts]).encode())


def short_digest(content: bytes) -> str:
    """The first half of the SHA-256 of bytes, as 32 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:32]
