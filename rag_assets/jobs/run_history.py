"""Deletes runs with all records that Dagster keeps of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import dagster as dg

from rag_assets.common.clock import Clock
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.clock_guard import ClockDoubt, time_for_deletion
from rag_assets.storage.catalog.catalog import Catalog

_AT_ONCE = 1_000


def delete_old_runs(
    catalog: Catalog, instance: dg.DagsterInstance, job_names: Sequence[str], *, days: int
) -> int:
    """Delete the runs of jobs that are older than a limit; returns how many.

    None is deleted while the clock is doubted.
    """
    now = time_for_deletion(catalog, Clock())
    if isinstance(now, ClockDoubt):
        return 0
    before = now - timedelta(days=days)
    run_ids = [
        run.run_id
        for name in job_names
        for run in instance.get_runs(
            filters=dg.RunsFilter(job_name=name, created_before=before), limit=_AT_ONCE
        )
        if run.is_finished
    ]
    delete_runs(instance, run_ids)
    return len(run_ids)


def delete_runs(instance: dg.DagsterInstance, run_ids: Sequence[str]) -> None:
    """Delete runs, their events, and the evaluations of checks in them.

    Dagster's own deletion leaves the evaluations, which are kept apart from the events.
    """
    from dagster._core.storage.event_log import SqlEventLogStorage
    from dagster._core.storage.event_log.schema import AssetCheckExecutionsTable

    for run_id in run_ids:
        instance.delete_run(run_id)
    storage = instance.event_log_storage
    if run_ids and isinstance(storage, SqlEventLogStorage):
        table = AssetCheckExecutionsTable
        with storage.index_connection() as connection:
            connection.execute(table.delete().where(table.c.run_id.in_(list(run_ids))))


def delete_tenant(instance: dg.DagsterInstance, tenant_id: str) -> None:
    """Delete a tenant's partition, and what Dagster recorded of it: events name documents."""
    delete_partition(instance, tenant_id)
    name = tenants_partitions.name or ""
    if instance.has_dynamic_partition(name, tenant_id):
        instance.delete_dynamic_partition(name, tenant_id)


def delete_partition(instance: dg.DagsterInstance, partition: str) -> None:
    """Delete the records of a partition: in its own runs, and in those over all partitions.

    An evaluation of a check names documents; so do its runs' events. Of runs over all partitions,
    the others' events stay.
    """
    from dagster._core.storage.event_log import SqlEventLogStorage
    from dagster._core.storage.event_log.schema import (
        AssetCheckExecutionsTable,
        AssetKeyTable,
        SqlEventLogStorageTable,
    )
    from sqlalchemy import or_, select

    tag = {"dagster/partition": partition}
    run_ids = [run.run_id for run in instance.get_runs(filters=dg.RunsFilter(tags=tag))]
    delete_runs(instance, run_ids)
    storage = instance.event_log_storage
    if not isinstance(storage, SqlEventLogStorage):
        return
    events, checks, assets = SqlEventLogStorageTable, AssetCheckExecutionsTable, AssetKeyTable
    evaluations = select(checks.c.evaluation_event_storage_id).where(
        checks.c.partition == partition, checks.c.evaluation_event_storage_id.is_not(None)
    )
    former = {"last_materialization": None, "last_run_id": None}
    with storage.index_connection() as connection:
        connection.execute(
            events.delete().where(
                or_(events.c.partition == partition, events.c.id.in_(evaluations))
            )
        )
        connection.execute(checks.delete().where(checks.c.partition == partition))
        connection.execute(
            assets.update().where(assets.c.last_run_id.in_(run_ids)).values(**former)
        )
        # A cache of each partition's state, which Dagster rebuilds.
        connection.execute(assets.update().values(cached_status_data=None))
