"""The stage `chunks`: chunk the slice's documents whose chunk sets are not in the lake yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from rag_assets.common.batches import batched
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.chunking.model import describe_location
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.workers.pool import ChunkTask
from rag_assets.ingest.workers.process import UnchunkedText
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import ParsedDocument, SliceWork, StageProgress, prefetch_items
from rag_assets.pipeline.versions import list_slice_documents
from rag_assets.storage.catalog.documents.model import Document
from rag_assets.storage.lake.model import ChunkSetRow, DroppedRow, ParsedRow

_READ_DOCUMENTS = 200
_WRITTEN_DOCUMENTS = 500
_TASK_TEXTS, _TASK_CHARACTERS = 32, 256_000
_MIN_BYTES_FOR_WORKERS = 1024 * 1024
"""Below this many bytes of source content, starting worker processes takes longer than chunking."""
_MAX_SECRETS, _MAX_LINES = 200, 10
_SAMPLED_CHUNKS = 15
_SAMPLED_CHUNKS_PER_DOCUMENT = 3


@dataclass(frozen=True, slots=True)
class ChunkingReport:
    """Report on chunking the slice's documents.

    Attributes:
        dropped_secrets: number of chunks dropped because of a credential: they match a described
            pattern, or only masked characters remain of them.
        sample: uri, location and token count of the first chunks. Their text and headings are
            missing, because a purge could not delete them from Dagster's tables.
    """

    documents: int = 0
    reused: int = 0
    chunks: int = 0
    masked_secrets: int = 0
    dropped_secrets: int = 0
    secrets: tuple[SecretNote, ...] = ()
    token_counts: tuple[int, ...] = field(default=(), repr=False)
    sample: tuple[tuple[str, str, int], ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class SecretNote:
    """A note that one rule found credentials in a document, without their text."""

    uri: str
    rule: str
    count: int
    lines: tuple[int, ...]
    dropped: int = 0


def chunk_documents(ctx: TenantContext, work: SliceWork) -> ChunkingReport:
    """Chunk the slice's documents whose chunks are not in the lake yet."""
    started = time.monotonic()
    parsed = list_slice_documents(ctx, work)
    by_key: dict[str, list[ParsedDocument]] = {}
    for item in parsed:
        by_key.setdefault(item.chunk_set_key, []).append(item)
    missing = ctx.lake.find_missing_chunk_sets(set(by_key))
    todo = [by_key[key][0] for key in by_key if key in missing]
    progress = StageProgress("chunks", len(todo), ctx.log)
    dropped: dict[str, tuple[DroppedRow, ...]] = {}
    masked: dict[str, dict[str, list[int]]] = {}
    token_counts: list[int] = []
    sample: list[tuple[str, str, int]] = []
    for chunk_sets in batched(_iter_chunk_sets(ctx, todo, masked), _WRITTEN_DOCUMENTS):
        ctx.lake.append_chunk_sets(chunk_sets)
        dropped |= {row.key: row.dropped for row in chunk_sets if row.dropped}
        token_counts += [chunk.token_count for row in chunk_sets for chunk in row.chunks]
        sample += islice(_iter_samples(by_key, chunk_sets), _SAMPLED_CHUNKS - len(sample))
        progress.advance(len(chunk_sets))
    progress.finish()
    _warn_of_secrets(ctx, by_key, dropped)
    notes = list(_iter_secret_notes(by_key, masked, dropped))
    _write_masked_events(ctx, by_key, masked)
    return ChunkingReport(
        documents=len(todo),
        reused=sum(len(items) for key, items in by_key.items() if key not in missing),
        chunks=len(token_counts),
        masked_secrets=sum(note.count for note in notes),
        secrets=tuple(notes[:_MAX_SECRETS]),
        dropped_secrets=sum(map(len, dropped.values())),
        token_counts=tuple(token_counts),
        sample=tuple(sample),
        seconds=time.monotonic() - started,
    )


def _iter_samples(
    by_key: Mapping[str, list[ParsedDocument]], rows: Iterable[ChunkSetRow]
) -> Iterator[tuple[str, str, int]]:
    for row in rows:
        document = by_key[row.key][0].document
        for chunk in row.chunks[:_SAMPLED_CHUNKS_PER_DOCUMENT]:
            yield document.uri, describe_location(chunk.location), chunk.token_count


def _iter_chunk_sets(
    ctx: TenantContext, todo: list[ParsedDocument], masked: dict[str, dict[str, list[int]]]
) -> Iterator[ChunkSetRow]:
    """Yield the chunk sets of documents; worker processes make them if there is enough work."""
    texts = _iter_texts(ctx, todo, masked)
    small = sum(item.document.facts.size for item in todo) < _MIN_BYTES_FOR_WORKERS
    if small and not any(map(partial(_needs_worker, ctx), todo)):
        yield from (_build_chunk_set_row(text.chunk()) for text in texts)
        return
    batches = batched(
        texts, _TASK_TEXTS, weight=lambda text: len(text.parsed.text), max_weight=_TASK_CHARACTERS
    )
    with ctx.worker_pool() as pool:
        left_texts: list[UnchunkedText] = []
        for outcome in pool.map(map(ChunkTask, batches)):
            yield from map(_build_chunk_set_row, outcome.chunk_sets)
            left_texts += outcome.left
        for outcome in pool.map(ChunkTask((text,)) for text in left_texts):
            yield from map(_build_chunk_set_row, outcome.chunk_sets)


def _needs_worker(ctx: TenantContext, item: ParsedDocument) -> bool:
    return ctx.chunk_parameters(item.document, item.media_type).kind.read is not None


def _iter_texts(
    ctx: TenantContext, todo: list[ParsedDocument], masked: dict[str, dict[str, list[int]]]
) -> Iterator[UnchunkedText]:
    # Use the order of the lake's files, so that neighbouring documents share row groups.
    todo = sorted(todo, key=lambda item: item.parse_key)
    for batch, texts in prefetch_items(_iter_batches(ctx, todo)):
        for item in batch:
            row = texts[item.parse_key]
            chosen = ctx.chunk_parameters(item.document, item.media_type)
            if row.parsed.masked:
                masked[item.chunk_set_key] = map_lines_by_rule(row.parsed)
            yield UnchunkedText(row.parsed, row.digest, chosen)


def _iter_batches(
    ctx: TenantContext, todo: list[ParsedDocument]
) -> Iterator[tuple[list[ParsedDocument], dict[str, ParsedRow]]]:
    for batch in batched(todo, _READ_DOCUMENTS):
        yield batch, ctx.lake.parsed({item.parse_key for item in batch})


def _build_chunk_set_row(chunk_set: ChunkSet) -> ChunkSetRow:
    dropped = tuple(DroppedRow(d.ordinal, d.start, d.end, d.rules) for d in chunk_set.dropped)
    return ChunkSetRow(
        chunk_set.key,
        chunk_set.digest,
        chunk_set.chunks,
        dropped,
        chunk_set.language,
        chunk_set.facts,
    )


def map_lines_by_rule(parsed: ParsedText) -> dict[str, list[int]]:
    """Return the lines on which the masked credentials of a text start, by rule."""
    lines: dict[str, list[int]] = {}
    line, at = 1, 0
    for span in sorted(parsed.masked, key=lambda span: span.start):
        line += parsed.text.count("\n", at, span.start)
        at = span.start
        lines.setdefault(span.rule, []).append(line)
    return lines


def _iter_secret_notes(
    by_key: Mapping[str, list[ParsedDocument]],
    masked: Mapping[str, Mapping[str, list[int]]],
    dropped: Mapping[str, tuple[DroppedRow, ...]],
) -> Iterator[SecretNote]:
    for key, rules in masked.items():
        for item in by_key[key]:
            for rule, lines in sorted(rules.items()):
                lost = sum(rule in row.rules for row in dropped.get(key, ()))
                yield SecretNote(
                    item.document.uri, rule, len(lines), tuple(lines[:_MAX_LINES]), lost
                )


def _write_masked_events(
    ctx: TenantContext,
    by_key: Mapping[str, list[ParsedDocument]],
    masked: Mapping[str, Mapping[str, list[int]]],
) -> None:
    """Write an event for each document with masked credentials: address, rules and lines."""
    events: list[dict[str, object]] = [
        {
            "uri": item.document.uri,
            "source": item.document.source,
            "rules": {rule: len(lines) for rule, lines in sorted(rules.items())},
            "lines": sorted({line for lines in rules.values() for line in lines})[:_MAX_LINES],
        }
        for key, rules in masked.items()
        for item in by_key[key]
    ]
    ctx.catalog.events.write(ctx.ref, "secret_masked", events)


def _warn_of_secrets(
    ctx: TenantContext,
    by_key: dict[str, list[ParsedDocument]],
    withheld: dict[str, tuple[DroppedRow, ...]],
) -> None:
    warnings = [
        warning
        for key, rows in withheld.items()
        for item in by_key[key]
        for warning in _iter_dropped_warnings(item.document, rows)
    ]
    ctx.catalog.events.write(ctx.ref, "secret_dropped", warnings)


def _iter_dropped_warnings(
    document: Document, rows: Iterable[DroppedRow]
) -> Iterator[dict[str, object]]:
    """Yield warnings about dropped rows: one for each document.

    For a pushed application record, there is one for each chunk and rule.
    """
    dropped = list(rows)
    if document.page_uuid is None and document.media_type != TYPED_RECORD:
        rules = sorted({rule for row in dropped for rule in row.rules})
        yield {"uri": document.uri, "chunks": len(dropped), "rules": rules}
        return
    for row in dropped:
        for rule in row.rules:
            yield {
                "uri": document.uri,
                "source": document.source,
                "type": document.source_type,
                "id": document.source_id,
                "chunk": row.ordinal,
                "rule": rule,
            }
