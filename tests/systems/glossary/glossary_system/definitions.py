"""What Dagster loads of the system."""

import dagster as dg

from glossary_system.tables import lookups
from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Verdict
from rag_assets.partitions import tenants_partitions
from rag_assets.resources.stores import PostgresResource
from rag_assets.resources.workbench import Workbench


@dg.asset(partitions_def=tenants_partitions, deps=["chunks"], group_name="knowledge")
def glossary_terms(
    context: dg.AssetExecutionContext, rag_assets_workbench: Workbench
) -> dg.Output[None]:
    """The terms of a tenant."""
    rows = rag_assets_workbench.postgres.catalog().documents.all(context.partition_key)
    return dg.Output(None, metadata={"terms": len(rows)})


@tenant_check("chunks", "defined_once", "Every term of a glossary is defined once.")
def defined_once(context: CheckContext) -> Verdict:
    """No two documents define one term."""
    rows = context.tenant.catalog.documents.all(context.tenant.ref.id)
    terms = len({row.uri for row in rows})
    compared = Compared("terms", expected=len(rows), actual=terms)
    return Verdict(len(rows) == terms, f"{terms} terms, each defined once", (compared,))


@dg.op
def count_all_terms(context: dg.OpExecutionContext, rag_assets_postgres: PostgresResource) -> int:
    """Count the terms that were looked up."""
    counts = lookups(rag_assets_postgres.catalog().database)
    context.log.info(f"{len(counts)} terms were looked up")
    return len(counts)


@dg.job
def count_terms() -> None:
    """Count the terms that were looked up."""
    count_all_terms()


count_terms_daily = dg.ScheduleDefinition(
    name="count_terms_daily", job=count_terms, cron_schedule="0 5 * * *"
)


@dg.sensor(job=count_terms)
def glossary_lookups_sensor(rag_assets_postgres: PostgresResource) -> dg.SensorResult:
    """Count again when more terms were looked up."""
    total = sum(lookups(rag_assets_postgres.catalog().database).values())
    requests = [dg.RunRequest(run_key=str(total))] if total else []
    return dg.SensorResult(run_requests=requests)
