"""Jobs that evaluate asset checks of one tenant or of all tenants.

check_tenant evaluates the checks of one tenant on all its data, and expectations validates its
tables with Great Expectations. check_all_tenants evaluates all checks of all tenants.
"""

from collections.abc import Iterator, Sequence

import dagster as dg

from rag_assets.checks.results import to_check_evaluation
from rag_assets.checks.tenant_check import (
    CheckContext,
    LoadedCheck,
    TenantCheck,
    get_job_name,
    list_check_keys,
)
from rag_assets.common.errors import TenantGone
from rag_assets.common.formatting import format_count
from rag_assets.dagster_compat import log_evaluation
from rag_assets.declarations import AssetJob, Naming, job
from rag_assets.jobs.every_tenant import call_for_each_tenant
from rag_assets.jobs.run_history import delete_old_runs
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.workbench import Workbench, convert_to_failures
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.tenants.table import TenantRecord

ALL_TENANTS_JOB = "check_all_tenants"
_KEPT_DAYS = 30
_JOBS_WITH_EVALUATIONS = (ALL_TENANTS_JOB, "detect_drift", "canary")


def _select_checks(names: Naming, checks: Sequence[LoadedCheck], job: str) -> dg.AssetSelection:
    """Select the checks of the core and of systems that belong to a job for one tenant.

    A team's checks in the same code location are not selected: they may have other partitions,
    which a run of a tenant cannot evaluate.
    """
    return dg.AssetSelection.checks(
        *(
            key
            for check in checks
            if get_job_name(check) == job
            for key in list_check_keys(check, names)
        )
    )


check_job = AssetJob(
    "check_tenant",
    "Evaluates all asset checks of a tenant on all its data.",
    lambda names, checks: _select_checks(names, checks, "check_tenant"),
    checks_alone=True,
)

expectations_job = AssetJob(
    "expectations",
    "Validates a tenant's tables with Great Expectations suites.",
    lambda names, checks: _select_checks(names, checks, "expectations"),
    checks_alone=True,
)


class ChecksConfig(dg.Config):
    """The checks and tenants to evaluate.

    Attributes:
        tenants: ids of tenants; by default, all active tenants.
        checks: full names of checks, such as "search_index.drift"; by default, all checks.
    """

    tenants: list[str] | None = None
    checks: list[str] | None = None


@job(
    ALL_TENANTS_JOB,
    (
        "Evaluates asset checks of all tenants, or of the tenants in its configuration, in one "
        "run. Runs are deleted after 30 days."
    ),
)
def evaluate_checks(
    context: dg.OpExecutionContext,
    config: ChecksConfig,
    *,
    names: Naming,
    workbench: Workbench,
    runs: OwnRuns,
    checks: dg.ResourceParam[Sequence[TenantCheck]],
) -> None:
    """Evaluate the checks of many tenants; record each evaluation for the tenant's partition."""
    chosen_checks = [c for c in checks if config.checks is None or c.full_name in config.checks]
    with convert_to_failures(workbench.installation):
        records = [
            record
            for record in workbench.postgres.catalog().tenants.all()
            if config.tenants is None or record.id in config.tenants
        ]

    def evaluate(record: TenantRecord) -> str | None:
        return _evaluate_checks(context, names, workbench, record, chosen_checks)

    try:
        call_for_each_tenant(context, workbench.installation, records, "checks", evaluate)
    finally:
        catalog = workbench.postgres.catalog()
        deleted = delete_old_runs(
            catalog,
            context.instance,
            runs,
            [names.own(name) for name in _JOBS_WITH_EVALUATIONS],
            days=_KEPT_DAYS,
        )
        if deleted:
            context.log.info(f"deleted {format_count(deleted, 'run')} older than {_KEPT_DAYS} days")


def _evaluate_checks(
    context: dg.OpExecutionContext,
    names: Naming,
    workbench: Workbench,
    record: TenantRecord,
    checks: Sequence[TenantCheck],
) -> str | None:
    """Evaluate checks for a tenant; an error in a check does not stop the others.

    Returns:
        A line for the log; None if there is nothing to log.
    """
    outcomes: list[CheckResult] = []
    for check, outcome, evaluation in _iter_evaluations(
        context, names, workbench, record.id, checks
    ):
        outcomes.append(outcome)
        if evaluation is not None:
            log_evaluation(context, evaluation)
        else:
            context.log.error(f"{record.id}: {check.full_name}: {outcome.error}")
    workbench.postgres.catalog().check_results.record(record.ref, outcomes)
    errors = [f"{o.asset}.{o.name}" for o in outcomes if o.error is not None]
    if errors:
        raise dg.Failure(
            f"checks could not be evaluated: {', '.join(errors)}; see the errors in this run's log",
            allow_retries=False,
        )
    failed = [f"{o.asset}.{o.name}" for o in outcomes if not o.passed]
    return f"failed: {', '.join(failed)}" if failed else None


def _iter_evaluations(
    context: dg.OpExecutionContext,
    names: Naming,
    workbench: Workbench,
    tenant_id: str,
    checks: Sequence[TenantCheck],
) -> Iterator[tuple[TenantCheck, CheckResult, dg.AssetCheckEvaluation | None]]:
    try:
        tenant = CheckContext.from_run(workbench, tenant_id, context.run, context.log)
    except TenantGone:
        raise
    except Exception as error:
        for check in checks:
            yield check, check.build_error_result(error, workbench.installation), None
        return
    for check in checks:
        try:
            verdict = check.verdict(tenant)
        except TenantGone:
            raise
        except Exception as error:
            yield check, check.build_error_result(error, workbench.installation), None
        else:
            evaluation = to_check_evaluation(check.key(names), verdict, tenant_id)
            yield check, check.build_result(verdict), evaluation
