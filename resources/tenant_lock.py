"""The tenant's lock, held as long as a run that writes, and the end of runs whose holder died."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg
from pydantic import PrivateAttr

from rag_assets.catalog.catalog import Catalog
from rag_assets.catalog.lock import HeldLock, Holder
from rag_assets.errors import RagAssetsError
from resources.stores import PostgresResource

PARTITION_TAG = "dagster/partition"
_UNFINISHED = (dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.STARTING)


class TenantLockResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Holds the lock of the run's tenant from the first step to the last.

    Attributes:
        wait_seconds: how long a run waits for the present holder before it fails.
    """

    postgres: dg.ResourceDependency[PostgresResource]
    wait_seconds: float = 600.0
    _held: HeldLock | None = PrivateAttr(default=None)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Any]:
        """Hold the lock while the run's steps are executed."""
        run, instance, log = context.run, context.instance, context.log
        if run is None or instance is None or PARTITION_TAG not in run.tags:
            raise dg.Failure("this asset belongs to a tenant: choose a partition, one per run")
        tenant_id = run.tags[PARTITION_TAG]

        def take_over(former: Holder) -> None:
            fail_abandoned_run(instance, former)

        try:
            with self.postgres.catalog().lock.hold(
                tenant_id,
                Holder.here(f"run of {run.job_name}", run.run_id),
                wait_seconds=self.wait_seconds,
                on_wait=lambda holder: log.info(f"waiting for {holder}") if log else None,
                on_takeover=take_over,
            ) as held:
                self._held = held
                yield self
        except RagAssetsError as error:
            raise dg.Failure(f"{error.message}; {error.hint}", allow_retries=False) from None
        finally:
            self._held = None

    def guard(self) -> None:
        """Raise when this run no longer holds its tenant's lock."""
        if self._held is None:
            raise dg.Failure("the tenant's lock is not held")
        self._held.check()


def fail_abandoned_run(instance: dg.DagsterInstance, former: Holder) -> bool:
    """Mark the run of a lock's dead holder failed, so that it blocks nobody's queue.

    Returns:
        whether there was such a run.
    """
    run = instance.get_run_by_id(former.run_id) if former.run_id else None
    if run is None or run.status not in _UNFINISHED:
        return False
    instance.report_run_failed(run, message=f"its process died: {former}")
    return True


def fail_abandoned_runs(instance: dg.DagsterInstance, catalog: Catalog) -> list[str]:
    """Mark every unfinished run failed whose tenant's lock its holder no longer holds.

    Without this the queue of the daemon would wait for ever for a run killed on a command line.

    Returns:
        ids of the runs.
    """
    failed = []
    for run in instance.get_runs(filters=dg.RunsFilter(statuses=list(_UNFINISHED))):
        tenant_id = run.tags.get(PARTITION_TAG)
        if tenant_id is None:
            continue
        holder = catalog.lock.holder(tenant_id)
        ours = holder is not None and holder.run_id == run.run_id
        dead = ours and holder is not None and not catalog.lock.is_held(tenant_id)
        if dead and holder is not None and fail_abandoned_run(instance, holder):
            failed.append(run.run_id)
    return failed
