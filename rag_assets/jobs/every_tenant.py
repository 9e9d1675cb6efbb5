"""Work on every active tenant in one run; a failure of one tenant does not stop the others."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import dagster as dg

from rag_assets.common.errors import TenantGone, TenantLocked
from rag_assets.pipeline.context import TenantContext
from rag_assets.resources.installation import InstallationResource
from rag_assets.resources.workbench import Workbench, build_failure
from rag_assets.storage.catalog.lock import Holder
from rag_assets.storage.catalog.tenants.table import TenantRecord

_WAIT_SECONDS = 60.0


def call_for_each_tenant(
    context: dg.OpExecutionContext,
    installation: InstallationResource,
    records: Iterable[TenantRecord],
    task: str,
    work: Callable[[TenantRecord], str | None],
) -> None:
    """Call a function for each active tenant; fail at the end if it failed for any tenant.

    Args:
        task: name of the work, for the log.
        work: function to call; it returns a line for the log, or None for no line.
    """
    failed = []
    for record in records:
        if record.state != "ACTIVE":
            continue
        try:
            result = work(record)
        except TenantGone:
            continue
        except TenantLocked as error:
            context.log.warning(f"{record.id}: skipped, {error.message}")
        except Exception as error:
            reason = build_failure(error, installation).description
            context.log.error(f"{record.id}: {task}: {reason}")  # noqa: TRY400
            failed.append(record.id)
        else:
            if result is not None:
                context.log.info(f"{record.id}: {result}")
    if failed:
        raise dg.Failure(
            f"{task} failed for {', '.join(failed)}; see the errors in this run's log",
            allow_retries=False,
        )


def call_for_each_locked_tenant(
    context: dg.OpExecutionContext,
    workbench: Workbench,
    task: str,
    work: Callable[[TenantContext], str],
) -> None:
    """Call a function for each active tenant under its lock; skip a tenant that is locked."""

    def work_locked(record: TenantRecord) -> str:
        with hold_tenant_lock(context, workbench, record.id, task) as ctx:
            return work(ctx)

    records = workbench.postgres.catalog().tenants.all()
    call_for_each_tenant(context, workbench.installation, records, task, work_locked)


@contextmanager
def hold_tenant_lock(
    context: dg.OpExecutionContext, workbench: Workbench, tenant_id: str, task: str
) -> Iterator[TenantContext]:
    """Hold a tenant's lock, and yield the tenant's context.

    Raises:
        TenantLocked: another holder did not release the lock within a minute.
    """
    lock = workbench.postgres.catalog().lock
    holder = Holder.here(task, context.run.run_id)
    with lock.hold(tenant_id, holder, wait_seconds=_WAIT_SECONDS) as held_lock:
        yield workbench.context(tenant_id, guard=held_lock.check, log=context.log.info)
