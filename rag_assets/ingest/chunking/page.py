"""The chunker of pages: cuts at headings; for a long page, also each block separately."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.chunking.heading import HEADING
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.parsing.model import Block, ParsedText


def blocks(request: ChunkRequest) -> list[Passage]:
    """Return the blocks of a page over the limit as passages; empty for a shorter page.

    A block that fits into a passage becomes one passage, whatever it contains. A longer block is
    cut like a separate text. Headings are left out, because the passage that contains a heading
    also contains the text below it.
    """
    parsed = request.parsed
    named = [one for one in parsed.blocks if one.block_id and one.kind != "heading"]
    if not named or sum(count_tokens([parsed.text])) <= request.limit:
        return []
    sizes = count_tokens([parsed.text[one.start : one.end] for one in named])
    found: list[Passage] = []
    for block, size in zip(named, sizes, strict=True):
        if size <= request.limit:
            path = block.heading_path
            found.append(Passage(block.start, block.start, block.end, path, size))
        else:
            found += _parts(request, block)
    return found


def _parts(request: ChunkRequest, block: Block) -> list[Passage]:
    """Return the passages of a block that is longer than the limit."""
    text = request.parsed.text[block.start : block.end]
    alone = replace(block, start=0, end=len(text))
    masked = tuple(
        replace(
            span,
            start=max(span.start, block.start) - block.start,
            end=min(span.end, block.end) - block.start,
        )
        for span in request.parsed.masked
        if span.start < block.end and block.start < span.end
    )
    cut = HEADING.split(replace(request, parsed=ParsedText(text, (alone,), masked=masked)))
    return [
        replace(
            one,
            start=one.start + block.start,
            new_start=one.new_start + block.start,
            end=one.end + block.start,
        )
        for one in cut
    ]


PAGE = ChunkerKind(
    name="page",
    purpose="along headings; of a page over the limit, each block is a passage as well",
    split=HEADING.split,
    unit="tokens",
    limit=HEADING.limit,
    overlap=HEADING.overlap,
    blocks=blocks,
)
