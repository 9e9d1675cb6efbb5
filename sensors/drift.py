"""Compares all tenants' stores nightly and entry counts every ten minutes; requests repairs."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg

from rag_assets.common.batches import batched
from rag_assets.common.errors import ConfigurationError, RagAssetsError
from rag_assets.declarations import Naming, Schedule, sensor
from rag_assets.jobs.drift import compare_with_catalog, repair_live_index
from rag_assets.pipeline.drift import IndexDifference, find_index_differences
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.resources.workbench import Workbench, convert_to_failures
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant

_COUNTED_AT_ONCE = 50
"""Number of tenants whose entries the same requests count."""
_REPAIR_PAUSE = timedelta(hours=1)
"""Time after a repair during which different counts cause no further repair of the tenant."""

nightly_drift = Schedule(
    "nightly_drift",
    compare_with_catalog,
    "0 2 * * *",
    (
        "Compares every tenant's live index, lake and records, and a share of its vectors and "
        "documents, with the catalog, in one run over all tenants."
    ),
)


@sensor(
    "drift_offenders",
    (
        "Requests a repair of each tenant whose stores or sources differ from the catalog, unless "
        "its `auto_repair` is false."
    ),
    seconds=60,
    job="repair_index",
)
def drift_offenders_sensor(
    context: dg.SensorEvaluationContext, names: Naming, postgres: PostgresResource, runs: OwnRuns
) -> dg.SensorResult:
    """Request a repair for every drift that no repair has followed yet."""
    with convert_to_failures(postgres.installation):
        catalog = postgres.catalog()
        busy = runs.list_busy_partitions(context.instance)
        present = set(context.instance.get_dynamic_partitions(names.partitions_name))
        requests = []
        share = repair_live_index.run_config(names, everything=False)
        for record in catalog.tenants.all():
            if record.state != "ACTIVE" or record.id not in present - busy:
                continue
            drift_events = catalog.events.latest(record.id, kind="drift_found", limit=1)
            if _is_unrepaired(catalog, record.id) and _allows_repair(record):
                key = f"{record.id}/{record.incarnation}/{drift_events[0].id}"
                reason = "its stores or sources differ from the catalog"
                tags = {REASON_TAG: reason, **runs.installation_tags}
                requests.append(
                    dg.RunRequest(partition_key=record.id, run_key=key, tags=tags, run_config=share)
                )
    skip = None if requests else dg.SkipReason("no tenant differs from the catalog")
    return dg.SensorResult(run_requests=requests, skip_reason=skip)


@sensor(
    "lost_entries",
    (
        "Counts the entries of every tenant in a few requests, and records missing indexes and "
        "entries and wrong aliases; `drift_offenders` then requests repairs."
    ),
    seconds=600,
)
def lost_entries_sensor(context: dg.SensorEvaluationContext, workbench: Workbench) -> dg.SkipReason:
    """Record the tenants whose index has more or fewer entries than the catalog records."""
    with convert_to_failures(workbench.installation):
        catalog = workbench.postgres.catalog()
        store = workbench.elasticsearch.store()
        blobs = open_blobs(workbench.installation.settings)
        keeper = CatalogMarkKeeper(catalog, workbench.lake.lake(), blobs, lambda: store)
        records = [record for record in catalog.tenants.all() if record.state == "ACTIVE"]

        def compare(tenants: Sequence[TenantRef]) -> dict[str, list[IndexDifference]]:
            return find_index_differences(catalog, store, keeper, tenants)

        found_differences: dict[str, list[IndexDifference]] = {}
        for batch in batched([record.ref for record in records], _COUNTED_AT_ONCE):
            found_differences |= _compare_all_or_each(compare, batch, context.log.error)
        for record in records:
            # The nightly run or a person decides about a replaced index.
            differences = [d for d in found_differences.get(record.id, ()) if not d.is_replaced]
            texts = [difference.text for difference in differences]
            is_lost = any(difference.is_lost for difference in differences)
            if texts and _may_be_recorded(catalog, record.id, is_immediate=is_lost):
                context.log.warning("; ".join(texts))
                catalog.events.write(record.ref, "drift_found", [{"counts": texts}])
    return dg.SkipReason(
        f"{len(found_differences)} of {len(records)} tenants differ from the catalog"
    )


def _compare_all_or_each(
    compare: Callable[[Sequence[TenantRef]], dict[str, list[IndexDifference]]],
    tenants: Sequence[TenantRef],
    log: Callable[[str], None],
) -> dict[str, list[IndexDifference]]:
    """Compare the indexes of tenants with the catalog; return differences by tenant id.

    All tenants are compared together. If that fails, they are compared one by one, and the errors
    are logged.
    """
    try:
        return compare(tenants)
    except RagAssetsError as error:
        if len(tenants) == 1:
            log(f"{tenants[0].id}: {error.advice}")
            return {}
    differences: dict[str, list[IndexDifference]] = {}
    for tenant in tenants:
        differences |= _compare_all_or_each(compare, [tenant], log)
    return differences


def _is_unrepaired(catalog: Catalog, tenant_id: str) -> bool:
    """Return whether a tenant has drift, and no repair has followed the drift yet."""
    drift_events = catalog.events.latest(tenant_id, kind="drift_found", limit=1)
    repaired = catalog.events.latest(tenant_id, kind="index_repaired", limit=1)
    return bool(drift_events) and (not repaired or repaired[0].id < drift_events[0].id)


def _may_be_recorded(catalog: Catalog, tenant_id: str, *, is_immediate: bool) -> bool:
    """Return whether to record a difference: no repair is pending, and none has just ended.

    Args:
        is_immediate: whether to record the difference even just after a repair.
    """
    if _is_unrepaired(catalog, tenant_id):
        return False
    if is_immediate:
        return True
    repaired = catalog.events.latest(tenant_id, kind="index_repaired", limit=1)
    return not repaired or abs(datetime.now(UTC) - repaired[0].at) > _REPAIR_PAUSE


def _allows_repair(record: TenantRecord) -> bool:
    """Return whether a tenant allows repairs; False if its configuration is not valid."""
    try:
        return Tenant.from_config(record.config).auto_repair
    except ConfigurationError:
        return False
