"""The checks that a new build must pass before it is published, evaluated on that build alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import dagster as dg

from rag_assets.checks.tenant_check import CheckContext, TenantCheck, refuse_write
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import CheckFinding, Judge
from rag_assets.resources.workbench import Workbench
from rag_assets.storage.catalog.builds.generations import Generation


@dataclass(frozen=True)
class ChecksOfBuilds:
    """Creates functions that judge builds by the checks that set `judges_builds`."""

    checks: Sequence[TenantCheck]

    def __call__(self, workbench: Workbench, run_id: str, log: dg.DagsterLogManager) -> Judge:
        """Return the function that judges a build; see PublishJudge."""

        def judge(ctx: TenantContext, build: Generation) -> list[CheckFinding]:
            tenant = replace(ctx, guard=refuse_write)
            context = CheckContext(tenant, run_id, workbench, log, build=build)
            return [_finding(check, context) for check in self.checks if check.judges_builds]

        return judge


def _finding(check: TenantCheck, context: CheckContext) -> CheckFinding:
    # An error is not a verdict: it fails the run, and the next run judges the build again.
    verdict = check.verdict(context)
    return CheckFinding(
        check.full_name,
        passed=verdict.passed,
        description=verdict.description,
        blocks=not verdict.passed and verdict.severity == "ERROR",
    )
