"""prune, compact, end_removals: keep documents, the lake and removed tenants within bounds."""

from dataclasses import replace
from functools import partial

import dagster as dg

from rag_assets.assets.generations import generations_report
from rag_assets.assets.retention import retention_report
from rag_assets.common.clock import Clock
from rag_assets.common.errors import RagAssetsError, TenantLocked, UnknownTenant
from rag_assets.common.settings import Settings
from rag_assets.jobs.every_tenant import for_each, for_each_locked
from rag_assets.jobs.run_history import delete_tenant
from rag_assets.pipeline.clock_guard import ClockDoubt, time_for_deletion
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import rescan
from rag_assets.pipeline.removal import interrupted_removals, purge_tenant
from rag_assets.pipeline.retention import prune
from rag_assets.pipeline.retention_report import report_retention
from rag_assets.pipeline.upkeep import (
    compact_tenant,
    delete_leftovers,
    drop_old_generations,
    expunge_pruned,
)
from rag_assets.resources.own_runs import RUN_TAGS, OwnRuns
from rag_assets.resources.workbench import Workbench, as_failure, clear_failures
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.lock import Holder
from rag_assets.storage.catalog.tenants import TenantRecord


@dg.op
def prune_documents(context: dg.OpExecutionContext, rag_assets_workbench: Workbench) -> None:
    """Prune every tenant's documents and search events that exceed their retention.

    What was pruned since the last time, by syncs as well, leaves the files of the indexes.
    """
    _warn_of_clock(context, rag_assets_workbench)

    def prune_one(ctx: TenantContext) -> str:
        found = rescan(ctx, by="job prune")
        if found is not None:
            context.log.warning(
                f"{ctx.ref.id}: credentials were masked, see receipt {found.number}"
            )
        # The doubt is the same for all tenants, and was logged once.
        report = replace(prune(ctx, by="job prune"), doubt=None)
        builds = drop_old_generations(ctx)
        for told in (_builds_told(ctx), _retention_told(ctx)):
            if told is not None:
                context.log_event(told)
        for warning in report.warnings(ctx.ref.id):
            context.log.warning(f"{ctx.ref.id}: {warning}")
        return (
            f"{report.documents} documents pruned, {report.entries} entries deleted,"
            f" {report.events} events of searches deleted, {builds} former builds deleted"
        )

    def expunge_one(record: TenantRecord) -> None:
        store = rag_assets_workbench.elasticsearch.store()
        expunge_pruned(rag_assets_workbench.postgres.catalog(), store, record.ref, context.log.info)

    try:
        for_each_locked(context, rag_assets_workbench, "pruning", prune_one)
    finally:
        tenants = rag_assets_workbench.postgres.catalog().tenants.all()
        for_each(context, tenants, "expunging pruned entries", expunge_one)


def _warn_of_clock(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    with clear_failures():
        trusted = time_for_deletion(workbench.postgres.catalog(), Clock())
    if isinstance(trusted, ClockDoubt):
        context.log.warning(trusted.line)


def _builds_told(ctx: TenantContext) -> dg.AssetMaterialization | None:
    """The builds of a tenant that has several."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    return generations_report(ctx) if len(live) > 1 else None


def _retention_told(ctx: TenantContext) -> dg.AssetMaterialization | None:
    found = report_retention(ctx)
    return None if found.is_empty else retention_report(ctx.ref.id, found)


@dg.op
def compact_lake(context: dg.OpExecutionContext, rag_assets_workbench: Workbench) -> None:
    """Compact every tenant's tables, and delete data of removed tenants."""
    _warn_of_clock(context, rag_assets_workbench)

    def compact_one(ctx: TenantContext) -> str:
        return "; ".join(compact_tenant(ctx))

    for_each_locked(context, rag_assets_workbench, "compaction", compact_one)
    with clear_failures():
        swept = delete_leftovers(
            rag_assets_workbench.postgres.catalog(),
            rag_assets_workbench.lake.lake(),
            rag_assets_workbench.elasticsearch.store(),
            open_blobs(Settings.from_environment()),
            context.log.info,
        )
    if swept:
        context.log.warning(f"deleted {swept} entries and folders of tenants that were removed")


@dg.op
def end_interrupted_removals(
    context: dg.OpExecutionContext, rag_assets_workbench: Workbench, rag_assets_runs: OwnRuns
) -> None:
    """End the removals of tenants that were killed; the failure of one stops no other."""
    catalog = rag_assets_workbench.postgres.catalog()
    failed = []
    for record in interrupted_removals(catalog):
        try:
            with catalog.lock.hold(record.id, Holder.here("removal", context.run.run_id)):
                receipt = purge_tenant(
                    catalog,
                    rag_assets_workbench.lake.lake(),
                    rag_assets_workbench.elasticsearch.store(),
                    record,
                    Settings.from_environment(),
                    by="job end_removals",
                    delete_history=partial(
                        delete_tenant, context.instance, rag_assets_runs, record.id
                    ),
                )
        except (TenantLocked, UnknownTenant) as error:
            context.log.warning(f"{record.id}: skipped, {error.message}")
        except RagAssetsError as error:
            context.log.error(f"{record.id}: {as_failure(error).description}")  # noqa: TRY400
            failed.append(record.id)
        else:
            context.log.info(f"{record.id}: removed, see receipt {receipt.number}")
    if failed:
        raise dg.Failure(f"not removed: {', '.join(failed)}", allow_retries=False)


@dg.job(
    name="end_removals",
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description="Ends the removals of tenants that were killed.",
)
def end_removals_job() -> None:
    """End interrupted removals of tenants."""
    end_interrupted_removals()


@dg.job(
    name="prune",
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description="Prunes documents that are older than their tenant's retention.",
)
def prune_job() -> None:
    """Prune documents."""
    prune_documents()


@dg.job(
    name="compact",
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description="Compacts the lake, and deletes data of removed tenants.",
)
def compact_job() -> None:
    """Compact the lake."""
    compact_lake()
