"""check: run the asset checks of a tenant."""

from __future__ import annotations

from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.runs import CheckResult
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import RagAssetsError


@with_session
def check(session: Session, tenant_id: str, *, deep: bool, as_json: bool) -> bool:
    """Run every check of a tenant; return True if no check failed with severity ERROR.

    Args:
        deep: compare everything now; otherwise only the day's share is compared.
    """
    session.active(tenant_id)
    results = run_checks(session, tenant_id, deep=deep)
    passed = all(result.passed or result.severity != "ERROR" for result in results)
    if as_json:
        print_json({"tenant": tenant_id, "passed": passed, "checks": results})
    else:
        print_checks(tenant_id, results)
    return passed


def run_checks(session: Session, tenant_id: str, *, deep: bool = False) -> list[CheckResult]:
    """Run the checks and the expectations.

    Raises:
        RagAssetsError: a check could not be evaluated.
    """
    from rag_assets.checks.tenant_check import DEEP_TAG

    runner = session.runner
    tags = {DEEP_TAG: "true"} if deep else {}
    results: list[CheckResult] = []
    for job_name in ("check_tenant", "expectations"):
        run = runner.run(job_name, tenant_id, tags=tags)
        if run.failure is not None:
            # A check that was not evaluated must not look like a passed check.
            raise run.failure
        results += run.checks
    if not results:
        raise RagAssetsError("no check was evaluated", hint="open the run in Dagster's UI")
    return results


def print_checks(tenant_id: str, results: list[CheckResult]) -> None:
    """Print each check with its finding."""
    print_table(
        ["check", "asset", "result", "finding"],
        [
            (r.check, r.asset, "passed" if r.passed else r.severity.lower(), r.description)
            for r in sorted(results, key=lambda r: (r.passed, r.asset, r.check))
        ],
    )
    failed = [result for result in results if not result.passed]
    say(f"\n{tenant_id}: {len(results) - len(failed)} of {len(results)} checks passed")
