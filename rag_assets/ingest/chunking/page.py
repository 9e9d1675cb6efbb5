"""The chunker of pages: along headings; of a long page, each block by itself as well."""

from __future__ import annotations

from dataclasses import replace

from rag_assets.common.tokens import count_tokens
from rag_assets.ingest.chunking.heading import HEADING
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.parsing.model import Block, ParsedText


def blocks(request: ChunkRequest) -> list[Passage]:
    """The blocks of a page that is longer than a passage may be; none of a shorter one.

    A block that fits is one passage, whatever it holds; a longer one is cut as a text of its own.
    Headings are left out: the passage that has a heading has what stands below it.
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
    """The passages of a block that is longer than a passage may be."""
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
