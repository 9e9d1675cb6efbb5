"""check_tenant, expectations: one tenant's checks; check_all_tenants: all tenants' in one run."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition,
)

from rag_assets.checks.registry import tenant_checks
from rag_assets.checks.results import evaluation_of
from rag_assets.checks.tenant_check import CheckContext, TenantCheck
from rag_assets.common.errors import TenantGone
from rag_assets.common.formatting import counted
from rag_assets.jobs.every_tenant import for_each
from rag_assets.jobs.run_history import delete_old_runs
from rag_assets.partitions import tenants_partitions
from rag_assets.resources.own_runs import RUN_TAGS, OwnRuns
from rag_assets.resources.workbench import Workbench, clear_failures
from rag_assets.storage.catalog.check_results import CheckOutcome
from rag_assets.storage.catalog.tenants import TenantRecord

ALL_TENANTS_JOB = "check_all_tenants"
_KEPT_DAYS = 30
_WITH_EVALUATIONS = (ALL_TENANTS_JOB, "detect_drift", "canary")

# Dagster cannot infer the partitions of a job without assets.
_PER_TENANT: dg.PartitionedConfig[Any] = dg.PartitionedConfig(
    tenants_partitions, run_config_for_partition_key_fn=lambda _tenant_id: {}
)
_EXPECTATIONS = dg.AssetSelection.checks(
    *(check.key for check in tenant_checks() if check.job == "expectations")
)


def build_check_job(checks: Iterable[dg.AssetCheckKey]) -> UnresolvedAssetJobDefinition:
    """Build the job that evaluates a tenant's checks, without those of the job `expectations`.

    Args:
        checks: our own, with those of systems. A team's checks in the same code location may have
            other partitions, which no run of a tenant can evaluate.
    """
    return dg.define_asset_job(
        "check_tenant",
        selection=dg.AssetSelection.checks(*checks) - _EXPECTATIONS,
        config=_PER_TENANT,
        tags=RUN_TAGS,
        executor_def=dg.in_process_executor,
        description="Evaluates every asset check of a tenant over all it holds.",
    )


check_job = build_check_job(check.key for check in tenant_checks())

expectations_job = dg.define_asset_job(
    "expectations",
    selection=_EXPECTATIONS,
    config=_PER_TENANT,
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description="Validates a tenant's tables with Great Expectations suites.",
)


class ChecksConfig(dg.Config):
    """The checks and tenants to evaluate.

    Attributes:
        tenants: ids; all active tenants by default.
        checks: full names, such as "search_index.drift"; all checks by default.
    """

    tenants: list[str] | None = None
    checks: list[str] | None = None


@dg.op
def evaluate_checks(
    context: dg.OpExecutionContext,
    config: ChecksConfig,
    rag_assets_workbench: Workbench,
    rag_assets_runs: OwnRuns,
    rag_assets_checks: dg.ResourceParam[Sequence[TenantCheck]],
) -> None:
    """Evaluate the checks of many tenants, each evaluation recorded for its partition."""
    chosen = [c for c in rag_assets_checks if config.checks is None or c.full_name in config.checks]
    with clear_failures():
        records = [
            record
            for record in rag_assets_workbench.postgres.catalog().tenants.all()
            if config.tenants is None or record.id in config.tenants
        ]

    def evaluate(record: TenantRecord) -> str | None:
        return _evaluate(context, rag_assets_workbench, record, chosen)

    try:
        for_each(context, records, "checks", evaluate)
    finally:
        catalog = rag_assets_workbench.postgres.catalog()
        deleted = delete_old_runs(
            catalog, context.instance, rag_assets_runs, _WITH_EVALUATIONS, days=_KEPT_DAYS
        )
        if deleted:
            context.log.info(f"deleted {counted(deleted, 'run')} older than {_KEPT_DAYS} days")


@dg.job(
    name=ALL_TENANTS_JOB,
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description=(
        "Evaluates asset checks of all tenants, or of those that its configuration names, in one "
        "run. Its runs are deleted after 30 days."
    ),
)
def check_all_job() -> None:
    """Evaluate the checks of all tenants."""
    evaluate_checks()


def _evaluate(
    context: dg.OpExecutionContext,
    workbench: Workbench,
    record: TenantRecord,
    checks: Sequence[TenantCheck],
) -> str | None:
    """Evaluate a tenant's checks; one that cannot be evaluated stops no other."""
    outcomes: list[CheckOutcome] = []
    for check, outcome, evaluation in _evaluations(context, workbench, record.id, checks):
        outcomes.append(outcome)
        if evaluation is not None:
            # Dagster accepts evaluations as well; only its annotation omits them.
            context.log_event(evaluation)  # type: ignore[arg-type]
        else:
            context.log.error(f"{record.id}: {check.full_name}: {outcome.error}")
    workbench.postgres.catalog().check_results.record(record.ref, outcomes)
    unmade = [f"{o.asset}.{o.name}" for o in outcomes if o.error is not None]
    if unmade:
        raise dg.Failure(f"not evaluated: {', '.join(unmade)}", allow_retries=False)
    failed = [f"{o.asset}.{o.name}" for o in outcomes if not o.passed]
    return f"failed: {', '.join(failed)}" if failed else None


def _evaluations(
    context: dg.OpExecutionContext,
    workbench: Workbench,
    tenant_id: str,
    checks: Sequence[TenantCheck],
) -> Iterator[tuple[TenantCheck, CheckOutcome, dg.AssetCheckEvaluation | None]]:
    try:
        tenant = CheckContext.of(workbench, tenant_id, context.run, context.log)
    except TenantGone:
        raise
    except Exception as error:
        for check in checks:
            yield check, check.error(error), None
        return
    for check in checks:
        try:
            verdict = check.verdict(tenant)
        except TenantGone:
            raise
        except Exception as error:
            yield check, check.error(error), None
        else:
            evaluation = evaluation_of(check.key, verdict, tenant_id)
            yield check, check.outcome(verdict), evaluation
