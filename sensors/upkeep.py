"""Starts pruning and the report of costs daily, compaction weekly; ends interrupted removals."""

import time

import dagster as dg

from rag_assets.jobs.costs import costs_job
from rag_assets.jobs.upkeep import compact_job, end_removals_job, prune_job
from rag_assets.pipeline.removal import interrupted_removals
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import clear_failures

_TRY_AGAIN_SECONDS = 600
"""Time after which a removal that failed, as for a hold, is tried again."""

daily_pruning = dg.ScheduleDefinition(
    name="daily_pruning",
    job=prune_job,
    cron_schedule="0 3 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Prunes documents that are older than their tenant's retention.",
)

weekly_compaction = dg.ScheduleDefinition(
    name="weekly_compaction",
    job=compact_job,
    cron_schedule="0 4 * * 0",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Merges the lake's small files, deletes what is no longer needed, and deletes "
        "what late writers left of removed tenants."
    ),
)

daily_costs = dg.ScheduleDefinition(
    name="daily_costs",
    job=costs_job,
    cron_schedule="10 0 * * *",
    execution_timezone="UTC",  # as caps and days of usage are
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reports what every tenant spent the day before, in one run over all tenants.",
)


@dg.sensor(
    name="removals",
    job=end_removals_job,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Requests a run where the removal of a tenant was begun, and nobody continues it.",
)
def removals_sensor(
    context: dg.SensorEvaluationContext, rag_assets_postgres: PostgresResource
) -> dg.RunRequest | dg.SkipReason:
    """Request a run that ends the removals of tenants that were killed."""
    with clear_failures():
        left = [
            (one.id, one.incarnation) for one in interrupted_removals(rag_assets_postgres.catalog())
        ]
    if not left:
        return dg.SkipReason("no removal of a tenant was interrupted")
    turn = int(time.time() / _TRY_AGAIN_SECONDS)
    return dg.RunRequest(run_key=f"{sorted(left)} {turn}")
