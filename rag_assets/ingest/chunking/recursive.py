"""The recursive chunker: paragraphs, then lines, sentences, words, characters; no sections."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.ingest.chunking.cuts import Rank, line_cuts, sentence_cuts
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packing import Limits, one_group, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.units import Grammar
from rag_assets.ingest.parsing.model import ParsedText


class RecursiveChunker:
    """Cuts a document at the largest of its separators that is near the limit.

    - It is cut best between paragraphs, then between lines, sentences, words, visible characters
      (see pack). A heading is a paragraph like any other, but stays with the text below it.
    - Every passage but the first repeats words of the one before it, across headings too.

    Args:
        max_tokens: cl100k_base tokens; within the range of ChunkParameters.
        overlap: cl100k_base tokens, at most half of max_tokens.
    """

    def __init__(self, max_tokens: int, overlap: int) -> None:
        longest = 3 * (max_tokens - overlap) // 4
        self._grammar = Grammar(TOKENS, longest, longest // 2, _prose_cuts, _line_cuts)
        self._limits = Limits(max_tokens, overlap)

    def split(self, parsed: ParsedText) -> list[Passage]:
        """The passages of a document, in order."""
        return pack(parsed, self._grammar, self._limits, one_group)


def _line_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    for at, rank in line_cuts(text, start, end):
        yield at, max(rank, Rank.LINE)


def _prose_cuts(text: str, start: int, end: int) -> Iterator[tuple[int, Rank]]:
    """Places after lines, and between the sentences within each."""
    for at, rank in _line_cuts(text, start, end):
        yield from sentence_cuts(text, start, at)
        yield at, rank
        start = at
    yield from sentence_cuts(text, start, end)
