"""detect_drift: compares indexes and sources with the catalog; repair_index: repairs a tenant's."""

import dagster as dg

from checks import contents, drift
from checks.results import evaluation_of
from checks.tenant_check import CheckContext
from checks.verdict import Verdict
from rag_assets.common.errors import TenantGone, TenantLocked
from rag_assets.jobs.every_tenant import for_each, locked
from rag_assets.jobs.run_tags import NO_RUN_RETRIES
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.drift import inspect_index, repair_index
from rag_assets.storage.catalog.tenants import TenantRecord
from resources.tenant_lock import TenantLockResource
from resources.workbench import Workbench, clear_failures


@dg.op(tags={"kind": "elasticsearch"})
def repair_live_index(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_lock: TenantLockResource
) -> None:
    """Repair the live index; the next sync writes what is missing and reads all files again."""
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
def compare_with_catalog(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Compare every tenant's index and sources with the catalog, and record the verdicts."""
    with clear_failures():
        records = workbench.postgres.catalog().tenants.all()

    def compare(record: TenantRecord) -> str | None:
        differing, errors = [], []
        for check, evaluate in _COMPARISONS:
            try:
                verdict = evaluate(context, workbench, record.id)
            except TenantGone:
                raise
            except Exception as error:
                workbench.postgres.catalog().check_results.record(record.ref, [check.error(error)])
                errors.append(error)
                continue
            # Dagster accepts evaluations as well; only its annotation omits them.
            context.log_event(evaluation_of(check.key, verdict, record.id))  # type: ignore[arg-type]
            workbench.postgres.catalog().check_results.record(record.ref, [check.outcome(verdict)])
            if not verdict.passed and verdict.severity == "ERROR":
                differing.append(check.full_name)
        if differing:
            found = {"checks": differing}
            workbench.postgres.catalog().events.write(record.ref, "drift_found", [found])
        for failure in errors:
            raise failure
        return f"failed: {', '.join(differing)}" if differing else None

    for_each(context, records, "drift detection", compare)


@dg.job(
    name="detect_drift",
    tags=NO_RUN_RETRIES,
    description=(
        "Compares every tenant's live index, and a share of its documents, with the catalog, in "
        "one run over all tenants."
    ),
)
def drift_job() -> None:
    """Compare every tenant's live index and sources with the catalog."""
    compare_with_catalog()


def _index_verdict(context: dg.OpExecutionContext, workbench: Workbench, tenant_id: str) -> Verdict:
    """Compare without the lock; compare again under it only where something differs."""
    tenant = CheckContext.of(workbench, tenant_id, context.run, context.log)
    states = inspect_index(tenant.tenant)
    if all(state.healthy for state in states):
        return drift.verdict_of_states(states, {})
    try:
        with locked(context, workbench, tenant_id, "drift detection") as ctx:
            return drift.verdict_of(ctx, inspect_index(ctx), writer_at_work=lambda: False)
    except TenantLocked:
        return drift.verdict_of(tenant.tenant, states, writer_at_work=lambda: True)


def _contents_verdict(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_id: str
) -> Verdict:
    tenant = CheckContext.of(workbench, tenant_id, context.run, context.log)
    return contents.contents_check.verdict(tenant)


_COMPARISONS = (
    (drift.drift_check, _index_verdict),
    (contents.contents_check, _contents_verdict),
)
