"""search_index: the tenant's entries in Elasticsearch, equal to the catalog."""

from collections.abc import Iterator

import dagster as dg

from rag_assets.assets.columns import ENTRY_COLUMNS
from rag_assets.assets.descriptions import SEARCH_INDEX
from rag_assets.assets.generations import generations_report
from rag_assets.assets.metadata_values import seconds
from rag_assets.assets.stage_context import skip_disabled_tenant, tenant_stage
from rag_assets.assets.tenant_summary import by_format, failed_documents, summarize_tenant
from rag_assets.common.formatting import counted
from rag_assets.declarations import Naming, asset
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import derive_documents, run_follow_up
from rag_assets.pipeline.publishing import publish_slice
from rag_assets.pipeline.slices import load_work, waiting_for_embedder
from rag_assets.pipeline.upkeep import compact_due, describe_compactions
from rag_assets.plugins.registry import installed_systems
from rag_assets.resources.publish_judge import PublishJudge
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench


@asset(
    deps=["embeddings"],
    kinds={"python", "elasticsearch"},
    description=SEARCH_INDEX,
    metadata={"dagster/column_schema": ENTRY_COLUMNS},
)
@skip_disabled_tenant
def search_index(
    context: dg.AssetExecutionContext,
    names: Naming,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
    publish_judge: dg.ResourceParam[PublishJudge],
) -> dg.MaterializeResult[None]:
    """Remove and publish entries, and report documents that still wait."""
    with tenant_stage(context, workbench, tenant_lock) as ctx:
        work = load_work(ctx, context.run.run_id)
        judge = publish_judge(workbench, context.run.run_id, context.log)
        report = publish_slice(ctx, work, judge)
        followed = run_follow_up(ctx)
        derived = derive_documents(ctx)
        outage = waiting_for_embedder(work.context, work)
        waiting = ctx.catalog.quarantine.waiting_count(ctx.ref.id) if outage else 0
        shown = {
            "what is indexed": summarize_tenant(ctx),
            "failed documents": failed_documents(ctx),
            "by format": by_format(ctx),
        }
        merged = describe_compactions(compact_due(ctx))
        if work.beside or work.generation.state != "SERVING":
            builds = generations_report(names, ctx, current=True)
            if builds is not None:
                context.log_event(builds)
        if report.documents or derived.changed:
            for found in _reports_of_systems(names, ctx):
                context.log_event(found)
    for line in merged:
        context.log.info(f"merged small files of the lake: {line}")
    metadata: dict[str, dg.RawMetadataValue] = {
        **shown,
        "upserted": report.upserted,
        "deleted": report.deleted,
        "published documents": report.documents,
        "unchanged documents": report.unchanged,
        "removed documents": report.removed,
        "live entries": report.live,
        "generation": report.generation,
        "index": work.generation.index_name,
        # Documents that are derived from the files are not listed yet.
        "pending": report.pending + derived.changed,
        **followed,
        **derived.lines,
        **({"merged files of the lake": "; ".join(merged)} if merged else {}),
        "seconds": seconds(report.seconds),
        "dagster/row_count": report.live,
    }
    trouble = list(work.unlisted)
    if outage is not None and work.beside:
        # This does not fail the run: the build of the present configuration continues, possibly
        # with another embedder.
        context.log.warning(
            f"generation {work.generation.number} answers searches, but cannot be brought up to"
            " date now:"
            f" {outage}"
        )
    elif outage is not None:
        who = counted(waiting, "document waits", "documents wait")
        trouble.append(f"{who} for the embedder: {outage}")
    if trouble:
        # All other work has been done; the run fails so that the outage is visible.
        raise dg.Failure("; ".join(trouble), metadata=metadata, allow_retries=False)
    return dg.MaterializeResult(metadata=metadata)


def _reports_of_systems(names: Naming, ctx: TenantContext) -> Iterator[dg.AssetMaterialization]:
    """Yield the materializations of systems' assets that report on published documents."""
    for make in installed_systems().load("run_reports").values():
        report: dg.AssetMaterialization | None = make(names, ctx)
        if report is not None:
            yield report
