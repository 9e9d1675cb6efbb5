"""prune, compact: keep documents and the lake within bounds."""

import dagster as dg

from rag_assets.jobs.every_tenant import for_each_locked
from rag_assets.jobs.run_tags import NO_RUN_RETRIES
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.removal import delete_strays
from rag_assets.pipeline.retention import prune
from rag_assets.pipeline.upkeep import compact, drop_old_generations
from resources.workbench import Workbench, clear_failures


@dg.op
def prune_documents(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Prune every tenant's documents and search events that exceed their retention."""

    def prune_one(ctx: TenantContext) -> str:
        report, builds = prune(ctx, by="job prune"), drop_old_generations(ctx)
        for warning in report.warnings(ctx.ref.id):
            context.log.warning(f"{ctx.ref.id}: {warning}")
        return (
            f"{report.documents} documents pruned, {report.entries} entries deleted,"
            f" {report.events} events of searches deleted, {builds} former builds deleted"
        )

    for_each_locked(context, workbench, "pruning", prune_one)


@dg.op
def compact_lake(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compact every tenant's tables, and delete data of removed tenants."""

    def compact_one(ctx: TenantContext) -> str:
        compacted = compact(ctx)
        dead = sum(result.dead for result in compacted.values())
        return f"{len(compacted)} tables compacted, {dead} rows let go of that nothing needs"

    for_each_locked(context, workbench, "compaction", compact_one)
    with clear_failures():
        store = workbench.elasticsearch.store()
        swept = delete_strays(workbench.postgres.catalog(), workbench.lake.lake(), store)
        for index_name in store.indexes.names():
            left = store.indexes.expunge(index_name)
            context.log.info(f"{index_name}: {left} deleted entries left in its files")
    if swept:
        context.log.warning(f"deleted {swept} entries and folders of tenants that were removed")


@dg.job(
    name="prune",
    tags=NO_RUN_RETRIES,
    description="Prunes documents that are older than their tenant's retention.",
)
def prune_job() -> None:
    """Prune documents."""
    prune_documents()


@dg.job(
    name="compact",
    tags=NO_RUN_RETRIES,
    description="Compacts the lake, and deletes data of removed tenants.",
)
def compact_job() -> None:
    """Compact the lake."""
    compact_lake()
