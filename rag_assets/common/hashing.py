"""Hashes that identify content, and keys that identify the output of a stage."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Hashable: TypeAlias = (
    "str | int | float | bool | Sequence[Hashable] | Mapping[str, Hashable] | None"
)

_DIGITS: Final = 12
"""Number of hexadecimal digits in a bound between ranges of hashes."""

# Created once: json.dumps creates an encoder for each call with options.
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode
"""Return the canonical JSON text of a value, the same on every machine."""


@dataclass(frozen=True, slots=True)
class HashRange:
    """A range of hexadecimal hashes."""

    first: str = ""
    end: str | None = None
    """The lowest hash beyond the range; None for no upper bound."""

    @classmethod
    def part(cls, number: int, count: int) -> HashRange:
        """Return one of `count` equal parts of the range of all hashes; `number` counts from 0."""
        return cls().parts(count)[number]

    def parts(self, count: int) -> list[HashRange]:
        """Split this range into parts with about equally many hashes each."""
        low = int(self.first.ljust(_DIGITS, "0"), 16)
        high = 1 << 4 * _DIGITS if self.end is None else int(self.end, 16)
        bounds = [f"{low + (high - low) * n // count:0{_DIGITS}x}" for n in range(1, count)]
        return [
            HashRange(first, end)
            for first, end in zip([self.first, *bounds], [*bounds, self.end], strict=True)
        ]

    def __contains__(self, digest: object) -> bool:
        return (
            isinstance(digest, str)
            and self.first <= digest
            and (self.end is None or digest < self.end)
        )


def sha256_hex(data: bytes | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8, as 64 hexadecimal digits.

    A lone surrogate (an undecodable byte in a POSIX file name) is hashed as the byte it represents,
    so that every file name has a hash.
    """
    raw = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()


def keyed_digest(key: bytes, kind: str, *parts: Hashable) -> str:
    """Return a keyed digest of these parts as 32 digits; the secret key has at most 64 bytes."""
    content = canonical([kind, *parts]).encode()
    return hashlib.blake2b(content, key=key, digest_size=16).hexdigest()


def compute_key(kind: str, *parts: Hashable) -> str:
    """Return a 128-bit key, as 32 hexadecimal digits, over everything that determines an output.

    Keys of two kinds never collide; equal values have equal keys on every machine.
    """
    return short_digest(canonical([kind, *parts]).encode())


def short_digest(content: bytes) -> str:
    """Return the first half of the SHA-256 of bytes, as 32 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()[:32]
