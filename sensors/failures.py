"""Records failed runs; their tenants are retried after growing delays."""

from datetime import UTC, datetime, timedelta

import dagster as dg

from rag_assets.declarations import Naming, sensor
from rag_assets.resources.own_runs import PARTITION_TAG
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import PROCESS_TAG
from rag_assets.sensors.due import compute_backoff_seconds
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@sensor(
    "run_failures",
    (
        "Records a failed run with its reason in the catalog, so that the tenant is retried after "
        "30 s, then 60 s, and so on up to an hour, instead of at every tick."
    ),
    seconds=30,
    failures_of="sync_tenant",
)
def run_failures_sensor(
    context: dg.RunFailureSensorContext, names: Naming, postgres: PostgresResource
) -> dg.SkipReason:
    """Record the failure for every source of the run's tenant."""
    if PROCESS_TAG in context.dagster_run.tags:
        return dg.SkipReason("a command executed the run and reported the failure itself")
    tenant_id = context.dagster_run.tags.get(PARTITION_TAG)
    catalog = postgres.catalog()
    record = catalog.tenants.find(tenant_id) if tenant_id else None
    if record is None or record.state == "REMOVING":
        return dg.SkipReason("the tenant of the run does not exist")
    last_step = names.step_key("search_index")
    all_done = any(event.step_key == last_step for event in context.get_step_failure_events())
    record_failure(catalog, record, _find_reason(context), all_done=all_done)
    return dg.SkipReason(f"recorded the failure of tenant {record.id}")


def record_failure(catalog: Catalog, record: TenantRecord, message: str, *, all_done: bool) -> None:
    """Record a failed run of a tenant; the run is retried after a growing delay.

    Args:
        all_done: whether the run completed all possible work, for example everything except
            documents without a vector. Then only these documents wait for their next retry, and
            removals and edits do not wait.
    """
    syncs = catalog.syncs.all(record.id)
    for source in Tenant.from_config(record.config).sources:
        attempts = syncs[source.name].attempts if source.name in syncs and not all_done else 0
        retry_at = datetime.now(UTC) + timedelta(seconds=compute_backoff_seconds(attempts))
        catalog.syncs.record_failure(record.ref, source.name, message, retry_at)


def _find_reason(context: dg.RunFailureSensorContext) -> str:
    """Return the first line of the first failed step's message, or of the run's message."""
    messages = [context.failure_event.message]
    for event in context.get_step_failure_events():
        data = event.step_failure_data
        if data.user_failure_data is not None:
            messages.insert(0, data.user_failure_data.description)
            break
    reason = next(
        (line for text in messages if text for line in text.splitlines()), "the run failed"
    )
    return reason[:500]
