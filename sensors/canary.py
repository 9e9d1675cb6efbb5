"""Calls every embedder once a day."""

import dagster as dg

from rag_assets.jobs.canary import canary_job

daily_canary = dg.ScheduleDefinition(
    name="daily_canary",
    job=canary_job,
    cron_schedule="30 4 * * *",
    execution_timezone="UTC",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Embeds a few fixed texts with every tenant's embedder, in one run over all tenants, and "
        "detects where a provider changed the model."
    ),
)
