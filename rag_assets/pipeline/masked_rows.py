"""Masks stored names and metadata again after the rules for credentials changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from rag_assets.common.batches import batched
from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.listing_report import MaskedNames
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.document_rows import CatalogDocument, Document, DocumentChange
from rag_assets.storage.catalog.syncs import Sync

_BATCH = 500


def settings_changed(last: Sync | None, settings: str) -> bool:
    """Whether a source was listed under other settings, the rules for credentials among them."""
    digest = None if last is None else last.listing_digest
    return bool(digest) and not str(digest).endswith(settings[:8])


def update_masks(ctx: TenantContext, known: Sequence[CatalogDocument], masker: Masker) -> int:
    """Mask credentials that the present rules find in documents' rows; returns how many changed.

    Args:
        ctx: the tenant.
        known: the documents of one source.
        masker: uses the present rules.
    """
    changed = 0
    living = [row.document_id for row in known if row.status != "DELETED"]
    for document_ids in batched(living, _BATCH):
        rows = ctx.catalog.documents.find(ctx.ref.id, document_ids)
        masker.prime(text for row in rows for text in _texts(row))
        changes = [change for row in rows if (change := _change(row, masker))]
        if changes:
            ctx.guard()
            ctx.catalog.documents.record(ctx.ref, changes, lane=1)
            changed += len(changes)
    return changed


def change_of(row: Document) -> DocumentChange:
    """The change by which a listing would have written this row.

    Args:
        row: of a document.
    """
    return DocumentChange(
        document_id=row.document_id,
        source=row.source,
        source_type=row.source_type,
        path=row.path,
        uri=row.uri,
        facts=row.facts,
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        modified_at=row.modified_at,
        media_type=row.media_type,
        access_scope=row.access_scope,
        tags=row.tags,
        metadata=row.metadata,
        said_title=row.said_title,
        error=row.error_message if row.content_sha256 is None else None,
    )


def _texts(row: Document) -> Iterator[str]:
    yield _path(row)
    yield row.uri
    yield from filter(None, (row.said_title, *row.tags, *row.metadata))


def _path(row: Document) -> str:
    return row.path.decode("utf-8", "surrogateescape")


def _change(row: Document, masker: Masker) -> DocumentChange | None:
    """The masked row; None if the row needs no change."""
    now = change_of(row)
    metadata = SourceMetadata(title=row.said_title, tags=row.tags, metadata=row.metadata)
    shown = MaskedNames((), masker).source_metadata(metadata)
    then = replace(
        now,
        path=masker.text(_path(row)).encode("utf-8", "surrogateescape"),
        uri=masker.text(row.uri),
        source_type=masker.text(row.source_type),
        said_title=shown.title,
        tags=shown.tags,
        metadata=shown.metadata,
    )
    return None if then == now else then
