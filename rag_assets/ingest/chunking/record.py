"""The record chunker: one chunk per entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from rag_assets.ingest.chunking.boundaries import sentence_cuts
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packer import Limits, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.regions import Region
from rag_assets.ingest.chunking.sections import find_sections, join_sections
from rag_assets.ingest.chunking.units import Grammar, Units


def split(request: ChunkRequest) -> list[Passage]:
    """Return each entry as one whole passage.

    - An entry is a row, with the headings between it and the previous row. Text between two rows is
      one entry. A document without rows is one entry.
    - An entry over the limit is cut: a row is cut between its lines, sentences or words; other text
      is cut first at its sections (see heading).
    - Passages do not overlap, since an entry does not continue the previous one.
    """
    longest = 3 * request.limit // 4
    grammar = Grammar(TOKENS, longest, longest // 2, sentence_cuts)
    limits = Limits(request.limit, overlap=0)
    return pack(request.parsed, grammar, limits, partial(_entries, limit=limits.size))


def _entries(regions: Sequence[Region], units: Units, limit: int) -> Iterator[tuple[int, int]]:
    low = 0
    for index, region in enumerate(regions):
        if region.kind != "row":
            continue
        first = index
        while first > low and regions[first - 1].kind == "heading":
            first -= 1
        yield from _between_rows(regions, units, low, first, limit)
        yield units.first[first], units.first[index + 1]
        low = index + 1
    yield from _between_rows(regions, units, low, len(regions), limit)


def _between_rows(
    regions: Sequence[Region], units: Units, low: int, high: int, limit: int
) -> Iterator[tuple[int, int]]:
    start, end = units.first[low], units.first[high]
    if units.size(start, end) <= limit:
        yield start, end
    else:
        yield from join_sections(find_sections(regions, low, high), units, limit)


RECORD = ChunkerKind(
    name="record",
    purpose="one chunk an entry: a row of a table, with the headings above it",
    split=split,
    unit="tokens",
    limit=1200,
    overlaps=False,
)
