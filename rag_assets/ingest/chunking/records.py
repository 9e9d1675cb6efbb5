"""Chunk sets as JSON-able records without texts, for those who have the parsed text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.ingest.chunking.chunk_set import ChunkSet, DroppedChunk
from rag_assets.ingest.chunking.model import Chunk, chunk_of, chunk_record


def to_record(chunk_set: ChunkSet) -> dict[str, Any]:
    """A chunk set without its texts."""
    return {
        "key": chunk_set.key,
        "digest": chunk_set.digest,
        "chunks": [_without_text(chunk) for chunk in chunk_set.chunks],
        "language": chunk_set.language,
        "dropped": [[d.ordinal, d.start, d.end, d.rules] for d in chunk_set.dropped],
    }


def from_record(record: Mapping[str, Any], text: str) -> ChunkSet:
    """The inverse of to_record.

    Args:
        record: the chunk set.
        text: the parsed text that it was made of.
    """
    return ChunkSet(
        key=record["key"],
        digest=record["digest"],
        chunks=tuple(
            chunk_of({**chunk, "text": text[chunk["start"] : chunk["end"]]})
            for chunk in record["chunks"]
        ),
        language=record["language"],
        dropped=tuple(
            DroppedChunk(ordinal, start, end, tuple(rules))
            for ordinal, start, end, rules in record["dropped"]
        ),
    )


def _without_text(chunk: Chunk) -> dict[str, Any]:
    record = chunk_record(chunk)
    del record["text"]
    return record
