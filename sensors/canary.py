"""The clock of the canary: every embedder is asked once a day."""

import dagster as dg

daily_canary = dg.ScheduleDefinition(
    name="daily_canary",
    job_name="canary",  # it belongs to the checks, which are not for sensors to know
    cron_schedule="30 4 * * *",
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description=(
        "Embeds a few fixed texts with every tenant's embedder, in one run over all tenants, and "
        "tells where a provider changed the model."
    ),
)
