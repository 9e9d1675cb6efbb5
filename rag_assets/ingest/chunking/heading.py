"""The heading-aware chunker: sections first, then paragraphs, sentences, words."""

from __future__ import annotations

from functools import partial

from rag_assets.ingest.chunking.cuts import sentence_cuts
from rag_assets.ingest.chunking.measure import TOKENS
from rag_assets.ingest.chunking.packing import Limits, pack
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.sections import group_sections
from rag_assets.ingest.chunking.units import Grammar
from rag_assets.ingest.parsing.model import ParsedText


class HeadingChunker:
    """Cuts a document along its headings.

    - It is cut best at a block's end, then at a blank line, at the end of a sentence or of a line
      of code, of a table or of a list, between words, between visible characters (see pack).
    - A passage that continues a section repeats words of the one before it; none is repeated into
      another section.
    - Small neighbouring sections share a passage (see sections); its heading path is then what
      their paths have in common.

    Args:
        max_tokens: cl100k_base tokens; within the range of ChunkParameters.
        overlap: cl100k_base tokens, at most half of max_tokens.
    """

    def __init__(self, max_tokens: int, overlap: int) -> None:
        longest = 3 * (max_tokens - overlap) // 4
        self._grammar = Grammar(TOKENS, longest, longest // 2, sentence_cuts)
        self._limits = Limits(max_tokens, overlap)

    def split(self, parsed: ParsedText) -> list[Passage]:
        """The passages of a document, in order."""
        grouping = partial(group_sections, limit=self._limits.size)
        return pack(parsed, self._grammar, self._limits, grouping)
