"""The documents that a check covers, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

from rag_assets.common.batches import batched
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import ParsedDocument, find_parsed_documents
from rag_assets.storage.catalog.documents.model import Document

_BATCH_DOCUMENTS = 500
_BATCH_BYTES = 32 * 1024 * 1024


def find_documents_to_check(ctx: TenantContext, run_id: str) -> list[Document]:
    """Return the documents of a run's slice; for a run without a slice, all documents."""
    slice_ = ctx.catalog.syncs.find_slice(ctx.ref.id, run_id)
    if slice_ is None:
        return ctx.catalog.documents.all(ctx.ref.id)
    documents = ctx.catalog.documents.find(ctx.ref.id, slice_.document_ids)
    return [document for document in documents if document.status != "DELETED"]


def iter_parsed_batches(ctx: TenantContext, run_id: str) -> Iterator[list[ParsedDocument]]:
    """Yield the parsed documents to check, in batches whose chunks fit in memory."""
    documents = find_documents_to_check(ctx, run_id)
    for batch in batched(
        documents,
        _BATCH_DOCUMENTS,
        weight=lambda document: document.facts.size,
        max_weight=_BATCH_BYTES,
    ):
        parsed = find_parsed_documents(ctx, batch)
        if parsed:
            yield parsed
