"""The regions of a document: its blocks, and the text between blocks."""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.ingest.parsing.model import Block, BlockKind, ParsedText


@dataclass(frozen=True, slots=True)
class Region:
    """A block, or text outside any block, with the white space after it."""

    kind: BlockKind
    start: int
    end: int
    heading_path: tuple[str, ...]
    level: int


def find_regions(parsed: ParsedText) -> list[Region]:
    """Return the regions to chunk: all blocks except front matter, and the text between blocks."""
    found: list[Region] = []
    pos = 0
    path: tuple[str, ...] = ()
    end_of_text = Block("front_matter", len(parsed.text), len(parsed.text))
    for block in (*parsed.blocks, end_of_text):
        start = max(pos, block.start)
        gap = parsed.text[pos:start]
        if found and pos == found[-1].end and not gap.strip():
            last = found[-1]
            found[-1] = Region(last.kind, last.start, start, last.heading_path, last.level)
        elif gap.strip():
            found.append(Region("paragraph", pos, start, path, 0))
        if block.kind != "front_matter":
            path = block.heading_path
            if block.end > start:
                found.append(Region(block.kind, start, block.end, path, block.level))
        pos = max(pos, block.end)
    return found
