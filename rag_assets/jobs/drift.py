"""detect_drift: compares every index with the catalog; repair_index: repairs one tenant's."""

import dagster as dg

from checks import drift as drift_check
from checks.results import evaluation_of
from checks.tenant_check import CheckContext
from checks.verdict import Verdict
from rag_assets.common.errors import TenantGone, TenantLocked
from rag_assets.jobs.every_tenant import for_each, locked
from rag_assets.jobs.run_tags import NO_RUN_RETRIES
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.drift import IndexState, inspect_index, repair_index
from rag_assets.storage.catalog.tenants import TenantRecord
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench, clear_failures

_CHECK = drift_check.drift_check


@dg.op(tags={"kind": "elasticsearch"})
def repair_live_index(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> None:
    """Repair the live index; the next sync writes what is missing."""
    with clear_failures():
        ctx = workbench.context(
            context.partition_key, guard=tenant_lock.guard, log=context.log.info
        )
        states = repair_index(ctx)
    for state in states:
        if not state.healthy:
            context.log.warning(f"repaired generation {state.generation.number}: {state.drift}")


@dg.job(
    name="repair_index",
    partitions_def=tenants_partitions,
    tags=NO_RUN_RETRIES,
    description="Repairs one tenant's index; what is missing is written again from the lake.",
)
def repair_job() -> None:
    """Repair one tenant's index."""
    repair_live_index()


@dg.op
def compare_indexes(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compare every tenant's live index with the catalog, and record the drift check's verdict."""
    with clear_failures():
        records = workbench.postgres.catalog().tenants.all()

    def compare(record: TenantRecord) -> str | None:
        try:
            states, verdict = _compared(context, workbench, record.id)
        except TenantGone:
            raise
        except Exception as error:
            workbench.postgres.catalog().check_results.record(record.ref, [_CHECK.error(error)])
            raise
        catalog = workbench.postgres.catalog()
        differing = [state for state in states if not state.healthy]
        if not verdict.passed and verdict.severity == "ERROR":
            found = [{"generation": state.generation.number} for state in differing]
            catalog.events.write(record.ref, "drift_found", found)
        # Dagster accepts evaluations as well; only its annotation omits them.
        context.log_event(evaluation_of(_CHECK.key, verdict, record.id))  # type: ignore[arg-type]
        catalog.check_results.record(record.ref, [_CHECK.outcome(verdict)])
        return f"{len(differing)} generations differ" if differing else None

    for_each(context, records, "drift detection", compare)


@dg.job(
    name="detect_drift",
    tags=NO_RUN_RETRIES,
    description="Compares every tenant's live index with the catalog, in one run over all tenants.",
)
def drift_job() -> None:
    """Compare every tenant's live index with the catalog."""
    compare_indexes()


def _compared(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_id: str
) -> tuple[list[IndexState], Verdict]:
    """Compare without the lock; compare again under it only where something differs."""
    tenant = CheckContext.of(workbench, tenant_id, context.run.run_id, context.log)
    states = inspect_index(tenant.tenant)
    if all(state.healthy for state in states):
        return states, drift_check.verdict_of_states(states, {})
    try:
        with locked(context, workbench, tenant_id, "drift detection") as ctx:
            states = inspect_index(ctx)
            return states, _verdict(ctx, states, writer_at_work=False)
    except TenantLocked:
        return states, _verdict(tenant.tenant, states, writer_at_work=True)


def _verdict(ctx: TenantContext, states: list[IndexState], *, writer_at_work: bool) -> Verdict:
    return drift_check.verdict_of(ctx, states, writer_at_work=lambda: writer_at_work)
