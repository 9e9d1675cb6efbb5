"""Percent-encoded text, decoded, with the original offsets of each character."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_TRIPLE = 3
_DEEPEST = 3
"""An encoded percent sign makes a text that is encoded twice; deeper than this nobody decodes."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A text, decoded.

    Attributes:
        text: as it reads.
        places: for each of its characters, its start and end in the original.
    """

    text: str
    places: tuple[tuple[int, int], ...]


def decodings(text: str) -> Iterator[Decoded]:
    """What a text reads as when it is decoded once, twice, and so on, while that changes it."""
    now = Decoded(text, tuple((at, at + 1) for at in range(len(text))))
    for _ in range(_DEEPEST):
        if _ENCODED.search(now.text) is None:
            return
        now = _decoded(now)
        yield now


def _decoded(whole: Decoded) -> Decoded:
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for found in _ENCODED.finditer(whole.text):
        start, end = found.span()
        parts.append(whole.text[at:start])
        places += whole.places[at:start]
        # Bytes that are no UTF-8 become one lone surrogate each.
        read = bytes.fromhex(found[0].replace("%", "")).decode("utf-8", "surrogateescape")
        for character in read:
            width = _TRIPLE * len(character.encode("utf-8", "surrogateescape"))
            places.append((whole.places[start][0], whole.places[start + width - 1][1]))
            start += width
        parts.append(read)
        at = end
    parts.append(whole.text[at:])
    places += whole.places[at:]
    return Decoded("".join(parts), tuple(places))
