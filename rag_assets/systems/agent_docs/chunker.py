"""The chunker of agents' documentation: sentences, and a place of its own for each passage."""

from __future__ import annotations

from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkRequest
from rag_assets.ingest.chunking.own_places import with_own_places
from rag_assets.ingest.chunking.passages import Passage
from rag_assets.ingest.chunking.sentence import SENTENCE


def split(request: ChunkRequest) -> list[Passage]:
    """Cut as `sentence` does; no two passages begin at one place."""
    return list(with_own_places(SENTENCE.split(request)))


PASSAGE = ChunkerKind(
    name="passage",
    purpose="as sentence, each passage at a place of its own",
    split=split,
    unit="characters",
    limit=SENTENCE.limit,
    overlap=SENTENCE.overlap,
    most=1_000_000,
)
