"""Decoding of percent-encoded text, with the original offsets of each character."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENCODED = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_TRIPLE = 3
_MAX_DECODINGS = 3
"""Limit of repeated decoding, which is needed if a percent sign is itself encoded."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A decoded text.

    Attributes:
        text: the text after decoding.
        places: for each character of the text, its start and end in the original.
    """

    text: str
    places: tuple[tuple[int, int], ...]


def decodings(text: str) -> Iterator[Decoded]:
    """Yield a text decoded once, twice, and so on, as long as decoding changes it."""
    decoded = Decoded(text, tuple((at, at + 1) for at in range(len(text))))
    for _ in range(_MAX_DECODINGS):
        if _ENCODED.search(decoded.text) is None:
            return
        decoded = _decoded(decoded)
        yield decoded


def _decoded(whole: Decoded) -> Decoded:
    parts: list[str] = []
    places: list[tuple[int, int]] = []
    at = 0
    for found in _ENCODED.finditer(whole.text):
        start, end = found.span()
        parts.append(whole.text[at:start])
        places += whole.places[at:start]
        # Each byte that is not valid UTF-8 becomes a lone surrogate.
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
