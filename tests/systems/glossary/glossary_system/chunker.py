"""The chunker of definitions: one passage per line, with its term as a fact."""

from __future__ import annotations

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.model import Passage


def split(request: ChunkRequest) -> list[Passage]:
    """Return a definition as one passage."""
    text = request.parsed.text
    term = text.partition(":")[0].strip()
    return [Passage(0, 0, len(text), (term,), count_text(text), facts={"term": term})]


DEFINITION = ChunkerKind(
    name="definition",
    purpose="one chunk a definition, under its term as heading",
    split=split,
    unit="tokens",
    limit=512,
    overlaps=False,
)
