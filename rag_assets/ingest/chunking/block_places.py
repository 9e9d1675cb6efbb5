"""Where the blocks of a page stand in a chunk of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block that a chunk holds, or a part of it.

    Attributes:
        block_id: in the application that pushed it.
        start: of what the chunk holds of it; a character offset into ParsedText.text.
    """

    block_id: str
    start: int
