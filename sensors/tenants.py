"""Keeps the catalog's tenants and Dagster's partitions in line with tenants.yaml."""

import dagster as dg

from rag_assets.common.settings import Settings
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.tenancy import reconcile_tenants
from resources.own_runs import OwnRuns
from resources.stores import PostgresResource
from resources.workbench import clear_failures


@dg.sensor(
    name="tenants",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description=(
        "Follows tenants.yaml, and files of agents that it names: new tenants become partitions, "
        "changed ones take effect, missing ones are disabled (never purged). Partitions of removed "
        "tenants go once no run of theirs is under way."
    ),
)
def tenants_sensor(
    context: dg.SensorEvaluationContext,
    rag_assets_postgres: PostgresResource,
    rag_assets_runs: OwnRuns,
) -> dg.SensorResult | dg.SkipReason:
    """Bring catalog and partitions up to date."""
    with clear_failures():
        settings = Settings.from_environment()
        found = reconcile_tenants(
            rag_assets_postgres.catalog(), settings, rag_assets_postgres.identity()
        )
    for problem in found.problems:
        context.log.warning(problem.advice)
    present = set(context.instance.get_dynamic_partitions(tenants_partitions.name or ""))
    removed = {record.id for record in found.records if record.state == "REMOVING"}
    wanted = {record.id for record in found.records} - removed
    busy = rag_assets_runs.partitions_under_way(context.instance) if removed else set()
    new = sorted(wanted - present)
    # What the catalog does not know may be a tenant of another installation in this instance.
    gone = sorted((present & removed) - busy)
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
