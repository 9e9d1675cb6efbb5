"""raw_documents: the documents of a tenant's sources."""

from dataclasses import replace

import dagster as dg

from rag_assets.assets.descriptions import DOCUMENT_COLUMNS, RAW_DOCUMENTS
from rag_assets.assets.metadata_values import build_duration, build_notes_table, build_table
from rag_assets.assets.stage_context import skip_inactive_tenant, tenant_stage
from rag_assets.declarations import asset
from rag_assets.pipeline.erasure import rescan_tenant
from rag_assets.pipeline.listing import list_documents
from rag_assets.pipeline.mark_keeper import build_held_warning, find_deletion_refusal
from rag_assets.pipeline.retention import prune_due_documents
from rag_assets.pipeline.slices import plan_work
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench


class ListingConfig(dg.Config):
    """Parameters of a listing.

    Attributes:
        allow_deletes: whether to also delete documents whose deletion would be held back.
        reuse_listings: whether to reuse the listing of an earlier run of the same sync; None: if
            it is recent and documents still wait.
    """

    allow_deletes: bool = False
    reuse_listings: bool | None = None


@asset(
    kinds={"python", "postgres", "file"},
    description=RAW_DOCUMENTS,
    metadata={"dagster/column_schema": DOCUMENT_COLUMNS, "dagster/table_name": "documents"},
)
@skip_inactive_tenant
def raw_documents(
    context: dg.AssetExecutionContext,
    config: ListingConfig,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
) -> dg.MaterializeResult[None]:
    """List the sources and choose the run's slice."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        rescan_tenant(ctx, by="a sync", seconds=ctx.limits.parse_seconds)
        report = list_documents(
            ctx,
            workbench.scanner(),
            allow_deletes=config.allow_deletes,
            reuse_listings=config.reuse_listings,
        )
        pruned = prune_due_documents(ctx, by="a sync")
        work = plan_work(ctx, context.run.run_id, report.unlisted)
    for message in report.unlisted:
        context.log.error(message)
    if pruned.doubt is not None:
        # The command reports a doubted clock once for all tenants, and the sensor at each tick.
        context.log.info(pruned.doubt.message_with_hint)
    for warning in replace(pruned, doubt=None).warnings(ctx.ref.id):
        context.log.warning(warning)
    if report.held:
        held_deletions = ctx.catalog.syncs.list_held(ctx.ref.id)
        context.log.warning(
            build_held_warning(ctx.ref.id, held_deletions, find_deletion_refusal(ctx))
        )
    return dg.MaterializeResult(
        metadata={
            "documents": report.documents,
            "added": report.added,
            "changed": report.changed,
            "touched": report.touched,
            "removed": report.removed,
            "moved": report.moved,
            "held": report.held,
            "pruned": pruned.documents,
            "failed": report.failed,
            "bytes": report.bytes,
            "slice": len(work.documents),
            "seconds": build_duration(report.seconds),
            "first changes": build_table(
                {"change": "string", "document": "string", "bytes": "int", "was": "string"},
                [
                    (change.kind, change.uri, change.bytes, change.former)
                    for change in report.sample
                ],
            ),
            "left out": build_table(
                {"rule": "string", "files": "int"}, sorted(report.left_out.items())
            ),
            "first failures": build_notes_table(
                ctx.ref.id,
                ("document", "reason"),
                [(rejected, "") for rejected in report.rejected],
                status="FAILED",
            ),
            "dagster/row_count": report.documents,
        }
    )
