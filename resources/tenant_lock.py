"""Holds the tenant's lock during writing runs, and marks runs of dead processes as failed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from rag_assets.common.errors import RagAssetsError, TenantLocked
from rag_assets.common.settings import Settings
from rag_assets.resources.own_runs import INSTALLATION_TAG, PARTITION_TAG
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import Workbench
from rag_assets.runtime.liveness import ProcessIdentity, hold_liveness_lock
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.lock import HeldLock, Holder

PROCESS_TAG = "rag_assets/process"
"""Tag with the process that executes a run, on runs that the daemon did not launch."""
WORKER_TAG = "rag_assets/worker"
"""Tag with the process that executes a run, on runs that the daemon launched as forks."""
REASON_TAG = "rag_assets/reason"
"""Tag with the reason why a run was requested, for people."""
_UNFINISHED = (
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)


class TenantLockResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Holds the lock of a run's tenant from the first step to the last."""

    postgres: dg.ResourceDependency[PostgresResource]
    workbench: dg.ResourceDependency[Workbench]
    wait_seconds: float = 600.0
    _held: HeldLock | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Any]:
        """Hold the lock while the run's steps are executed."""
        run, instance, log = context.run, context.instance, context.log
        if run is None or instance is None or PARTITION_TAG not in run.tags:
            raise dg.Failure(
                "the run has no tenant: choose exactly one partition, which is the tenant"
            )
        tenant_id = run.tags[PARTITION_TAG]

        def take_over(former: Holder) -> None:
            fail_abandoned_run(instance, former)

        try:
            with self.postgres.catalog().lock.hold(
                tenant_id,
                Holder.here(f"run of {run.job_name}", run.run_id),
                wait_seconds=self.wait_seconds,
                on_wait=lambda holder: (
                    log.info(f"waiting for the tenant's lock, held by {holder}") if log else None
                ),
                on_takeover=take_over,
            ) as held_lock:
                settings = self.postgres.installation.settings
                fail_abandoned_runs(instance, self.postgres.catalog(), settings, tenant_id)
                self._held = held_lock
                try:
                    yield self
                finally:
                    self._retreat_if_lost(held_lock, tenant_id)
        except RagAssetsError as error:
            raise dg.Failure(f"{error.message}; {error.hint}", allow_retries=False) from None
        finally:
            self._held = None

    def _retreat_if_lost(self, held_lock: HeldLock, tenant_id: str) -> None:
        try:
            held_lock.check()
        except TenantLocked:
            # If the tenant was removed meanwhile, only this run can delete what it wrote.
            self.workbench.retreat(tenant_id)

    def guard(self) -> None:
        """Raise an error if this run no longer holds its tenant's lock."""
        if self._held is None:
            raise dg.Failure("this run does not hold the tenant's lock, so it must not write")
        self._held.check()


def fail_abandoned_run(instance: dg.DagsterInstance, former: Holder) -> bool:
    """Mark the run of a dead process that held a lock as failed, so that the queue can continue.

    Returns:
        whether a run was marked.
    """
    return former.run_id is not None and _fail(instance, former.run_id, str(former))


def _fail(instance: dg.DagsterInstance, run_id: str, process: str) -> bool:
    # The run is read again, because it may have ended normally since it was listed.
    run = instance.get_run_by_id(run_id)
    if run is None or run.status not in _UNFINISHED:
        return False
    instance.report_run_failed(run, message=f"the run's process died: {process}")
    return True


def build_process_tags(settings: Settings) -> dict[str, str]:
    """Return the tags for runs that this process executes, and mark the process as alive.

    Other processes use the tags to find out whether this process is still alive.
    """
    hold_liveness_lock(get_marks_folder(settings))
    return {PROCESS_TAG: str(ProcessIdentity.from_pid(os.getpid()))}


def build_worker_tags(pid: int) -> dict[str, str]:
    """Return the tags for a run that a fork on this machine executes.

    The fork itself marks its process as alive; see hold_liveness_lock.
    """
    return {WORKER_TAG: str(ProcessIdentity.from_pid(pid))}


def get_marks_folder(settings: Settings) -> Path:
    """Return the folder of the marks: files that show which processes of runs are alive."""
    return settings.local / "dagster" / "processes"


def fail_abandoned_runs(
    instance: dg.DagsterInstance, catalog: Catalog, settings: Settings, tenant_id: str | None = None
) -> list[str]:
    """Mark unfinished runs of one tenant or of all tenants as failed if their process is dead.

    A process is dead if its run is recorded as the holder of a lock that is free, or if it ran on
    this machine and no longer exists; a mark shows this for processes in other containers. Without
    this function, the daemon's queue would wait forever for a run whose command was killed.

    Returns:
        the ids of the marked runs.
    """
    failed, marked = [], get_marks_folder(settings)
    tags = {} if tenant_id is None else {PARTITION_TAG: tenant_id}
    row = catalog.installation.read()
    installation = str(row.id) if row else None
    filters = dg.RunsFilter(statuses=list(_UNFINISHED), tags=tags)
    for run in instance.get_runs(filters=filters):
        run_tenant = run.tags.get(PARTITION_TAG)
        owner = run.tags.get(INSTALLATION_TAG)
        if run_tenant is None or owner not in {None, installation}:
            continue
        holder = catalog.lock.holder(run_tenant)
        if holder is not None and holder.run_id == run.run_id:
            # The holder is read again, because a normal release deletes its row before it unlocks.
            is_abandoned = (
                not catalog.lock.is_held(run_tenant) and catalog.lock.holder(run_tenant) == holder
            )
            if is_abandoned and fail_abandoned_run(instance, holder):
                failed.append(run.run_id)
        elif any(
            _has_ended(run.tags.get(tag), marked) for tag in (PROCESS_TAG, WORKER_TAG)
        ) and _fail(instance, run.run_id, "the command or fork that executed it"):
            failed.append(run.run_id)
    return failed


def _has_ended(tag: str | None, marked: Path) -> bool:
    return tag is not None and ProcessIdentity.parse(tag).has_ended(marked)
