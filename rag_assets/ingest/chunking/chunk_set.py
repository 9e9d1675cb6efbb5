"""All chunks of one document: what the lake keeps and the index takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rag_assets.common.hashing import key_of
from rag_assets.ingest.chunking.masks import touching
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.chunking.parameters import ChunkParameters
from rag_assets.ingest.chunking.passages import locate
from rag_assets.ingest.chunking.registry import chunker_for
from rag_assets.ingest.parsing.languages import language_identity, language_of
from rag_assets.ingest.parsing.model import ParsedText

CHUNKER_VERSION = 1
"""Raised whenever the same text and parameters would give other chunks."""


@dataclass(frozen=True, slots=True)
class DroppedChunk:
    """A chunk that touched a credential and so is neither embedded nor indexed.

    Attributes:
        ordinal: its position among all chunks, kept and dropped.
        start, end: character offsets into ParsedText.text, half open.
        rules: names of the rules that found the credentials, sorted.
    """

    ordinal: int
    start: int
    end: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """The chunks of one document.

    Attributes:
        key: identifies what they were made of (chunk_set_key).
        digest: identifies what they are: all of them that enters the index. Two keys with one
            digest and language need no indexing.
        chunks: those kept, numbered from 0 without gaps.
        language: of the document; see language_of.
        dropped: those withheld, in order.
    """

    key: str
    digest: str
    chunks: tuple[Chunk, ...]
    language: str | None = None
    dropped: tuple[DroppedChunk, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Plain JSON-like values; `chunks` and `dropped` are lists of flat rows."""
        return {
            "key": self.key,
            "digest": self.digest,
            "language": self.language,
            "chunks": [_flat(chunk) for chunk in self.chunks],
            "dropped": [_flat(dropped) for dropped in self.dropped],
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> ChunkSet:
        """What to_record() was made from."""
        return cls(
            key=record["key"],
            digest=record["digest"],
            language=record["language"],
            chunks=tuple(
                Chunk(**{**row, "heading_path": tuple(row["heading_path"])})
                for row in record["chunks"]
            ),
            dropped=tuple(
                DroppedChunk(**{**row, "rules": tuple(row["rules"])}) for row in record["dropped"]
            ),
        )


def chunk_set_key(parsed_digest: str, media_type: str, parameters: ChunkParameters) -> str:
    """The key of a chunk set: everything that determines it, known before any chunk is made.

    Args:
        parsed_digest: hash of the parsed text, its blocks, title and masked spans.
        media_type: the detected type, since chunkers and languages may depend on it.
        parameters: the chunker and its limits.
    """
    return key_of(
        "chunk_set",
        parsed_digest,
        media_type,
        CHUNKER_VERSION,
        language_identity(media_type),
        parameters.identity(),
    )


def chunk_document(
    parsed: ParsedText, parameters: ChunkParameters, *, parsed_digest: str
) -> ChunkSet:
    """Cut one document, withhold every chunk that touches a masked credential, tell its language.

    Raises:
        ConfigurationError: parameters name no chunker.
    """
    made = list(locate(parsed, chunker_for(parameters).split(parsed)))
    kept: list[Chunk] = []
    dropped: list[DroppedChunk] = []
    for chunk, masks in zip(made, touching(parsed.masked, made), strict=True):
        if masks:
            rules = tuple(sorted({mask.rule for mask in masks}))
            dropped.append(DroppedChunk(chunk.ordinal, chunk.start, chunk.end, rules))
        else:
            kept.append(replace(chunk, ordinal=len(kept)))
    return ChunkSet(
        key=chunk_set_key(parsed_digest, parsed.media_type, parameters),
        digest=_digest(kept),
        chunks=tuple(kept),
        language=language_of(parsed),
        dropped=tuple(dropped),
    )


def _digest(chunks: Iterable[Chunk]) -> str:
    """Over every field; text and title enter through their hash."""
    rows = [_flat(chunk) for chunk in chunks]
    for row in rows:
        del row["text"]
    return key_of("chunks", *rows)


def _flat(item: Chunk | DroppedChunk) -> dict[str, Any]:
    """The fields of a row, tuples as lists."""
    values = ((field.name, getattr(item, field.name)) for field in fields(item))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values}
