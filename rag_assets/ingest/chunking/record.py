"""The record chunker: one entry, one chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_assets.ingest.chunking.cuts import sentence_cuts
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packing import Limits, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.regions import Region
from rag_assets.ingest.chunking.sections import find_sections, join_sections
from rag_assets.ingest.chunking.units import Grammar, Units
from rag_assets.ingest.parsing.model import ParsedText


class RecordChunker:
    """Makes one passage of each entry, whole.

    - An entry is a row, with the headings between it and the row before. What stands between
      rows, or a document without any, is one entry.
    - An entry over the limit is cut: a row between its lines, sentences, words; other text along
      its sections first (see HeadingChunker).
    - Nothing is repeated: entries do not continue each other.

    Args:
        max_tokens: cl100k_base tokens; within the range of ChunkParameters.
    """

    def __init__(self, max_tokens: int) -> None:
        longest = 3 * max_tokens // 4
        self._grammar = Grammar(TOKENS, longest, longest // 2, sentence_cuts)
        self._limits = Limits(max_tokens, overlap=0)

    def split(self, parsed: ParsedText) -> list[Passage]:
        """The passages of a document, in order."""
        return pack(parsed, self._grammar, self._limits, self._entries)

    def _entries(self, regions: Sequence[Region], units: Units) -> Iterator[tuple[int, int]]:
        low = 0
        for index, region in enumerate(regions):
            if region.kind != "row":
                continue
            first = index
            while first > low and regions[first - 1].kind == "heading":
                first -= 1
            yield from self._between_rows(regions, units, low, first)
            yield units.first[first], units.first[index + 1]
            low = index + 1
        yield from self._between_rows(regions, units, low, len(regions))

    def _between_rows(
        self, regions: Sequence[Region], units: Units, low: int, high: int
    ) -> Iterator[tuple[int, int]]:
        start, end = units.first[low], units.first[high]
        if units.size(start, end) <= self._limits.size:
            yield start, end
        else:
            yield from join_sections(find_sections(regions, low, high), units, self._limits.size)
