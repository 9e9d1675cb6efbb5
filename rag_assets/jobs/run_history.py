"""Deletes this installation's runs, with all records that Dagster keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from rag_assets.common.clock import Clock
from rag_assets.dagster_compat import delete_evaluations, delete_partition_records
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.resources.own_runs import PARTITION_TAG, OwnRuns
from rag_assets.storage.catalog.catalog import Catalog

_BATCH_RUNS = 1_000


def delete_old_runs(
    catalog: Catalog,
    instance: dg.DagsterInstance,
    own_runs: OwnRuns,
    job_names: Sequence[str],
    *,
    days: int,
) -> int:
    """Delete our runs of these jobs that are older than a number of days; return their number.

    No run is deleted while the clock may be wrong.
    """
    now = get_deletion_time(catalog, Clock())
    if isinstance(now, ClockDoubt):
        return 0
    before = now - timedelta(days=days)
    old = [
        run
        for name in job_names
        for run in instance.get_runs(
            filters=dg.RunsFilter(job_name=name, created_before=before), limit=_BATCH_RUNS
        )
        if run.is_finished
    ]
    run_ids = [run.run_id for run in own_runs.select_exclusive_runs(instance, old)]
    delete_runs(instance, run_ids)
    return len(run_ids)


def delete_runs(instance: dg.DagsterInstance, run_ids: Sequence[str]) -> None:
    """Delete runs, their events, and the evaluations of checks in them.

    Dagster's own deletion of a run leaves the evaluations, which are stored separately.
    """
    for run_id in run_ids:
        instance.delete_run(run_id)
    delete_evaluations(instance, run_ids)


def delete_tenant(instance: dg.DagsterInstance, own_runs: OwnRuns, tenant_id: str) -> None:
    """Delete a tenant's partition and all records of it in a Dagster instance.

    The records contain names of documents.
    """
    # The namings are derived from runs, so they are read before the last run is deleted.
    namings = own_runs.list_namings(instance)
    delete_partition(instance, own_runs, tenant_id)
    own_runs.forget_history(instance, tenant_id)
    for names in namings:
        if instance.has_dynamic_partition(names.partitions_name, tenant_id):
            instance.delete_dynamic_partition(names.partitions_name, tenant_id)


def delete_partition(instance: dg.DagsterInstance, own_runs: OwnRuns, partition: str) -> None:
    """Delete the runs of a partition of our assets, and its records in other runs.

    Evaluations of checks and events of runs name documents. Records of other installations, and of
    a team's own assets with a partition of the same name, are kept.
    """
    asset_keys = {
        key
        for naming in own_runs.list_namings(instance)
        for key in own_runs.list_asset_keys(naming)
    }
    runs = instance.get_runs(filters=dg.RunsFilter(tags={PARTITION_TAG: partition}))
    run_ids = [run.run_id for run in own_runs.select_exclusive_runs(instance, runs)]
    delete_runs(instance, run_ids)
    delete_partition_records(
        instance,
        partition,
        asset_keys,
        run_ids,
        lambda run_ids: _list_runs_of_installation(instance, own_runs, run_ids),
    )


def _list_runs_of_installation(
    instance: dg.DagsterInstance, own_runs: OwnRuns, run_ids: Sequence[str]
) -> list[str]:
    """Return the ids of the runs in which this installation's code ran."""
    if not run_ids:
        return []
    runs = instance.get_runs(filters=dg.RunsFilter(run_ids=list(run_ids)))
    return [run.run_id for run in own_runs.select_runs_of_installation(instance, runs)]
