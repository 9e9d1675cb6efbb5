"""Slices: the bounded set of documents that one run processes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rag_assets.pipeline.context import TenantContext, config_key
from rag_assets.pipeline.generations import target_generation
from rag_assets.storage.catalog.document_rows import Document
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.syncs import Slice


@dataclass(frozen=True, slots=True)
class Work:
    """A slice with its documents.

    Attributes:
        generation: the build that the documents go into.
        config_key: the key of their configuration.
        documents: most urgent first; deleted ones left out.
        unlisted: why sources could not be listed when the run began.
    """

    generation: Generation
    config_key: str
    documents: tuple[Document, ...]
    unlisted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document of the slice whose parsed text is in the lake.

    Attributes:
        title: found in its content.
        media_type: what its content is.
        chunk_set_key: the key of its chunks in the lake.
    """

    document: Document
    title: str | None
    media_type: str
    chunk_set_key: str


def plan_work(ctx: TenantContext, run_id: str, unlisted: tuple[str, ...] = ()) -> Work:
    """Choose a run's slice and store it for the following stages of that run."""
    generation = target_generation(ctx)
    key = config_key(ctx.tenant, ctx.embedder.embedder_id)
    document_ids = ctx.catalog.index.pending(
        ctx.ref.id,
        generation.number,
        key,
        documents_limit=ctx.limits.documents,
        bytes_limit=ctx.limits.megabytes * 1024 * 1024,
    )
    work = Slice(run_id, generation.number, key, tuple(document_ids), unlisted)
    ctx.catalog.syncs.put_slice(ctx.ref, work)
    return _work(ctx, generation, work)


def work_of(ctx: TenantContext, run_id: str) -> Work:
    """The slice of this run; planned again if the run began at a later stage."""
    planned = ctx.catalog.syncs.slice_of(ctx.ref.id, run_id)
    if planned is None:
        return plan_work(ctx, run_id)
    if planned.config_key != config_key(ctx.tenant, ctx.embedder.embedder_id):
        # The configuration changed during the run.
        return plan_work(ctx, run_id, planned.unlisted)
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.number == planned.generation:
            return _work(ctx, generation, planned)
    return plan_work(ctx, run_id)


def parsed_documents(ctx: TenantContext, documents: Iterable[Document]) -> list[ParsedDocument]:
    """The documents that could be parsed, with the facts that the next stages need."""
    keys = {document.document_id: ctx.parse_key(document) for document in documents}
    heads = ctx.lake.parsed_heads(set(keys.values()))
    return [
        ParsedDocument(
            document,
            head.title,
            head.media_type,
            ctx.chunk_set_key(document, head.digest, head.media_type),
        )
        for document in documents
        if (head := heads.get(keys[document.document_id])) is not None
    ]


def waiting_for_embedder(ctx: TenantContext, work: Work) -> str | None:
    """Why documents of the slice wait for a retry; None if none does."""
    # A document that could not be read does not wait for the embedder.
    ids = [p.document.document_id for p in parsed_documents(ctx, work.documents)]
    for document in ctx.catalog.documents.find(ctx.ref.id, ids):
        if document.status == "FAILED" and document.retry_at is not None:
            return document.error_message
    return None


def _work(ctx: TenantContext, generation: Generation, planned: Slice) -> Work:
    documents = ctx.catalog.documents.find(ctx.ref.id, planned.document_ids)
    living = tuple(document for document in documents if document.status != "DELETED")
    return Work(generation, planned.config_key, living, planned.unlisted)
