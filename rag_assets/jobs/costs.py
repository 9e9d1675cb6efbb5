"""report_costs: every tenant's spending on embeddings."""

import dagster as dg

from rag_assets.assets.embedding_cost import daily_costs
from rag_assets.common.formatting import counted
from rag_assets.resources.own_runs import RUN_TAGS
from rag_assets.resources.workbench import Workbench, clear_failures
from rag_assets.storage.catalog.usage import today


@dg.op(tags={"kind": "postgres"})
def report_tenant_costs(context: dg.OpExecutionContext, rag_assets_workbench: Workbench) -> None:
    """Report every tenant's spending on embeddings as materializations of embedding_cost."""
    with clear_failures():
        present = {
            r.id
            for r in rag_assets_workbench.postgres.catalog().tenants.all()
            if r.state == "ACTIVE"
        }
        count = 0
        for report in daily_costs(rag_assets_workbench.postgres.catalog().usage, today()):
            if report.partition in present:
                context.log_event(report)
                count += 1
        context.log.info(f"reported the costs of {counted(count, 'tenant')}")


@dg.job(
    name="report_costs",
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description="Reports what every tenant spent on embeddings, in one run over all tenants.",
)
def costs_job() -> None:
    """Report every tenant's spending."""
    report_tenant_costs()
