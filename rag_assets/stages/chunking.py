"""chunks: the chunk sets of the slice's documents that are not in the lake yet."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from rag_assets.chunking.chunk_set import chunk_document
from rag_assets.lake.model import ChunkSetRow, DroppedRow
from rag_assets.stages.context import TenantContext
from rag_assets.stages.progress import Progress
from rag_assets.stages.slices import ParsedDocument, Work, parsed_documents

_READ_DOCUMENTS = 100


@dataclass(frozen=True, slots=True)
class ChunkingReport:
    """What became of the slice's documents.

    Attributes:
        chunks: made now.
        reused: documents whose chunks were in the lake already.
        dropped_secrets: chunks withheld because they touched a credential.
        token_counts: of each chunk made now.
    """

    documents: int = 0
    reused: int = 0
    chunks: int = 0
    dropped_secrets: int = 0
    token_counts: tuple[int, ...] = field(default=(), repr=False)
    seconds: float = 0.0


def chunk_documents(ctx: TenantContext, work: Work) -> ChunkingReport:
    """Chunk what is missing, and drop every chunk that touches a masked credential."""
    started = time.monotonic()
    parsed = parsed_documents(ctx, work.documents)
    by_key: dict[str, list[ParsedDocument]] = {}
    for item in parsed:
        by_key.setdefault(item.chunk_set_key, []).append(item)
    missing = ctx.lake.missing_chunk_sets(set(by_key))
    todo = [by_key[key][0] for key in by_key if key in missing]
    progress = Progress("chunks", len(todo), ctx.log)
    rows: list[ChunkSetRow] = []
    for start in range(0, len(todo), _READ_DOCUMENTS):
        batch = todo[start : start + _READ_DOCUMENTS]
        made = _chunk_batch(ctx, batch)
        ctx.lake.append_chunk_sets(made)
        rows += made
        progress.advance(len(batch))
    progress.done()
    _warn_of_secrets(ctx, by_key, rows)
    return ChunkingReport(
        documents=len(rows),
        reused=sum(len(items) for key, items in by_key.items() if key not in missing),
        chunks=sum(len(row.chunks) for row in rows),
        dropped_secrets=sum(len(row.dropped) for row in rows),
        token_counts=tuple(chunk.token_count for row in rows for chunk in row.chunks),
        seconds=time.monotonic() - started,
    )


def _chunk_batch(ctx: TenantContext, batch: list[ParsedDocument]) -> list[ChunkSetRow]:
    texts = ctx.lake.parsed({ctx.parse_key(item.document) for item in batch})
    rows = []
    for item in batch:
        row = texts[ctx.parse_key(item.document)]
        chosen = ctx.chunk_parameters(item.document, item.media_type)
        made = chunk_document(row.parsed, chosen, parsed_digest=row.digest)
        dropped = tuple(DroppedRow(d.ordinal, d.start, d.end, d.rules) for d in made.dropped)
        rows.append(ChunkSetRow(made.key, made.digest, made.chunks, dropped))
    return rows


def _warn_of_secrets(
    ctx: TenantContext, by_key: dict[str, list[ParsedDocument]], rows: list[ChunkSetRow]
) -> None:
    warnings = [
        {
            "uri": item.document.uri,
            "chunks": len(row.dropped),
            "rules": sorted({rule for dropped in row.dropped for rule in dropped.rules}),
        }
        for row in rows
        if row.dropped
        for item in by_key[row.key]
    ]
    ctx.catalog.events.write(ctx.ref, "secret_dropped", warnings)
