"""chunks: makes the chunk sets of the slice's documents that are not in the lake yet."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from rag_assets.common.batches import batched
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.chunking.location import describe
from rag_assets.ingest.parsing.media_types import WORKSPACE_RECORD
from rag_assets.ingest.workers.tasks import ChunkTask
from rag_assets.ingest.workers.unchunked_text import UnchunkedText
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.former_versions import documents_of
from rag_assets.pipeline.prefetch import prefetched
from rag_assets.pipeline.progress import Progress
from rag_assets.pipeline.slices import ParsedDocument, Work
from rag_assets.storage.catalog.document_rows import Document
from rag_assets.storage.lake.model import ChunkSetRow, DroppedRow, ParsedRow

_READ_DOCUMENTS = 200
_WRITTEN_DOCUMENTS = 500
_TASK_TEXTS, _TASK_CHARACTERS = 32, 256_000
_WORKERS_BYTES = 1024 * 1024
"""Chunking less than this takes less time than starting workers."""
_SAMPLE = 15
_SAMPLE_OF_EACH = 3


@dataclass(frozen=True, slots=True)
class ChunkSample:
    """One chunk without its text and headings, which a purge could not find in Dagster's tables.

    Attributes:
        place: its position in the document, in words.
    """

    uri: str
    place: str
    tokens: int


@dataclass(frozen=True, slots=True)
class ChunkingReport:
    """Report on the slice's documents.

    Attributes:
        chunks: chunks made by this run.
        reused: documents whose chunks were in the lake already.
        dropped_secrets: chunks dropped because they touch a credential.
        token_counts: of each chunk made by this run.
        sample: the first chunks of the first documents.
    """

    documents: int = 0
    reused: int = 0
    chunks: int = 0
    dropped_secrets: int = 0
    token_counts: tuple[int, ...] = field(default=(), repr=False)
    sample: tuple[ChunkSample, ...] = ()
    seconds: float = 0.0


def chunk_documents(ctx: TenantContext, work: Work) -> ChunkingReport:
    """Chunk what is missing, and drop every chunk that touches a masked credential."""
    started = time.monotonic()
    parsed = documents_of(ctx, work)
    by_key: dict[str, list[ParsedDocument]] = {}
    for item in parsed:
        by_key.setdefault(item.chunk_set_key, []).append(item)
    missing = ctx.lake.missing_chunk_sets(set(by_key))
    todo = [by_key[key][0] for key in by_key if key in missing]
    progress = Progress("chunks", len(todo), ctx.log)
    dropped: dict[str, tuple[DroppedRow, ...]] = {}
    token_counts: list[int] = []
    sample: list[ChunkSample] = []
    for made in batched(_chunk_sets(ctx, todo), _WRITTEN_DOCUMENTS):
        ctx.lake.append_chunk_sets(made)
        dropped |= {row.key: row.dropped for row in made if row.dropped}
        token_counts += [chunk.token_count for row in made for chunk in row.chunks]
        sample += islice(_sample(by_key, made), _SAMPLE - len(sample))
        progress.advance(len(made))
    progress.done()
    _warn_of_secrets(ctx, by_key, dropped)
    return ChunkingReport(
        documents=len(todo),
        reused=sum(len(items) for key, items in by_key.items() if key not in missing),
        chunks=len(token_counts),
        dropped_secrets=sum(map(len, dropped.values())),
        token_counts=tuple(token_counts),
        sample=tuple(sample),
        seconds=time.monotonic() - started,
    )


def _sample(
    by_key: Mapping[str, list[ParsedDocument]], rows: Iterable[ChunkSetRow]
) -> Iterator[ChunkSample]:
    for row in rows:
        document = by_key[row.key][0].document
        for chunk in row.chunks[:_SAMPLE_OF_EACH]:
            yield ChunkSample(document.uri, describe(chunk.location), chunk.token_count)


def _chunk_sets(ctx: TenantContext, todo: list[ParsedDocument]) -> Iterator[ChunkSetRow]:
    """The chunk sets of documents, made by worker processes where there is work for several."""
    texts = _texts(ctx, todo)
    small = sum(item.document.facts.size for item in todo) < _WORKERS_BYTES
    if small and not any(map(partial(_needs_worker, ctx), todo)):
        yield from (_row(text.chunk()) for text in texts)
        return
    batches = batched(
        texts, _TASK_TEXTS, weight=lambda text: len(text.parsed.text), most=_TASK_CHARACTERS
    )
    with ctx.worker_pool() as pool:
        left: list[UnchunkedText] = []
        for outcome in pool.map(map(ChunkTask, batches)):
            yield from map(_row, outcome.made)
            left += outcome.left
        for outcome in pool.map(ChunkTask((text,)) for text in left):
            yield from map(_row, outcome.made)


def _needs_worker(ctx: TenantContext, item: ParsedDocument) -> bool:
    return ctx.chunk_parameters(item.document, item.media_type).kind.read is not None


def _texts(ctx: TenantContext, todo: list[ParsedDocument]) -> Iterator[UnchunkedText]:
    # In the order of the lake's files: neighbours share row groups.
    todo = sorted(todo, key=lambda item: item.parse_key)
    for batch, texts in prefetched(_with_texts(ctx, todo)):
        for item in batch:
            row = texts[item.parse_key]
            chosen = ctx.chunk_parameters(item.document, item.media_type)
            yield UnchunkedText(row.parsed, row.digest, chosen)


def _with_texts(
    ctx: TenantContext, todo: list[ParsedDocument]
) -> Iterator[tuple[list[ParsedDocument], dict[str, ParsedRow]]]:
    for batch in batched(todo, _READ_DOCUMENTS):
        yield batch, ctx.lake.parsed({item.parse_key for item in batch})


def _row(made: ChunkSet) -> ChunkSetRow:
    dropped = tuple(DroppedRow(d.ordinal, d.start, d.end, d.rules) for d in made.dropped)
    return ChunkSetRow(made.key, made.digest, made.chunks, dropped, made.language, made.facts)


def _warn_of_secrets(
    ctx: TenantContext,
    by_key: dict[str, list[ParsedDocument]],
    withheld: dict[str, tuple[DroppedRow, ...]],
) -> None:
    warnings = [
        warning
        for key, rows in withheld.items()
        for item in by_key[key]
        for warning in _warnings(item.document, rows)
    ]
    ctx.catalog.events.write(ctx.ref, "secret_dropped", warnings)


def _warnings(document: Document, rows: Iterable[DroppedRow]) -> Iterator[dict[str, object]]:
    """One warning for a document; of a pushed record of an application one for each chunk."""
    dropped = list(rows)
    if document.page_uuid is None and document.media_type != WORKSPACE_RECORD:
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
