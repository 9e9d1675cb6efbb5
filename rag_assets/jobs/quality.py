"""measure_quality: how well tenants' serving builds answer their judged questions."""

from typing import NoReturn

import dagster as dg

from rag_assets.assets.retrieval_quality import quality_report
from rag_assets.common.errors import BuildNotAskable, RequestsStopped
from rag_assets.jobs.every_tenant import for_each
from rag_assets.quality.asking import Manner
from rag_assets.quality.evaluation import evaluate
from rag_assets.resources.own_runs import RUN_TAGS
from rag_assets.resources.workbench import Workbench, clear_failures
from rag_assets.storage.catalog.tenants import TenantRecord


class QualityConfig(dg.Config):
    """The tenants to measure.

    Attributes:
        tenants: ids; all tenants that have judged questions by default.
    """

    tenants: list[str] | None = None


@dg.op(tags={"kind": "elasticsearch"})
def measure_tenants(
    context: dg.OpExecutionContext, config: QualityConfig, rag_assets_workbench: Workbench
) -> None:
    """Ask every tenant's judged questions, and report as materializations of retrieval_quality."""
    with clear_failures():
        catalog = rag_assets_workbench.postgres.catalog()
        asked = catalog.judgements.tenants()
        records = [
            record
            for record in catalog.tenants.all()
            if record.id in asked and (config.tenants is None or record.id in config.tenants)
        ]

    def measure(record: TenantRecord) -> str | None:
        ctx = rag_assets_workbench.context(record.id, guard=_refuse_write, log=context.log.info)
        serving = ctx.catalog.generations.serving(record.id)
        if serving is None:
            return None
        try:
            found = evaluate(ctx, serving, Manner(ctx.tenant.retrieval.mode))
        except (BuildNotAskable, RequestsStopped) as error:
            # The tenant's check warns of it; no other tenant's run is red for it.
            return f"not measured: {error.advice}"
        report = quality_report(record.id, found)
        context.log_event(report)
        return report.description

    for_each(context, records, "measuring quality", measure)


@dg.job(
    name="measure_quality",
    tags=RUN_TAGS,
    executor_def=dg.in_process_executor,
    description=(
        "Measures how well tenants' serving builds answer their judged questions, in one run over "
        "all tenants that have any, or over those that its configuration names."
    ),
)
def quality_job() -> None:
    """Ask every tenant's judged questions."""
    measure_tenants()


def _refuse_write() -> NoReturn:
    raise RuntimeError("measuring quality writes nothing of a tenant's documents")
