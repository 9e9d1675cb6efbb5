"""measure_quality: measures how well tenants' serving builds answer their judged questions."""

import dagster as dg

from rag_assets.assets.reports import build_quality_report
from rag_assets.checks.tenant_check import refuse_write
from rag_assets.common.errors import BuildNotSearchable, RequestsStopped
from rag_assets.declarations import Naming, job
from rag_assets.jobs.every_tenant import call_for_each_tenant
from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import evaluate_build
from rag_assets.resources.workbench import Workbench, convert_to_failures
from rag_assets.storage.catalog.tenants.table import TenantRecord


class QualityConfig(dg.Config):
    """The tenants to measure.

    Attributes:
        tenants: ids of tenants; by default, all tenants that have judged questions.
    """

    tenants: list[str] | None = None


@job(
    "measure_quality",
    (
        "Measures how well the serving builds answer judged questions, in one run over all tenants "
        "with judged questions, or over the tenants in its configuration."
    ),
    kind="elasticsearch",
)
def measure_tenants(
    context: dg.OpExecutionContext, config: QualityConfig, names: Naming, workbench: Workbench
) -> None:
    """Search for every tenant's judged questions; report the results as retrieval_quality."""
    with convert_to_failures(workbench.installation):
        catalog = workbench.postgres.catalog()
        tenants_with_questions = catalog.judgements.tenants()
        records = [
            record
            for record in catalog.tenants.all()
            if record.id in tenants_with_questions
            and (config.tenants is None or record.id in config.tenants)
        ]

    def measure(record: TenantRecord) -> str | None:
        ctx = workbench.context(record.id, guard=refuse_write, log=context.log.info)
        serving = ctx.catalog.generations.serving(record.id)
        if serving is None:
            return None
        try:
            evaluation = evaluate_build(ctx, serving, AskOptions(ctx.tenant.retrieval.mode))
        except (BuildNotSearchable, RequestsStopped) as error:
            # The tenant's check warns of the error; the run does not fail because of one tenant.
            return f"not measured: {error.advice}"
        report = build_quality_report(names, record.id, evaluation)
        context.log_event(report)
        return report.description

    call_for_each_tenant(context, workbench.installation, records, "measuring quality", measure)
