"""Jobs that delete old documents (prune), compact the lake, complete removals, and report costs."""

from dataclasses import replace
from functools import partial

import dagster as dg

from rag_assets.assets.reports import (
    build_generations_report,
    build_retention_report,
    iter_daily_costs,
)
from rag_assets.common.clock import Clock
from rag_assets.common.errors import RagAssetsError, TenantLocked, UnknownTenant
from rag_assets.common.formatting import format_count
from rag_assets.declarations import Naming, job
from rag_assets.jobs.every_tenant import call_for_each_locked_tenant, call_for_each_tenant
from rag_assets.jobs.run_history import delete_tenant
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import rescan_tenant
from rag_assets.pipeline.removal import find_interrupted_removals, purge_tenant
from rag_assets.pipeline.retention import prune_tenant, report_retention
from rag_assets.pipeline.upkeep import (
    compact_tenant,
    delete_leftovers,
    drop_old_generations,
    expunge_pruned,
)
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.workbench import Workbench, build_failure, convert_to_failures
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.accounts.usage import today
from rag_assets.storage.catalog.lock import Holder
from rag_assets.storage.catalog.tenants.table import TenantRecord


@job("prune", "Deletes documents that are older than their tenant's retention.")
def prune_documents(context: dg.OpExecutionContext, names: Naming, workbench: Workbench) -> None:
    """Delete every tenant's documents and search events that exceed their retention.

    Entries that were pruned since the last run, also by syncs, are then removed from the files of
    the indexes.
    """
    _warn_of_clock(context, workbench)

    def prune_one(ctx: TenantContext) -> str:
        rescanned = rescan_tenant(ctx, by="job prune")
        if rescanned is not None:
            context.log.warning(
                f"{ctx.ref.id}: credentials were masked, see receipt {rescanned.number}"
            )
        # A doubt about the clock concerns all tenants, and was already logged.
        report = replace(prune_tenant(ctx, by="job prune"), doubt=None)
        builds = drop_old_generations(ctx)
        for event in (_report_builds_if_several(names, ctx), _report_retention_if_any(names, ctx)):
            if event is not None:
                context.log_event(event)
        for warning in report.warnings(ctx.ref.id):
            context.log.warning(f"{ctx.ref.id}: {warning}")
        return (
            f"{report.documents} documents pruned, {report.entries} entries deleted,"
            f" {report.events} events of searches deleted, {builds} former builds deleted"
        )

    def expunge_one(record: TenantRecord) -> None:
        store = workbench.elasticsearch.store()
        expunge_pruned(workbench.postgres.catalog(), store, record.ref, context.log.info)

    try:
        call_for_each_locked_tenant(context, workbench, "pruning", prune_one)
    finally:
        tenants = workbench.postgres.catalog().tenants.all()
        call_for_each_tenant(
            context, workbench.installation, tenants, "expunging pruned entries", expunge_one
        )


def _warn_of_clock(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    with convert_to_failures(workbench.installation):
        trusted = get_deletion_time(workbench.postgres.catalog(), Clock())
    if isinstance(trusted, ClockDoubt):
        context.log.warning(trusted.message_with_hint)


def _report_builds_if_several(names: Naming, ctx: TenantContext) -> dg.AssetMaterialization | None:
    """Return a report on the builds of a tenant; None for a tenant with at most one build."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    return build_generations_report(names, ctx) if len(live) > 1 else None


def _report_retention_if_any(names: Naming, ctx: TenantContext) -> dg.AssetMaterialization | None:
    retention_report = report_retention(ctx)
    return (
        None
        if retention_report.is_empty
        else build_retention_report(names, ctx.ref.id, retention_report)
    )


@job("compact", "Merges small files of the lake, and deletes leftover data of removed tenants.")
def compact_lake(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compact every tenant's tables, and delete leftover data of removed tenants."""
    _warn_of_clock(context, workbench)

    def compact_one(ctx: TenantContext) -> str:
        return "; ".join(compact_tenant(ctx))

    call_for_each_locked_tenant(context, workbench, "compaction", compact_one)
    with convert_to_failures(workbench.installation):
        swept = delete_leftovers(
            workbench.postgres.catalog(),
            workbench.lake.lake(),
            workbench.elasticsearch.store(),
            open_blobs(workbench.installation.settings),
            context.log.info,
        )
    if swept:
        context.log.warning(f"deleted {swept} leftover entries and folders of removed tenants")


@job("end_removals", "Completes interrupted removals of tenants.")
def end_interrupted_removals(
    context: dg.OpExecutionContext, workbench: Workbench, runs: OwnRuns
) -> None:
    """Complete interrupted removals of tenants; a failure of one does not stop the others."""
    catalog = workbench.postgres.catalog()
    failed = []
    for record in find_interrupted_removals(catalog):
        try:
            with catalog.lock.hold(record.id, Holder.here("removal", context.run.run_id)):
                receipt = purge_tenant(
                    catalog,
                    workbench.lake.lake(),
                    workbench.elasticsearch.store(),
                    record,
                    workbench.installation.settings,
                    by="job end_removals",
                    delete_history=partial(delete_tenant, context.instance, runs, record.id),
                )
        except (TenantLocked, UnknownTenant) as error:
            context.log.warning(f"{record.id}: skipped, {error.message}")
        except RagAssetsError as error:
            failure = build_failure(error, workbench.installation)
            context.log.error(f"{record.id}: {failure.description}")  # noqa: TRY400
            failed.append(record.id)
        else:
            context.log.info(f"{record.id}: removed, see receipt {receipt.number}")
    if failed:
        raise dg.Failure(
            f"tenants could not be removed: {', '.join(failed)}; see the errors in this run's log",
            allow_retries=False,
        )


@job(
    "report_costs",
    "Reports every tenant's spending on embeddings, in one run over all tenants.",
    kind="postgres",
)
def report_tenant_costs(
    context: dg.OpExecutionContext, names: Naming, workbench: Workbench
) -> None:
    """Report every tenant's spending on embeddings as materializations of embedding_cost."""
    with convert_to_failures(workbench.installation):
        present = {r.id for r in workbench.postgres.catalog().tenants.all() if r.state == "ACTIVE"}
        count = 0
        for report in iter_daily_costs(names, workbench.postgres.catalog().usage, today()):
            if report.partition in present:
                context.log_event(report)
                count += 1
        context.log.info(f"reported the costs of {format_count(count, 'tenant')}")
