"""Starts pruning, the canary and the cost report daily, compaction weekly; completes removals."""

import time

import dagster as dg

from rag_assets.declarations import Schedule, sensor
from rag_assets.jobs.canary import probe_embedders
from rag_assets.jobs.upkeep import compact_lake, prune_documents, report_tenant_costs
from rag_assets.pipeline.removal import find_interrupted_removals
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import convert_to_failures

_TRY_AGAIN_SECONDS = 600
"""Seconds until a failed removal, for example because of a hold, is retried."""

daily_pruning = Schedule(
    "daily_pruning",
    prune_documents,
    "0 3 * * *",
    "Deletes documents that are older than their tenant's retention.",
)

weekly_compaction = Schedule(
    "weekly_compaction",
    compact_lake,
    "0 4 * * 0",
    (
        "Merges small files of the lake, deletes unused files, and deletes data that late writers "
        "left of removed tenants."
    ),
)

daily_canary = Schedule(
    "daily_canary",
    probe_embedders,
    "30 4 * * *",
    (
        "Embeds a few fixed texts with every tenant's embedder, in one run over all tenants, and "
        "detects whether a provider changed a model."
    ),
)

daily_costs = Schedule(
    "daily_costs",
    report_tenant_costs,
    "10 0 * * *",
    "Reports every tenant's spending of the day before, in one run over all tenants.",
)


@sensor(
    "removals",
    "Requests a run if the removal of a tenant was interrupted.",
    seconds=60,
    job="end_removals",
)
def removals_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> dg.RunRequest | dg.SkipReason:
    """Request a run that completes interrupted removals of tenants."""
    with convert_to_failures(postgres.installation):
        unfinished_removals = [
            (removal.id, removal.incarnation)
            for removal in find_interrupted_removals(postgres.catalog())
        ]
    if not unfinished_removals:
        return dg.SkipReason("no removal of a tenant was interrupted")
    turn = int(time.time() / _TRY_AGAIN_SECONDS)
    return dg.RunRequest(run_key=f"{sorted(unfinished_removals)} {turn}")
