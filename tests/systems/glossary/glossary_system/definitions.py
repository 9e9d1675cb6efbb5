"""The system's definitions for Dagster."""

import dagster as dg

from glossary_system.tables import lookups
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.declarations import Schedule, asset, job, sensor
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import Workbench


@asset(deps=["chunks"], kinds={"postgres"}, description="The terms of a tenant.")
def glossary_terms(context: dg.AssetExecutionContext, workbench: Workbench) -> dg.Output[None]:
    """Count the terms of a tenant."""
    rows = workbench.postgres.catalog().documents.all(context.partition_key)
    return dg.Output(None, metadata={"terms": len(rows)})


@tenant_check("chunks", "defined_once", "Every term of a glossary is defined once.")
def defined_once(context: CheckContext) -> Verdict:
    """Pass if no two documents define the same term."""
    rows = context.tenant.catalog.documents.all(context.tenant.ref.id)
    terms = len({row.uri for row in rows})
    compared = Compared("terms", expected=len(rows), actual=terms)
    return Verdict(len(rows) == terms, f"{terms} terms, each defined once", (compared,))


@job("count_terms", "Counts the terms that were looked up.")
def count_all_terms(context: dg.OpExecutionContext, postgres: PostgresResource) -> int:
    """Count the terms that were looked up."""
    counts = lookups(postgres.catalog().database)
    context.log.info(f"{len(counts)} terms were looked up")
    return len(counts)


count_terms_daily = Schedule(
    "count_terms_daily", count_all_terms, "0 5 * * *", "Counts the terms daily."
)


@sensor(
    "glossary_lookups_sensor",
    "Counts again when more terms were looked up.",
    seconds=30,
    job="count_terms",
)
def glossary_lookups_sensor(postgres: PostgresResource) -> dg.SensorResult:
    """Request a count when more terms were looked up."""
    total = sum(lookups(postgres.catalog().database).values())
    requests = [dg.RunRequest(run_key=str(total))] if total else []
    return dg.SensorResult(run_requests=requests)
