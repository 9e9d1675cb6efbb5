"""canary: whether the tenant's embedder still answers as it did when its vectors were made."""

from collections.abc import Iterator

import dagster as dg

from checks.running import checked_tenant, result_of
from checks.verdict import Compared, Verdict
from rag_assets.assets.embeddings import embeddings
from rag_assets.jobs import NO_RUN_RETRIES
from rag_assets.models.embedding.canary import PROBES
from rag_assets.partitions import tenants_partitions
from rag_assets.pipeline.canary import (
    FRESH,
    CanaryResult,
    CanaryTarget,
    run_canary,
    run_every_canary,
)
from resources.workbench import Workbench, clear_failures

NAME = "canary"
_FIRST_WORDS = 40


def judge(seen: CanaryResult) -> Verdict:
    """No probe may have moved further than the limit; one that could not be asked is a warning."""
    moved = [at for at, distance in enumerate(seen.distances) if distance > seen.limit]
    known = len(seen.distances)
    return Verdict(
        passed=seen.passed and seen.error is None,
        description=_description(seen),
        compared=(
            Compared(f"probes that moved by {seen.limit:g} at most", known, known - len(moved)),
        ),
        columns=("probe", "cosine distance"),
        offenders=tuple(
            (f"{PROBES[at][:_FIRST_WORDS]}…", round(seen.distances[at], 6)) for at in moved
        ),
        severity="WARN" if seen.passed else "ERROR",
        notes=dict(_notes(seen)),
    )


@dg.asset_check(
    asset=embeddings,
    name=NAME,
    partitions_def=tenants_partitions,
    description=(
        "A few fixed texts, embedded daily, have the vectors that they had the first time: the "
        "provider did not change the model. The daily job records what is new or wrong; a check "
        "asks again only if the last answer is older than a day."
    ),
)
def canary_check(
    context: dg.AssetCheckExecutionContext, workbench: Workbench
) -> dg.AssetCheckResult:
    """Judge the last answer, asking first if there is none of today."""
    with checked_tenant(context, workbench) as ctx:
        target = CanaryTarget.of(ctx.ref, ctx.tenant, ctx.embedder)
        [seen] = run_canary(ctx.catalog, [target], fresh=FRESH)
        return result_of(judge(seen))


@dg.op
def probe_embedders(context: dg.OpExecutionContext, workbench: Workbench) -> None:
    """Ask every tenant's embedder, and record for each what is new or wrong."""
    with clear_failures():
        catalog = workbench.postgres.catalog()
        asked = wrong = 0
        for seen in run_every_canary(catalog, workbench.embedders.embedders(catalog)):
            asked += seen.error is None
            wrong += not seen.passed
            if seen.error is not None:
                context.log.warning(f"{seen.ref.id}: {seen.error}")
            # One row a tenant and day would be millions a year that say nothing.
            if seen.is_new or not seen.passed:
                # It takes evaluations as well; only its annotation does not say so.
                context.log_event(_evaluation(seen))  # type: ignore[arg-type]
        context.log.info(f"{asked:,} embedders answered, {wrong:,} of them otherwise than before")


@dg.job(
    name="canary",
    tags=NO_RUN_RETRIES,
    description="Embeds the canary's probes for every tenant, in one run over all tenants.",
)
def canary_job() -> None:
    """Ask every tenant's embedder."""
    probe_embedders()


def _evaluation(seen: CanaryResult) -> dg.AssetCheckEvaluation:
    result = result_of(judge(seen))
    return dg.AssetCheckEvaluation(
        asset_key=embeddings.key,
        check_name=NAME,
        passed=result.passed,
        severity=result.severity,
        description=result.description,
        metadata=result.metadata,
        partition=seen.ref.id,
    )


def _description(seen: CanaryResult) -> str:
    if not seen.passed:
        return (
            f"the provider changed the model under us: {seen.embedder_id} answers a fixed text"
            f" {max(seen.distances):.4f} away from what it did, more than {seen.limit:g}; vectors"
            " of before and after do not compare. Give the tenant's embedder a `revision`, today's"
            f" date say, and sync: a new generation is built with the model as it is now;"
            f" `rag-assets plan {seen.ref.id}` shows its price"
        )
    if seen.error is not None:
        return f"the embedder could not be asked: {seen.error}"
    if not seen.distances:
        return "the first answer is stored; later ones are compared with it"
    return f"no probe moved by more than {max(seen.distances):.6f}"


def _notes(seen: CanaryResult) -> Iterator[tuple[str, str | float]]:
    yield "embedder", seen.embedder_id
    if seen.since is not None and seen.at is not None:
        yield "stored", f"{seen.since:%Y-%m-%d %H:%M} UTC"
        yield "asked", f"{seen.at:%Y-%m-%d %H:%M} UTC"
    if seen.distances:
        yield "largest distance", round(max(seen.distances), 6)
    if seen.error is not None:
        yield "not asked now", seen.error
