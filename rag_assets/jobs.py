"""The jobs: the chain for one tenant, its checks, and the upkeep of all tenants."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from rag_assets.assets.embedding_cost import daily_costs
from rag_assets.common.errors import RagAssetsError, TenantLocked
from rag_assets.common.formatting import counted
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.drift import inspect_index, repair_index
from rag_assets.pipeline.removal import delete_strays
from rag_assets.pipeline.upkeep import compact, prune
from rag_assets.storage.catalog.lock import Holder
from rag_assets.storage.catalog.usage import today
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench, clear_failures

_WAIT_SECONDS = 60.0
NO_RUN_RETRIES = {"dagster/retry_on_asset_or_op_failure": "false"}
CHAIN = dg.AssetSelection.assets(
    "raw_documents", "parsed_text", "chunks", "embeddings", "search_index"
)
EXPECTATIONS = dg.AssetSelection.checks(
    dg.AssetCheckKey(dg.AssetKey("chunks"), "expectations"),
    dg.AssetCheckKey(dg.AssetKey("embeddings"), "expectations"),
)
LOOKED_AT_BY_SYNCS = dg.AssetSelection.checks(
    dg.AssetCheckKey(dg.AssetKey("embeddings"), "spending"),
    dg.AssetCheckKey(dg.AssetKey("search_index"), "quarantine"),
)

# A job without assets has nothing to infer its partitions from.
_PER_TENANT: dg.PartitionedConfig[Any] = dg.PartitionedConfig(
    tenants_partitions, run_config_for_partition_key_fn=lambda _tenant_id: {}
)

sync_job = dg.define_asset_job(
    "sync_tenant",
    selection=CHAIN.without_checks() | LOOKED_AT_BY_SYNCS,
    tags=NO_RUN_RETRIES,
    description=(
        "Carries one slice of a tenant's work through the five assets, and tells what is in "
        "quarantine. A document that fails does not fail the run."
    ),
)

check_job = dg.define_asset_job(
    "check_tenant",
    selection=dg.AssetSelection.all_asset_checks() - EXPECTATIONS,
    config=_PER_TENANT,
    tags=NO_RUN_RETRIES,
    description="Runs every asset check of a tenant over all it holds.",
)

expectations_job = dg.define_asset_job(
    "expectations",
    selection=EXPECTATIONS,
    config=_PER_TENANT,
    tags=NO_RUN_RETRIES,
    description="Validates a tenant's tables with Great Expectations suites.",
)


@dg.op(tags={"kind": "elasticsearch"})
def mend_index(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> None:
    """Mend what the live index lacks or has too much; the next sync writes what is missing."""
    with clear_failures():
        ctx = workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )
        states = repair_index(ctx)
    for state in states:
        if not state.healthy:
            context.log.warning(f"mended generation {state.generation.number}: {state.drift}")


@dg.job(
    name="repair_index",
    partitions_def=tenants_partitions,
    tags=NO_RUN_RETRIES,
    description="Mends one tenant's index; what is missing is written again from the lake.",
)
def repair_job() -> None:
    """Mend one tenant's index."""
    mend_index()


@dg.op
def compare_indexes(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compare every tenant's live index with the catalog, and note the offenders."""

    def inspect(ctx: TenantContext) -> str:
        offending = [state for state in inspect_index(ctx) if not state.healthy]
        found = [{"generation": state.generation.number} for state in offending]
        ctx.catalog.events.write(ctx.ref, "drift_found", found)
        return f"{len(offending)} generations differ" if offending else "as it should be"

    _for_all_tenants(context, workbench, "drift detection", inspect)


@dg.op
def prune_documents(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Prune every tenant's documents, and questions, that are older than it keeps them."""

    def prune_one(ctx: TenantContext) -> str:
        report = prune(ctx)
        return (
            f"{report.documents} documents pruned, {report.entries} entries deleted,"
            f" {report.events} events of searches forgotten"
        )

    _for_all_tenants(context, workbench, "pruning", prune_one)


@dg.op
def compact_lake(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compact every tenant's tables, and sweep up what belongs to no tenant."""

    def compact_one(ctx: TenantContext) -> str:
        return f"{len(compact(ctx))} tables compacted"

    _for_all_tenants(context, workbench, "compaction", compact_one)
    with clear_failures():
        swept = delete_strays(
            workbench.postgres.catalog(), workbench.lake.lake(), workbench.elasticsearch.store()
        )
    if swept:
        context.log.warning(f"swept up {swept} entries and folders of tenants that are gone")


@dg.job(name="detect_drift", tags=NO_RUN_RETRIES)
def drift_job() -> None:
    """Compare every tenant's live index with the catalog."""
    compare_indexes()


@dg.job(name="prune", tags=NO_RUN_RETRIES)
def prune_job() -> None:
    """Prune documents that are older than their tenant's retention."""
    prune_documents()


@dg.job(name="compact", tags=NO_RUN_RETRIES)
def compact_job() -> None:
    """Compact the lake."""
    compact_lake()


@dg.op(tags={"kind": "postgres"})
def tell_costs(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Report what every tenant spent on embeddings, as materializations of embedding_cost."""
    with clear_failures():
        present = {r.id for r in workbench.postgres.catalog().tenants.all() if r.state == "ACTIVE"}
        count = 0
        for report in daily_costs(workbench.postgres.catalog().usage, today()):
            if report.partition in present:
                context.log_event(report)
                count += 1
        context.log.info(f"reported the costs of {counted(count, 'tenant')}")


@dg.job(
    name="report_costs",
    tags=NO_RUN_RETRIES,
    description="Reports what every tenant spent on embeddings, in one run over all tenants.",
)
def costs_job() -> None:
    """Report what every tenant spent."""
    tell_costs()


ALL_JOBS: tuple[Any, ...] = (
    sync_job,
    check_job,
    expectations_job,
    repair_job,
    drift_job,
    prune_job,
    compact_job,
    costs_job,
)


@contextmanager
def _locked(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_id: str, what: str
) -> Iterator[TenantContext]:
    lock = workbench.postgres.catalog().lock
    holder = Holder.here(what, context.run.run_id)
    with lock.hold(tenant_id, holder, wait_seconds=_WAIT_SECONDS) as held:
        yield workbench.context(tenant_id, guard=held.check, log=context.log.info)


def _for_all_tenants(
    context: dg.OpExecutionContext,
    workbench: Workbench,
    what: str,
    work: Callable[[TenantContext], str],
) -> None:
    """Do something for every active tenant under its lock; one tenant's failure stops no other."""
    failed = []
    for record in workbench.postgres.catalog().tenants.all():
        if record.state != "ACTIVE":
            continue
        try:
            with _locked(context, workbench, record.id, what) as ctx:
                context.log.info(f"{record.id}: {work(ctx)}")
        except TenantLocked as error:
            context.log.warning(f"{record.id}: skipped, {error.message}")
        except RagAssetsError as error:
            context.log.error(f"{record.id}: {error.message}")  # noqa: TRY400 - it says it all
            failed.append(record.id)
    if failed:
        raise dg.Failure(f"{what} failed for {', '.join(failed)}", allow_retries=False)
