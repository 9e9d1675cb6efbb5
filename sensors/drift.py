"""Nightly drift detection over all tenants, and a repair run for each offender."""

import dagster as dg

from rag_assets.common.errors import ConfigurationError
from rag_assets.jobs.drift import drift_job, repair_job
from rag_assets.partitions import tenants_partitions
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant
from resources.stores import PostgresResource
from resources.tenant_lock import REASON_TAG
from resources.workbench import clear_failures
from sensors.tenants import partitions_under_way

_SHARE = {"ops": {"repair_live_index": {"config": {"everything": False}}}}

nightly_drift = dg.ScheduleDefinition(
    name="nightly_drift",
    job=drift_job,
    cron_schedule="0 2 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Compares every tenant's live index, its lake and its records, and a share of its vectors "
        "and documents, with the catalog, in one run over all tenants."
    ),
)


@dg.sensor(
    name="drift_offenders",
    job=repair_job,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Starts a repair of each tenant whose stores or sources differ from the catalog, unless "
        "its `auto_repair` is false."
    ),
)
def drift_offenders_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> dg.SensorResult:
    """Request a repair for every failed drift check that no repair followed."""
    with clear_failures():
        catalog = postgres.catalog()
        busy = partitions_under_way(context.instance)
        present = set(context.instance.get_dynamic_partitions(tenants_partitions.name or ""))
        requests = []
        for record in catalog.tenants.all():
            if record.state != "ACTIVE" or record.id not in present - busy:
                continue
            found = catalog.events.latest(record.id, kind="drift_found", limit=1)
            repaired = catalog.events.latest(record.id, kind="index_repaired", limit=1)
            differs = bool(found) and (not repaired or repaired[0].id < found[0].id)
            if differs and _wants_repair(record):
                key = f"{record.id}/{record.incarnation}/{found[0].id}"
                tags = {REASON_TAG: "its stores or sources differ from the catalog"}
                requests.append(
                    dg.RunRequest(
                        partition_key=record.id, run_key=key, tags=tags, run_config=_SHARE
                    )
                )
    skip = None if requests else dg.SkipReason("no tenant differs from the catalog")
    return dg.SensorResult(run_requests=requests, skip_reason=skip)


def _wants_repair(record: TenantRecord) -> bool:
    """Whether a tenant wants repairs; one that cannot be used is left, and holds up no other."""
    try:
        return Tenant.from_config(record.config).auto_repair
    except ConfigurationError:
        return False
