"""Starts pruning and the report of costs daily, compaction weekly."""

import dagster as dg

from rag_assets.jobs.costs import costs_job
from rag_assets.jobs.upkeep import compact_job, prune_job

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
