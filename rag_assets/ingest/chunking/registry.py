"""Chunkers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rag_assets.ingest.chunking.heading import HeadingChunker
from rag_assets.ingest.chunking.parameters import ChunkParameters
from rag_assets.ingest.chunking.passages import Chunker
from rag_assets.ingest.chunking.record import RecordChunker
from rag_assets.ingest.chunking.recursive import RecursiveChunker
from rag_assets.ingest.chunking.sentence import SentenceChunker

# (limit, overlap) → chunker. A new one is a line here and its settings' in parameters; raise
# CHUNKER_VERSION (chunk_set) when an old one cuts differently.
CHUNKERS: Mapping[str, Callable[[int, int], Chunker]] = {
    "heading": HeadingChunker,
    "recursive": RecursiveChunker,
    "sentence": SentenceChunker,
    "record": lambda max_tokens, _: RecordChunker(max_tokens),
}


def chunker_for(parameters: ChunkParameters) -> Chunker:
    """The chunker that parameters name."""
    return CHUNKERS[parameters.chunker](parameters.limit, parameters.overlap)
