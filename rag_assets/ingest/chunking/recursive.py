"""The recursive chunker: paragraphs, then lines, sentences, words, characters; no sections."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.ingest.chunking.boundaries import Rank, line_cuts, sentence_cuts
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packer import Limits, one_group, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.units import Grammar


def split(request: ChunkRequest) -> list[Passage]:
    """Cut a document at the largest separator near the limit.

    - The best cut is between paragraphs; the next best are, in this order, between lines,
      sentences, words, visible characters (see pack). A heading is a paragraph like any other, but
      stays with the text below it.
    - Every passage but the first repeats words of the previous passage, across headings too.
    """
    longest = 3 * (request.limit - request.overlap) // 4
    grammar = Grammar(TOKENS, longest, longest // 2, _prose_cuts)
    return pack(request.parsed, grammar, Limits(request.limit, request.overlap), one_group)


def _line_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    for at, rank in line_cuts(text, start, end):
        yield at, max(rank, Rank.LINE)


def _prose_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Yield cut positions after lines, and between the sentences within each line."""
    for at, rank in _line_cuts(text, start, end):
        yield from sentence_cuts(text, start, at)
        yield at, rank
        start = at
    yield from sentence_cuts(text, start, end)


RECURSIVE = ChunkerKind(
    name="recursive",
    purpose="at the best separator near the limit: paragraphs, lines, sentences, words",
    split=split,
    unit="tokens",
    limit=512,
    overlap=64,
)
