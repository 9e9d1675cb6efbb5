"""The heading-aware chunker: sections first, then paragraphs, sentences, words."""

from __future__ import annotations

from functools import partial

from rag_assets.ingest.chunking.boundaries import sentence_cuts
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packer import Limits, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.sections import group_sections
from rag_assets.ingest.chunking.units import Grammar


def split(request: ChunkRequest) -> list[Passage]:
    """Cut a document at its headings.

    - The best position for a cut is the end of a block. The next best are, in this order: a blank
      line, the end of a sentence or of a line of code, a table or a list, between words, between
      visible characters (see pack).
    - A passage that continues a section repeats words of the previous passage; the overlap never
      crosses into another section.
    - A new passage starts at headings of the configured levels, by default of all levels; deeper
      headings stay with the section above them.
    - Small neighbouring sections share a passage (see sections); its heading path is then the
      common part of their paths.
    """
    longest = 3 * (request.limit - request.overlap) // 4
    grammar = Grammar(TOKENS, longest, longest // 2, sentence_cuts)
    limits = Limits(request.limit, request.overlap)
    grouping = partial(group_sections, limit=limits.size, levels=request.levels)
    return pack(request.parsed, grammar, limits, grouping)


HEADING = ChunkerKind(
    name="heading",
    purpose="along headings: small sections together, none across a chapter",
    split=split,
    unit="tokens",
    limit=1200,
    overlap=150,
    levels=0,
)
