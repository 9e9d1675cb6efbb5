"""Checks of tenants: each has an asset, a name, and a function that returns a verdict.

`tenant_check` declares a check. The registry collects the checks of all modules, so a new module
adds its check to the jobs, the daily evaluation and the UI.

Annotations are evaluated in this module, because Dagster does not accept a string as the annotation
of a context.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, NoReturn, Self, TypeAlias

import dagster as dg

from rag_assets.checks.results import to_check_result
from rag_assets.checks.verdict import Verdict
from rag_assets.common.errors import BuildNotWritable, TenantLocked
from rag_assets.declarations import Naming
from rag_assets.pipeline.context import DailyShare, TenantContext
from rag_assets.pipeline.generations import CheckFinding, Judge
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.workbench import (
    SKIPPED,
    SkippedTenant,
    Workbench,
    build_failure,
    convert_to_failures,
)
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.journal.check_results import CheckResult
from rag_assets.storage.catalog.lock import Holder

_WAIT_SECONDS = 60.0

DEEP_TAG = "rag_assets/deep"
"""Tag of runs that compare everything at once, instead of in shares over several days."""


@dataclass(frozen=True)
class CheckContext:
    """The context of a check of one tenant.

    Attributes:
        tenant: the tenant and its stores, for reading; a write raises an error.
        workbench: creates contexts that may write.
        deep: whether to compare everything at once, instead of in shares over several days.
        nightly: whether the nightly comparison evaluates the check; the check then counts all
            entries, and reads only a share of them.
        build: the only build to check, before its publication; the tenant is then configured for
            this build. None checks all builds.
    """

    tenant: TenantContext
    run_id: str
    workbench: Workbench
    log: dg.DagsterLogManager
    deep: bool = False
    nightly: bool = False
    build: Generation | None = None

    @cached_property
    def of_build(self) -> TenantContext:
        """Return the tenant, configured for the checked build or else for the serving build."""
        if self.build is not None:
            return self.tenant
        serving = self.tenant.catalog.generations.serving(self.tenant.ref.id)
        try:
            return self.tenant if serving is None else self.tenant.for_build(serving)
        except BuildNotWritable:
            return self.tenant

    @property
    def share(self) -> DailyShare:
        """Return the share of the data that is compared today; all of it for a deep check."""
        tenant = self.tenant
        return DailyShare(1 if self.deep else tenant.tenant.drift.days, tenant.clock.now().date())

    @contextmanager
    def exclude_writers(self, task: str) -> Iterator[TenantContext | None]:
        """Keep other processes from writing for the tenant, and yield the tenant meanwhile.

        Yields None if another process keeps writing, and if a single build is checked.
        """
        with ExitStack() as stack:
            try:
                tenant = stack.enter_context(self.locked(task)) if self.build is None else None
            except TenantLocked:
                tenant = None
            yield tenant

    @property
    def slice_id(self) -> str:
        """Return the id of the run whose slice is checked; "" to check all documents of `build`."""
        return "" if self.build is not None else self.run_id

    @classmethod
    def from_run(
        cls, workbench: Workbench, tenant_id: str, run: dg.DagsterRun, log: dg.DagsterLogManager
    ) -> Self:
        """Return the context of a tenant, for a run that evaluates checks."""
        tenant = workbench.context(tenant_id, guard=refuse_write, log=log.info)
        # A separate check finds lost or damaged files of the lake, so they do not fail other
        # checks.
        tenant = replace(tenant, lake=tenant.lake.readable())
        return cls(tenant, run.run_id, workbench, log, deep=run.tags.get(DEEP_TAG) == "true")

    @contextmanager
    def locked(self, task: str) -> Iterator[TenantContext]:
        """Hold the tenant's lock, and yield the tenant for writing while it is held.

        Raises:
            TenantLocked: another holder did not release the lock in time, or the lock was lost.
        """
        tenant_id, lock = self.tenant.ref.id, self.tenant.catalog.lock
        present = lock.holder(tenant_id)
        # A run of the whole pipeline already holds the lock, until the run ends.
        own = present is not None and present.run_id == self.run_id
        holder = Holder.here(task, self.run_id)
        with lock.hold(tenant_id, holder, wait_seconds=0.0 if own else _WAIT_SECONDS) as held_lock:
            yield self.workbench.context(tenant_id, guard=held_lock.check, log=self.log.info)

    def has_other_writer(self) -> bool:
        """Return whether another run writes for the tenant; then differences may be temporary."""
        lock, tenant_id = self.tenant.catalog.lock, self.tenant.ref.id
        holder = lock.holder(tenant_id)
        if holder is None or holder.run_id == self.run_id:
            return False
        return lock.is_held(tenant_id)


@dataclass(frozen=True)
class TenantCheck:
    """A declared check.

    Attributes:
        asset, name: key of the check, under which its history is stored; it must not change.
        description: condition under which the check passes, for its page.
        job: name of the job that evaluates the check for one tenant.
        with_syncs: whether every sync also evaluates the check.
        judges_builds: whether a failure with severity ERROR prevents the publication of a build.
        nightly: whether the nightly comparison, not the daily run, evaluates the check for all
            tenants; the check then reads only a share.
        repairable: whether a repair resolves the check's findings.
    """

    asset: str
    name: str
    description: str
    verdict: Callable[[CheckContext], Verdict]
    job: Literal["check_tenant", "expectations"] = "check_tenant"
    with_syncs: bool = False
    judges_builds: bool = False
    nightly: bool = False
    repairable: bool = False

    def key(self, names: Naming) -> dg.AssetCheckKey:
        """Return the check's key in Dagster."""
        return dg.AssetCheckKey(names.asset_key(self.asset), self.name)

    @property
    def full_name(self) -> str:
        """Return the check's key as one word, such as "search_index.drift"."""
        return f"{self.asset}.{self.name}"

    def build_result(self, verdict: Verdict) -> CheckResult:
        """Return the result that the catalog stores for a verdict."""
        return CheckResult(
            self.asset, self.name, verdict.passed, verdict.severity, verdict.description
        )

    def build_error_result(
        self, error: Exception, installation: InstallationResource
    ) -> CheckResult:
        """Return the result that the catalog stores for an evaluation that raised an error."""
        return CheckResult(
            self.asset, self.name, error=build_failure(error, installation).description
        )

    def build_spec(self, names: Naming) -> dg.AssetCheckSpec:
        """Return the check's specification for Dagster."""
        return dg.AssetCheckSpec(
            self.name,
            asset=names.asset_key(self.asset),
            description=self.description,
            partitions_def=names.partitions,
        )

    def evaluate(self, context: CheckContext) -> Verdict:
        """Evaluate the check for a tenant, and record the outcome or the error in the catalog."""
        ctx = context.tenant
        in_sync = ctx.catalog.syncs.find_slice(ctx.ref.id, context.run_id) is not None
        try:
            verdict = self.verdict(context)
        except Exception as error:
            outcome = self.build_error_result(error, context.workbench.installation)
            ctx.catalog.check_results.record(ctx.ref, [outcome], first=not in_sync)
            raise
        ctx.catalog.check_results.record(ctx.ref, [self.build_result(verdict)], first=not in_sync)
        return verdict


LoadedCheck: TypeAlias = TenantCheck | dg.AssetChecksDefinition
"""A check of the core or of a system: one of our declarations, or a Dagster definition."""


def build_checks(checks: Sequence[TenantCheck], names: Naming) -> list[dg.AssetChecksDefinition]:
    """Return Dagster's definitions of checks; the checks of one asset are one step.

    A run evaluates the selected checks for its partition. An error in a check does not stop the
    other checks of its step, and fails the step at its end.
    """
    by_asset: dict[str, dict[dg.AssetCheckKey, TenantCheck]] = {}
    for check in checks:
        by_asset.setdefault(check.asset, {})[check.key(names)] = check
    return [_build_checks_definition(asset, by_key, names) for asset, by_key in by_asset.items()]


def _build_checks_definition(
    asset: str, checks: Mapping[dg.AssetCheckKey, TenantCheck], names: Naming
) -> dg.AssetChecksDefinition:
    resource = names.resource("workbench")

    @dg.multi_asset_check(
        specs=[check.build_spec(names) for check in checks.values()],
        name=f"{names.step_key(asset)}_checks",
        description=f"Evaluates the checks of {asset}.",
        can_subset=True,
        required_resource_keys={resource},
    )
    def evaluate(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        workbench: Workbench = getattr(context.resources, resource)
        installation = workbench.installation
        try:
            with convert_to_failures(installation):
                tenant = CheckContext.from_run(
                    workbench, context.partition_key, context.run, context.log
                )
        except SkippedTenant as skipped:
            for key in sorted(context.selected_asset_check_keys):
                yield _skip_check(key, skipped.reason)
            return
        errors: dict[str, Exception] = {}
        for key, check in checks.items():
            if key not in context.selected_asset_check_keys:
                continue
            try:
                with convert_to_failures(installation):
                    result = to_check_result(check.evaluate(tenant), key)
            except Exception as error:
                errors[key.name] = error
            else:
                yield result
        if errors:
            first = next(iter(errors.values()))
            reason = build_failure(first, installation).description
            raise dg.Failure(
                f"not evaluated: {', '.join(errors)}\n{reason}", allow_retries=False
            ) from first

    return evaluate


def _skip_check(key: dg.AssetCheckKey, reason: str) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key=key.asset_key,
        check_name=key.name,
        passed=True,
        description=f"skipped: the tenant is {reason}",
        metadata={SKIPPED: reason},
    )


def list_check_keys(check: LoadedCheck, names: Naming) -> Sequence[dg.AssetCheckKey]:
    """Return a check's keys in Dagster."""
    return [check.key(names)] if isinstance(check, TenantCheck) else [*check.check_keys]


def get_job_name(check: LoadedCheck) -> str:
    """Return the plain name of the job that evaluates a check for one tenant."""
    return check.job if isinstance(check, TenantCheck) else "check_tenant"


def tenant_check(
    asset: str,
    name: str,
    description: str,
    *,
    job: Literal["check_tenant", "expectations"] = "check_tenant",
    with_syncs: bool = False,
    judges_builds: bool = False,
    nightly: bool = False,
    repairable: bool = False,
    against_catalog: bool = False,
) -> Callable[[Callable[[CheckContext], Verdict]], TenantCheck]:
    """Declare the decorated function as a check; see TenantCheck.

    Args:
        against_catalog: whether the check assumes that the catalog is right. Such a check compares
            nothing while the catalog may have been restored from an earlier dump.
    """

    def declare(verdict: Callable[[CheckContext], Verdict]) -> TenantCheck:
        def judge(context: CheckContext) -> Verdict:
            if against_catalog and not may_delete(context.tenant):
                return _NOT_COMPARED.for_tenant(context.tenant.ref.id)
            return verdict(context).for_tenant(context.tenant.ref.id)

        return TenantCheck(
            asset,
            name,
            description,
            judge,
            job=job,
            with_syncs=with_syncs,
            judges_builds=judges_builds,
            nightly=nightly,
            repairable=repairable,
        )

    return declare


_NOT_COMPARED = Verdict(
    passed=False,
    description="not compared: the catalog was restored from an earlier state; see the check"
    " `catalog`",
    compared=(),
    severity="WARN",
    mend="run `rag-assets sync TENANT --accept-catalog` to continue with this catalog",
)


def refuse_write() -> NoReturn:
    """Raise an error; as the guard of a context, this prevents writes without the tenant's lock."""
    raise RuntimeError("hold the tenant's lock to write; in a check, with CheckContext.locked")


@dataclass(frozen=True)
class BuildJudgeFactory:
    """Creates functions that judge builds by the checks that set `judges_builds`."""

    checks: Sequence[TenantCheck]

    def __call__(self, workbench: Workbench, run_id: str, log: dg.DagsterLogManager) -> Judge:
        """Return the function that judges a build; see PublishJudge."""

        def judge(ctx: TenantContext, build: Generation) -> list[CheckFinding]:
            tenant = replace(ctx, guard=refuse_write)
            context = CheckContext(tenant, run_id, workbench, log, build=build)
            return [_judge_build(check, context) for check in self.checks if check.judges_builds]

        return judge


def _judge_build(check: TenantCheck, context: CheckContext) -> CheckFinding:
    # An error is not a verdict: it fails the run, and the next run judges the build again.
    verdict = check.verdict(context)
    return CheckFinding(
        check.full_name,
        passed=verdict.passed,
        description=verdict.description,
        blocks=not verdict.passed and verdict.severity == "ERROR",
    )
