"""Updates the catalog's tenants and Dagster's partitions from tenants.yaml."""

import dagster as dg

from rag_assets.declarations import Naming, sensor
from rag_assets.jobs.run_history import delete_partition
from rag_assets.pipeline.tenancy import reconcile_tenants
from rag_assets.resources.own_runs import OwnRuns
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import convert_to_failures


@sensor(
    "tenants",
    (
        "Follows tenants.yaml and the files of agents that it names: new tenants become "
        "partitions, changes take effect, missing tenants are disabled (never purged). Partitions "
        "of removed tenants, and their records in this instance, are deleted when none of their "
        "runs is under way."
    ),
    seconds=30,
)
def tenants_sensor(
    context: dg.SensorEvaluationContext, names: Naming, postgres: PostgresResource, runs: OwnRuns
) -> dg.SensorResult | dg.SkipReason:
    """Update the catalog and the partitions."""
    with convert_to_failures(postgres.installation):
        settings = postgres.installation.settings
        reconciled = reconcile_tenants(postgres.catalog(), settings, postgres.identity())
    for problem in reconciled.problems:
        context.log.warning(problem.advice)
    with convert_to_failures(postgres.installation):
        recorded = runs.list_recorded_tenants(context.instance)
    present = set(context.instance.get_dynamic_partitions(names.partitions_name))
    known = {record.id for record in reconciled.records}
    wanted_ids = {record.id for record in reconciled.records if record.state != "REMOVING"}
    new = sorted(wanted_ids - present)
    deleted = []
    if unwanted := (present | recorded) - wanted_ids:
        with convert_to_failures(postgres.installation):
            # Other partitions may be tenants of another installation in this instance.
            receipts = postgres.catalog().receipts
            removed = (unwanted & known) | receipts.find_removed_tenants(unwanted - known)
            deleted = _delete_histories(context.instance, runs, removed)
    if not new and not deleted:
        if reconciled.problems:  # All other tenants were reconciled nevertheless.
            with convert_to_failures(postgres.installation):
                raise reconciled.problems[0]
        return dg.SkipReason(f"{len(wanted_ids)} tenants, none added or removed")
    requests: list[dg.AddDynamicPartitionsRequest | dg.DeleteDynamicPartitionsRequest] = []
    if new:
        requests.append(names.partitions.build_add_request(new))
    if deleted := [id_ for id_ in deleted if id_ in present]:
        requests.append(names.partitions.build_delete_request(deleted))
    return dg.SensorResult(dynamic_partitions_requests=requests)


def _delete_histories(
    instance: dg.DagsterInstance, own_runs: OwnRuns, removed: set[str]
) -> list[str]:
    """Delete the records of removed tenants; return the tenants with partitions to delete.

    The command that removed a tenant may have used another Dagster instance.
    """
    idle = sorted(removed - own_runs.list_busy_partitions(instance)) if removed else []
    deleted = [id_ for id_ in idle if not own_runs.is_shared_partition(instance, id_)]
    for tenant_id in deleted:
        delete_partition(instance, own_runs, tenant_id)
        own_runs.forget_history(instance, tenant_id)
    return deleted
