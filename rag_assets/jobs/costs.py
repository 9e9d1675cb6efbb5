"""report_costs: reports every tenant's spending on embeddings."""

import dagster as dg

from rag_assets.assets.reports import iter_daily_costs
from rag_assets.common.formatting import format_count
from rag_assets.declarations import Naming, job
from rag_assets.resources.workbench import Workbench, clear_failures
from rag_assets.storage.catalog.accounts.usage import today


@job(
    "report_costs",
    "Reports every tenant's spending on embeddings, in one run over all tenants.",
    kind="postgres",
)
def report_tenant_costs(
    context: dg.OpExecutionContext, names: Naming, workbench: Workbench
) -> None:
    """Report every tenant's spending on embeddings as materializations of embedding_cost."""
    with clear_failures(workbench.installation):
        present = {r.id for r in workbench.postgres.catalog().tenants.all() if r.state == "ACTIVE"}
        count = 0
        for report in iter_daily_costs(names, workbench.postgres.catalog().usage, today()):
            if report.partition in present:
                context.log_event(report)
                count += 1
        context.log.info(f"reported the costs of {format_count(count, 'tenant')}")
