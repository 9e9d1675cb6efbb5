"""Jobs that compare stores and sources with the catalog (detect_drift), or repair stores.

detect_drift covers all tenants each night, and repair_index repairs the stores of one tenant.
"""

from collections.abc import Sequence
from dataclasses import replace

import dagster as dg

from rag_assets.checks.results import to_check_evaluation
from rag_assets.checks.tenant_check import CheckContext, TenantCheck
from rag_assets.common.errors import TenantDisabled, TenantGone, UnknownTenant
from rag_assets.common.formatting import format_count
from rag_assets.dagster_compat import log_evaluation
from rag_assets.declarations import Naming, job
from rag_assets.jobs.every_tenant import call_for_each_tenant
from rag_assets.pipeline.context import DailyShare
from rag_assets.pipeline.repair import repair_tenant
from rag_assets.resources.tenant_lock import TenantLockResource
from rag_assets.resources.workbench import Workbench, convert_to_failures
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.tenants.table import TenantRecord


class RepairConfig(dg.Config):
    """The extent of a repair.

    Attributes:
        everything: whether to compare all contents, vectors and files; otherwise only the day's
            share, like the nightly comparison that requested the repair.
    """

    everything: bool = True


@job(
    "repair_index",
    (
        "Repairs the lake and the index of one tenant: vectors that one of them lost are copied "
        "from the other, and missing entries are written again."
    ),
    per_tenant=True,
    kind="elasticsearch",
)
def repair_live_index(
    context: dg.OpExecutionContext,
    config: RepairConfig,
    workbench: Workbench,
    tenant_lock: TenantLockResource,
) -> None:
    """Repair lake and index; the next sync writes missing entries and reads altered documents."""
    with convert_to_failures(workbench.installation):
        try:
            ctx = workbench.context(
                context.partition_key, guard=tenant_lock.guard, log=context.log.info
            )
        except (TenantDisabled, UnknownTenant) as error:
            context.log.info(f"skipped: {error.message}")
            return
        days = 1 if config.everything else ctx.tenant.drift.days
        repaired = repair_tenant(ctx, DailyShare(days, ctx.clock.now().date()))
    for line in repaired.lines():
        context.log.warning(f"repaired: {line}")


@job(
    "detect_drift",
    (
        "Compares every tenant's live index, lake and records, and a share of its vectors and "
        "documents, with the catalog, in one run over all tenants."
    ),
)
def compare_with_catalog(
    context: dg.OpExecutionContext,
    names: Naming,
    workbench: Workbench,
    checks: dg.ResourceParam[Sequence[TenantCheck]],
) -> None:
    """Compare every tenant's stores and sources with the catalog, and record the verdicts."""
    with convert_to_failures(workbench.installation):
        records = workbench.postgres.catalog().tenants.all()
    nightly = [check for check in checks if check.nightly]

    def compare(record: TenantRecord) -> str | None:
        renewed = workbench.postgres.catalog().records.renew_stale(record.ref)
        if renewed:
            context.log.info(f"{record.id}: {format_count(renewed, 'record')} listed again")
        return _evaluate_drift_checks(context, names, workbench, record, nightly)

    call_for_each_tenant(context, workbench.installation, records, "drift detection", compare)


def _evaluate_drift_checks(
    context: dg.OpExecutionContext,
    names: Naming,
    workbench: Workbench,
    record: TenantRecord,
    checks: Sequence[TenantCheck],
) -> str | None:
    """Evaluate the checks that compare a tenant's stores and sources with the catalog.

    An error in one does not stop the others. Returns a line for the log, or None.
    """
    catalog = workbench.postgres.catalog()
    outcomes: list[CheckResult] = []
    errors: list[Exception] = []
    for check in checks:
        try:
            tenant = CheckContext.from_run(workbench, record.id, context.run, context.log)
            verdict = check.verdict(replace(tenant, nightly=True))
        except TenantGone:
            raise
        except Exception as error:
            outcomes.append(check.build_error_result(error, workbench.installation))
            errors.append(error)
            continue
        log_evaluation(context, to_check_evaluation(check.key(names), verdict, record.id))
        outcomes.append(check.build_result(verdict))
    catalog.check_results.record(record.ref, outcomes)
    differing = {
        f"{outcome.asset}.{outcome.name}"
        for outcome in outcomes
        if outcome.passed is False and outcome.severity == "ERROR"
    }
    repairable = differing & {check.full_name for check in checks if check.repairable}
    if repairable:
        catalog.events.write(record.ref, "drift_found", [{"checks": sorted(differing)}])
    if errors:
        raise errors[0]
    return f"failed: {', '.join(sorted(differing))}" if differing else None
