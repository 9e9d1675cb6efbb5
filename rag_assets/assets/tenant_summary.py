"""A summary of a tenant, for the page of its index."""

from __future__ import annotations

from collections.abc import Mapping

import dagster as dg

from rag_assets.assets.metadata_values import documents_link, notes, rows_of, table
from rag_assets.common.formatting import counted
from rag_assets.ingest.parsing.format_names import format_name
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import DocumentNote, find_remedy
from rag_assets.storage.catalog.documents.status import Status
from rag_assets.storage.catalog.tenants.overview import TenantSummary

_MOST_FAILED, _MOST_ADVICE = 50, 3
_SHOWN: Mapping[Status, str] = {"READY": "ready", "FAILED": "failed", "PROCESSING": "waiting"}


def summarize_tenant(ctx: TenantContext) -> dg.MarkdownMetadataValue:
    """Summarize the searchable documents, their index, and the time of the source listing."""
    tenant = ctx.catalog.overview.tenant(ctx.ref.id)
    facts = rows_of(("", ""), _facts(ctx, tenant, ctx.store.indexes.view_name(ctx.ref.id)))
    return dg.MetadataValue.md(f"{_headline(tenant)}\n\n{facts}")


def by_format(ctx: TenantContext) -> dg.TableMetadataValue:
    """Count all documents of the tenant by format and status."""
    return table(
        {"format": "string", **dict.fromkeys((*_SHOWN.values(), "chunks", "bytes"), "int")},
        [
            (
                format_name(of.media_type),
                *(of.documents.get(status, 0) for status in _SHOWN),
                of.chunks,
                of.bytes,
            )
            for of in ctx.catalog.overview.formats(ctx.ref.id)
        ],
    )


def failed_documents(ctx: TenantContext) -> dg.MarkdownMetadataValue:
    """List the documents in quarantine with their reasons and remedies."""
    failed = ctx.catalog.overview.list_failed(ctx.ref.id, _MOST_FAILED)
    failures = [(DocumentNote(d.document_id, d.uri, d.error_message or ""), "") for d in failed]
    advice = list(dict.fromkeys(find_remedy(document) for document in failed))[:_MOST_ADVICE]
    return notes(
        ctx.ref.id,
        ("document", "reason"),
        failures,
        advice="".join(f"\n- {one}" for one in advice),
        status="FAILED",
    )


def _headline(tenant: TenantSummary) -> str:
    counts, id_ = tenant.documents, tenant.tenant_id
    failed = documents_link(id_, f"{counts.get('FAILED', 0):,} failed", "FAILED")
    ready = documents_link(id_, counted(counts.get("READY", 0), "document"), "READY")
    waiting = documents_link(id_, f"{counts.get('PROCESSING', 0):,} waiting", "PROCESSING")
    return f"{ready} in {counted(tenant.entries, 'entry', 'entries')}; {failed}, {waiting}"


def _facts(ctx: TenantContext, tenant: TenantSummary, alias: str) -> list[tuple[str, str]]:
    if tenant.index_name is None:
        serves = "not searchable yet: the first build is not complete"
    else:
        serves = f"{tenant.generation}, in `{tenant.index_name}`"
    at = tenant.synced_at
    return [
        ("generation", serves),
        ("alias", f"`{alias}`"),
        ("embedder", f"`{ctx.embedder.embedder_id}`"),
        ("as the sources were at", "not yet" if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC"),
    ]
