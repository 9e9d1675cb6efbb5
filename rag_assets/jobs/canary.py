"""canary: embeds fixed texts for every tenant, and compares the vectors with the first answers."""

import dagster as dg

from rag_assets.checks import canary as canary_check
from rag_assets.checks.results import to_check_evaluation
from rag_assets.dagster_compat import log_evaluation
from rag_assets.declarations import Naming, job
from rag_assets.pipeline.canary import run_every_canary
from rag_assets.resources.workbench import Workbench, convert_to_failures

_CHECK = canary_check.canary_check


@job(
    "canary",
    "Embeds a few fixed texts with every tenant's embedder, in one run over all tenants, and "
    "compares the vectors with the first vectors.",
)
def probe_embedders(context: dg.OpExecutionContext, names: Naming, workbench: Workbench) -> None:
    """Call every tenant's embedder, and record new and failed results."""
    with convert_to_failures(workbench.installation):
        catalog = workbench.postgres.catalog()
        answered = wrong = 0
        for seen in run_every_canary(catalog, workbench.embedders.embedders(catalog)):
            answered += seen.error is None
            wrong += not seen.passed
            if seen.error is not None:
                context.log.warning(f"{seen.ref.id}: {seen.error}")
            # Unchanged results are not recorded here, because the daily checks record them.
            if seen.is_new or not seen.passed:
                evaluation = to_check_evaluation(
                    _CHECK.key(names), canary_check.build_verdict(seen), seen.ref.id
                )
                log_evaluation(context, evaluation)
        context.log.info(
            f"{answered:,} embedders answered; the vectors of {wrong:,} differ from their first"
            " vectors"
        )
