"""Keeps the catalog's tenants and Dagster's partitions in line with tenants.yaml."""

import dagster as dg

from rag_assets.common.settings import Settings
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.tenancy import reconcile_tenants
from resources.stores import PostgresResource
from resources.tenant_lock import PARTITION_TAG
from resources.workbench import clear_failures

UNFINISHED = (
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
)


@dg.sensor(
    name="tenants",
    minimum_interval_seconds=15,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Follows tenants.yaml, and files of agents that it names: new tenants become partitions, "
        "changed ones take effect, missing ones are disabled (never purged). Partitions of removed "
        "tenants go once no run of theirs is under way."
    ),
)
def tenants_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> dg.SensorResult | dg.SkipReason:
    """Bring catalog and partitions up to date."""
    with clear_failures():
        settings = Settings.from_environment()
        found = reconcile_tenants(postgres.catalog(), settings, postgres.identity())
    for problem in found.problems:
        context.log.warning(problem.advice)
    present = set(context.instance.get_dynamic_partitions(tenants_partitions.name or ""))
    wanted = {record.id for record in found.records if record.state != "REMOVING"}
    busy = partitions_under_way(context.instance)
    new = sorted(wanted - present)
    gone = sorted(present - wanted - busy)
    if not new and not gone:
        if found.problems:  # The others were reconciled all the same.
            with clear_failures():
                raise found.problems[0]
        return dg.SkipReason(f"{len(wanted)} tenants, none added or removed")
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if new:
        requests.append(tenants_partitions.build_add_request(new))
    if gone:
        requests.append(tenants_partitions.build_delete_request(gone))
    return dg.SensorResult(dynamic_partitions_requests=requests)


def has_run_under_way(instance: dg.DagsterInstance, tenant_id: str) -> bool:
    """Whether a tenant has a run queued or running."""
    tags = {PARTITION_TAG: tenant_id}
    return bool(instance.get_runs_count(dg.RunsFilter(statuses=list(UNFINISHED), tags=tags)))


def partitions_under_way(instance: dg.DagsterInstance) -> set[str]:
    """Tenants that have a run queued or running."""
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=list(UNFINISHED)))
    return {run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags}
