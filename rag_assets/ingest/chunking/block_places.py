"""Positions of a page's blocks in a chunk."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """A block, or part of a block, in a chunk.

    Attributes:
        block_id: the block's id in the application that pushed it.
        start: start of the part that is in the chunk; a character offset into ParsedText.text.
    """

    block_id: str
    start: int
