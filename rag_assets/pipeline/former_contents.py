"""Former contents of pushed records, kept for running syncs and for versions in an index."""

from __future__ import annotations

from rag_assets.pipeline.blobs import drop_blobs
from rag_assets.pipeline.context import TenantContext


def forget_former_contents(ctx: TenantContext) -> None:
    """Delete former contents that neither this run nor a build needs. No other run is active."""
    if any(ctx.tenant.source_kind(config).of_records for config in ctx.tenant.sources):
        forgotten = ctx.catalog.records.forget_former_contents(ctx.ref)
        drop_blobs(ctx.catalog, ctx.blobs, ctx.ref, forgotten)
