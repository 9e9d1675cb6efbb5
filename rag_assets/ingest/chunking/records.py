"""Chunk sets as JSON-compatible records without texts, for readers that have the parsed text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple
from typing import Any

from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.ingest.chunking.chunk_set import ChunkSet, DroppedChunk
from rag_assets.ingest.chunking.location import (
    LOCATION_FIELDS,
    UNKNOWN_LOCATION,
    Location,
    location_fields,
)
from rag_assets.ingest.chunking.model import NO_FACTS, Chunk, Definition, Fact

_FIELDS = (
    *("ordinal", "start", "end", "byte_start"),
    *("heading_path", "token_count", "text_sha256"),
)


def to_record(chunk_set: ChunkSet) -> dict[str, Any]:
    """Return a chunk set without its texts."""
    return {
        "key": chunk_set.key,
        "digest": chunk_set.digest,
        "chunks": [_values(chunk) for chunk in chunk_set.chunks],
        "language": chunk_set.language,
        "dropped": [[d.ordinal, d.start, d.end, d.rules] for d in chunk_set.dropped],
        "facts": fact_records(chunk_set.facts),
    }


def from_record(record: Mapping[str, Any], text: str) -> ChunkSet:
    """Return the chunk set of a record; the inverse of to_record.

    Args:
        record: the chunk set.
        text: the parsed text that was cut into these chunks.
    """
    return ChunkSet(
        key=record["key"],
        digest=record["digest"],
        chunks=tuple(_chunk(text, values) for values in record["chunks"]),
        language=record["language"],
        dropped=tuple(
            DroppedChunk(ordinal, start, end, tuple(rules))
            for ordinal, start, end, rules in record["dropped"]
        ),
        facts=facts_of(record["facts"]),
    )


def fact_records(facts: Iterable[Fact]) -> list[list[Any]]:
    """Return facts as JSON-able lists."""
    return [
        [f.kind, f.start, f.end, f.symbol, dict(f.values), f.line_start, f.line_end, f.evidence]
        for f in facts
    ]


def facts_of(
    records: Iterable[Sequence[Any]], wants_kind: Callable[[str], bool] | None = None
) -> tuple[Fact, ...]:
    """Return the facts of records; the inverse of fact_records.

    Args:
        records: the records.
        wants_kind: returns whether to include facts of a kind; all by default.
    """
    return tuple(Fact(*one) for one in records if wants_kind is None or wants_kind(one[0]))


def _values(chunk: Chunk) -> list[Any]:
    location = location_fields(chunk.location)
    place = [location[name] for name in LOCATION_FIELDS] if any(location.values()) else None
    values = [getattr(chunk, name) for name in _FIELDS]
    definition = None if chunk.definition is None else astuple(chunk.definition)
    blocks = [[block.block_id, block.start] for block in chunk.blocks]
    parts = place, dict(chunk.facts) or None, definition, blocks or None
    return [*values, *parts, chunk.of_block, chunk.context]


def _chunk(text: str, values: list[Any]) -> Chunk:
    *rest, place, facts, definition, blocks, of_block, context = values
    known = dict(zip(_FIELDS, rest, strict=True))
    known["heading_path"] = tuple(known["heading_path"])
    location = UNKNOWN_LOCATION
    if place is not None:
        location = Location(**dict(zip(LOCATION_FIELDS, place, strict=True)))
    return Chunk(
        text=text[known["start"] : known["end"]],
        location=location,
        facts=facts or NO_FACTS,
        definition=None if definition is None else Definition(*definition),
        blocks=tuple(BlockPlace(id_, start) for id_, start in blocks or ()),
        of_block=of_block,
        context=context,
        **known,
    )
