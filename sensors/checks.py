"""Requests evaluations of asset checks.

Most checks are evaluated daily. Staleness is also evaluated again when the catalog contradicts its
last result, and any check when its result is overdue.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import dagster as dg

from rag_assets.checks.registry import collect_tenant_checks
from rag_assets.checks.tenant_check import TenantCheck
from rag_assets.declarations import Naming, Schedule, sensor
from rag_assets.jobs.checks import ALL_TENANTS_JOB, evaluate_checks
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.resources.workbench import convert_to_failures
from rag_assets.storage.catalog.journal.check_results import CatalogLag, CheckResult
from rag_assets.tenants.model import Tenant

_STALENESS = ("search_index", "staleness")
_OVERDUE_AGE = timedelta(hours=30)
"""Age of an overdue result: a day, and a margin for a slow daily run."""
_MAX_TENANTS_PER_RUN = 200
"""Maximum number of tenants with overdue checks in one run; the next run checks the others."""

_DAILY = [check.full_name for check in collect_tenant_checks() if not check.nightly]

daily_checks = Schedule(
    "daily_checks",
    evaluate_checks,
    "0 5 * * *",
    (
        "Evaluates all asset checks of every tenant, except the checks of the nightly comparison, "
        "in one run over all tenants."
    ),
    config={"checks": _DAILY},
)


@dataclass(frozen=True, slots=True)
class Staleness:
    """The result of comparing the tenants' last staleness checks with the catalog.

    Attributes:
        unchanged: tenants whose last result is still valid.
        changed: tenants to check again, because the catalog contradicts the last result.
    """

    unchanged: tuple[str, ...]
    changed: tuple[str, ...]


def compare_staleness(
    limits: Mapping[str, timedelta],
    lags: Mapping[str, CatalogLag],
    results: Mapping[str, CheckResult],
    now: datetime,
) -> Staleness:
    """Separate tenants whose last result is still valid from tenants to check again.

    Args:
        results: the last results of the check; a tenant without a result is in neither group.
    """
    unchanged: list[str] = []
    changed: list[str] = []
    for tenant_id, limit in limits.items():
        result = results.get(tenant_id)
        if result is None or result.passed is None:
            continue
        lag = lags.get(tenant_id, CatalogLag())
        is_late = lag.since is not None and now - lag.since > limit
        behind = is_late or lag.held_deletions > 0
        (unchanged if behind != result.passed else changed).append(tenant_id)
    return Staleness(tuple(unchanged), tuple(changed))


@sensor(
    "staleness",
    (
        "Finds documents that wait longer than their tenant allows, by one query over all tenants. "
        "Requests one run for staleness checks whose result would change, and one run for tenants "
        "with a check that was never evaluated, or not for 30 hours."
    ),
    seconds=900,
    job=ALL_TENANTS_JOB,
)
def staleness_sensor(
    context: dg.SensorEvaluationContext,
    names: Naming,
    postgres: PostgresResource,
    runs: OwnRuns,
    checks: dg.ResourceParam[Sequence[TenantCheck]],
) -> dg.SensorResult:
    """Compare the catalog with the last results, and request the needed evaluations."""
    if runs.list_unfinished(context.instance, job=names.own(ALL_TENANTS_JOB)):
        return dg.SensorResult(skip_reason=dg.SkipReason("a run is already evaluating checks"))
    with convert_to_failures(postgres.installation):
        table = postgres.catalog().check_results
        records = [r for r in postgres.catalog().tenants.all() if r.state == "ACTIVE"]
        keys = [(check.asset, check.name) for check in checks]
        evaluated = table.count_evaluated_since(keys, _OVERDUE_AGE)
        overdue = [r.id for r in records if evaluated.get(r.id, 0) < len(keys)][
            :_MAX_TENANTS_PER_RUN
        ]
        limits = {
            record.id: timedelta(minutes=Tenant.from_config(record.config).freshness_minutes)
            for record in records
            if record.id not in set(overdue)
        }
        staleness = compare_staleness(
            limits, table.lags(), table.find_by_check(*_STALENESS), datetime.now(UTC)
        )
        table.confirm(*_STALENESS, staleness.unchanged)
    requests = []
    if staleness.changed:
        reason = f"the staleness of {len(staleness.changed):,} tenants may have changed"
        requests.append(_build_request(names, staleness.changed, [".".join(_STALENESS)], reason))
    if overdue:
        reason = (
            f"checks of {len(overdue):,} tenants are overdue: not evaluated for 30 hours, or never"
        )
        requests.append(_build_request(names, overdue, None, reason))
    unchanged = f"{len(staleness.unchanged):,} tenants unchanged"
    return dg.SensorResult(
        run_requests=requests, skip_reason=None if requests else dg.SkipReason(unchanged)
    )


def _build_request(
    names: Naming, tenant_ids: Collection[str], checks: list[str] | None, reason: str
) -> dg.RunRequest:
    config: dict[str, object] = {"tenants": list(tenant_ids)}
    if checks is not None:
        config["checks"] = checks
    return dg.RunRequest(
        run_config=evaluate_checks.run_config(names, **config), tags={REASON_TAG: reason}
    )
