"""Measures retrieval quality weekly, and after each publication of a build."""

import dagster as dg

from rag_assets.declarations import Naming, Schedule, sensor
from rag_assets.jobs.quality import measure_tenants
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.tenant_lock import REASON_TAG
from rag_assets.resources.workbench import convert_to_failures

weekly_quality = Schedule(
    "weekly_quality",
    measure_tenants,
    "0 6 * * 0",
    (
        "Measures how well serving builds answer judged questions, in one run over all tenants "
        "with judged questions."
    ),
)


@sensor(
    "published_builds",
    (
        "Requests one run that measures the retrieval quality of tenants with judged questions "
        "after a build of theirs was published."
    ),
    seconds=60,
    job="measure_quality",
)
def published_builds_sensor(
    context: dg.SensorEvaluationContext, names: Naming, postgres: PostgresResource
) -> dg.SensorResult:
    """Find publications since the last tick, in one query over all tenants."""
    with convert_to_failures(postgres.installation):
        catalog = postgres.catalog()
        since = int(context.cursor) if context.cursor else None
        newest, tenants = catalog.events.find_tenants_since(since, "generation_published")
        tenants_with_questions = sorted(tenants & catalog.judgements.tenants()) if tenants else []
    if not tenants_with_questions:
        return dg.SensorResult(
            skip_reason=dg.SkipReason("no tenant with judged questions has published a build"),
            cursor=str(newest),
        )
    request = dg.RunRequest(
        run_key=f"{newest}",
        run_config=measure_tenants.run_config(names, tenants=tenants_with_questions),
        tags={REASON_TAG: f"builds of {len(tenants_with_questions):,} tenants were published"},
    )
    return dg.SensorResult(run_requests=[request], cursor=str(newest))
