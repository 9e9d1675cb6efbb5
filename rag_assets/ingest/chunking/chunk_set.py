"""The chunk set of a document, its key and digest, and its record for the store."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from rag_assets.common.hashing import compute_key
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import (
    Chunk,
    Fact,
    build_chunk_record,
    build_chunks,
    find_touched_masks,
    parse_chunk,
)
from rag_assets.ingest.parsing.languages import detect_language, get_language_identity
from rag_assets.ingest.parsing.model import MaskedSpan, ParsedText
from rag_assets.privacy.described import is_described

_WORD = re.compile(r"[^\W\d_]{2,}")
_LABEL = re.compile(r"(?:BEGIN|END)[A-Z ]*")
_RULES_WITH_ADJACENT_SECRET = frozenset(("described-akia", "described-rsa"))
"""Patterns that match only an id or a first line. The secret next to the match may be unmasked."""
_LEFT_SHARE = 2
_MAX_EVIDENCE_CHARACTERS = 200
"""Maximum number of characters of a fact's evidence that are kept."""

CHUNKER_VERSION = 2
"""Must be increased whenever the same text and parameters would give different chunks."""
DROPPING_VERSION = 2
"""Must be increased whenever different chunks are dropped because of the credentials masked in
them.

An increase does not start a new generation: documents are cut again, and only documents with
changes are written.
"""


@dataclass(frozen=True, slots=True)
class DroppedChunk:
    """A chunk that is neither embedded nor indexed, because these rules found credentials in it.

    The ordinal counts all chunks of the document, kept and dropped.
    """

    ordinal: int
    start: int
    end: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChunkSet:
    """The chunks of one document.

    Attributes:
        digest: identifies the indexed content of the chunks. A document is not indexed again if
            its key changes but neither the digest nor the language.
    """

    key: str
    digest: str
    chunks: tuple[Chunk, ...]
    language: str | None = None
    dropped: tuple[DroppedChunk, ...] = ()
    facts: tuple[Fact, ...] = ()


def compute_chunk_set_key(parsed_digest: str, media_type: str, parameters: ChunkParameters) -> str:
    """Return the key of a chunk set: a hash of its inputs, known before any chunk is cut."""
    return compute_key(
        "chunk_set",
        parsed_digest,
        media_type,
        CHUNKER_VERSION,
        DROPPING_VERSION,
        get_language_identity(media_type),
        parameters.identity(),
    )


def chunk_document(
    parsed: ParsedText, parameters: ChunkParameters, *, parsed_digest: str, is_confined: bool = True
) -> ChunkSet:
    """Cut one document, and drop the chunks that must not be returned, even if masked.

    A chunk is dropped if one of the six patterns in privacy.described matches in it, or if it
    contains almost no text besides masked characters. Every other chunk keeps its text, with the
    credentials masked. In source code, such a match drops a chunk only if it is an AWS access key
    id or an RSA key.
    """
    language = detect_language(parsed)
    cut = parameters.kind.cut(parameters.request(parsed, language), is_confined=is_confined)
    text_chunks = list(build_chunks(parsed, cut.passages))
    chunks = [
        *text_chunks,
        *build_chunks(parsed, cut.block_passages, first=len(text_chunks), of_blocks=True),
    ]
    masked = (
        find_touched_masks(parsed.masked, part)
        for part in (text_chunks, chunks[len(text_chunks) :])
    )
    kept_chunks: list[Chunk] = []
    dropped_chunks: list[DroppedChunk] = []
    in_program = parsed.media_type in parameters.kind.programs
    for chunk, masks in zip(chunks, chain.from_iterable(masked), strict=True):
        if masks and is_dropped(chunk, masks, in_program=in_program):
            rules = tuple(sorted({mask.rule for mask in masks}))
            dropped_chunks.append(DroppedChunk(chunk.ordinal, chunk.start, chunk.end, rules))
        else:
            kept_chunks.append(replace(chunk, ordinal=len(kept_chunks)))
    return ChunkSet(
        key=compute_chunk_set_key(parsed_digest, parsed.media_type, parameters),
        # `text_sha256` represents the text and the title.
        digest=compute_key("chunks", *map(_build_textless_record, kept_chunks)),
        chunks=tuple(kept_chunks),
        language=language,
        dropped=tuple(dropped_chunks),
        facts=tuple(locate_facts(cut.facts, parsed.text)),
    )


def is_dropped(chunk: Chunk, masks: Sequence[MaskedSpan], *, in_program: bool = False) -> bool:
    """Return whether a chunk must be dropped because of the credentials found in it.

    It must be if a pattern in privacy.described matches in it, or if no words remain between its
    masks. In source code, a match is often the name of a pattern or a test for it, and the
    definition around it is useful. So only the matched span is withheld there, unless the secret
    may lie next to the span.
    """
    for mask in masks:
        if is_described(mask.rule) and not (
            in_program and mask.rule not in _RULES_WITH_ADJACENT_SECRET
        ):
            return True
    masked = sum(min(mask.end, chunk.end) - max(mask.start, chunk.start) for mask in masks)
    if masked * _LEFT_SHARE < chunk.end - chunk.start:
        return False
    return not _WORD.search(_LABEL.sub("", chunk.text))


def locate_facts(facts: Sequence[Fact], text: str) -> Iterator[Fact]:
    """Yield the facts in order of position, with line numbers and evidence from the text."""
    line_ends = [line_feed.start() for line_feed in re.finditer("\n", text)]
    for fact in sorted(facts, key=lambda fact: (fact.start, fact.end)):
        evidence = " ".join(
            text[fact.start : min(fact.end, fact.start + _MAX_EVIDENCE_CHARACTERS)].split()
        )
        yield replace(
            fact,
            line_start=bisect_left(line_ends, fact.start) + 1,
            line_end=bisect_left(line_ends, max(fact.start, fact.end - 1)) + 1,
            evidence=evidence,
        )


def _build_textless_record(chunk: Chunk) -> dict[str, Any]:
    record = build_chunk_record(chunk)
    del record["text"]
    return record


def to_record(chunk_set: ChunkSet) -> dict[str, Any]:
    """Return a chunk set as a JSON-compatible record, without the texts of its chunks."""
    return {
        "key": chunk_set.key,
        "digest": chunk_set.digest,
        "chunks": [_build_textless_record(chunk) for chunk in chunk_set.chunks],
        "language": chunk_set.language,
        "dropped": [[d.ordinal, d.start, d.end, d.rules] for d in chunk_set.dropped],
        "facts": serialize_facts(chunk_set.facts),
    }


def from_record(record: Mapping[str, Any], text: str) -> ChunkSet:
    """Rebuild the chunk set of a parsed text from its record; the inverse of to_record."""
    return ChunkSet(
        key=record["key"],
        digest=record["digest"],
        chunks=tuple(
            parse_chunk({**chunk, "text": text[chunk["start"] : chunk["end"]]})
            for chunk in record["chunks"]
        ),
        language=record["language"],
        dropped=tuple(
            DroppedChunk(ordinal, start, end, tuple(rules))
            for ordinal, start, end, rules in record["dropped"]
        ),
        facts=parse_facts(record["facts"]),
    )


def serialize_facts(facts: Iterable[Fact]) -> list[list[Any]]:
    """Return facts as JSON-able lists."""
    return [
        [f.kind, f.start, f.end, f.symbol, dict(f.values), f.line_start, f.line_end, f.evidence]
        for f in facts
    ]


def parse_facts(
    records: Iterable[Sequence[Any]], wants_kind: Callable[[str], bool] | None = None
) -> tuple[Fact, ...]:
    """Rebuild facts from JSON lists; the inverse of serialize_facts.

    If `wants_kind` is given, only facts of the kinds for which it returns True are rebuilt.
    """
    return tuple(Fact(*record) for record in records if wants_kind is None or wants_kind(record[0]))
