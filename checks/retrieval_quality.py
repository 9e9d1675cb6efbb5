"""retrieval_quality: verifies that new builds answer judged questions as well as serving builds."""

from collections.abc import Iterator, Mapping

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Cell, Compared, Severity, Verdict
from rag_assets.common.errors import BuildNotSearchable, RequestsStopped
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import (
    Evaluation,
    QualityVerdict,
    describe_missing_questions,
    evaluate_build,
    judge_build,
)
from rag_assets.quality.measures import MEASURES
from rag_assets.storage.catalog.builds.generations import Generation

_COMPLETE = frozenset({"COMPLETE", "HELD"})
"""States of a build that is complete, but does not serve yet."""


def build_verdict(quality: QualityVerdict, tenant_id: str) -> Verdict:
    """Pass if no measure of a new build is worse than the serving build's by over the tolerance."""
    failed = quality.outcome == "fail"
    command = f"; `rag-assets eval {tenant_id} --generation N --against M` shows each question"
    severity: Severity = "ERROR" if failed else "WARN"
    return Verdict(
        passed=quality.outcome == "pass",
        description=f"{quality.description}{command if failed else ''}",
        compared=(
            *(
                Compared(f"{measure.measure}, at least", measure.least, measure.new)
                for measure in quality.guarded
            ),
            Compared("judged questions asked, at least", quality.least, quality.questions),
        ),
        columns=("question answered worse", "nDCG@10 of the serving build", "of the new build"),
        offenders=tuple((judged.question, judged.serving, judged.new) for judged in quality.worse),
        severity=severity,
        notes={"questions left out": len(quality.apart)} if quality.apart else {},
    )


def build_serving_verdict(evaluation: Evaluation, least: int) -> Verdict:
    """Report the serving build's measures; warn of too few questions and of deleted documents."""
    count, missing_documents = len(evaluation.people.ids), len(evaluation.gone)
    parts = [f"serving build {evaluation.generation}: {_format_means(evaluation)}"] if count else []
    if count < least:
        parts.append(
            f"only {format_count(count, 'judged question')}, and at least {least} are needed: no"
            " build is held back because of its answers"
        )
    if missing_documents:
        parts.append(
            f"documents that answer {format_count(missing_documents, 'question')} no longer exist"
        )
    return Verdict(
        passed=count >= least and not evaluation.unmeasured,
        description="; ".join(parts),
        compared=(
            Compared("judged questions asked, at least", least, count),
            Compared("questions whose documents are gone", 0, len(evaluation.unmeasured)),
        ),
        columns=("question", "documents that are gone"),
        offenders=tuple((id_, ", ".join(paths)) for id_, paths in evaluation.gone.items()),
        severity="WARN",
        mend="add or replace judged questions with `rag-assets judgements import TENANT FILE`",
        notes=dict(_iter_notes(evaluation)),
    )


@tenant_check(
    "retrieval_quality",
    "retrieval_quality",
    (
        "A complete build that does not serve yet answers the tenant's judged questions as well as "
        "the serving build: with the same questions and documents, its nDCG@10 and recall@5 are "
        "lower by at most quality.tolerance. With fewer questions than quality.least, the check "
        "warns."
    ),
    judges_builds=True,
)
def retrieval_quality_check(context: CheckContext) -> Verdict:
    """Judge the newest build that does not serve yet, or else measure the serving build."""
    ctx = context.tenant
    tenant_id, least = ctx.ref.id, ctx.tenant.quality.least
    if not ctx.catalog.judgements.count_by_kind(tenant_id).get(False):
        return _build_verdict_without_questions(
            describe_missing_questions(tenant_id), least, is_passed=True
        )
    serving = ctx.catalog.generations.serving(tenant_id)
    if serving is None:
        return _build_verdict_without_questions("no build serves yet", least, is_passed=True)
    try:
        new = context.build or _find_candidate(ctx, serving)
        if new is not None:
            return build_verdict(judge_build(ctx, new, serving), tenant_id)
        return build_serving_verdict(
            evaluate_build(ctx, serving, AskOptions(ctx.tenant.retrieval.mode)), least
        )
    except (BuildNotSearchable, RequestsStopped) as error:
        if context.build is not None:
            raise  # The quality is unknown, so the build is judged again later.
        return _build_verdict_without_questions(
            f"the questions could not be asked: {error.advice}", least, is_passed=False
        )


def _find_candidate(ctx: TenantContext, serving: Generation) -> Generation | None:
    """Return the newest complete build that is newer than the serving build."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    waiting = (
        build for build in live if build.state in _COMPLETE and build.number > serving.number
    )
    return max(waiting, key=lambda build: build.number, default=None)


def _build_verdict_without_questions(description: str, least: int, *, is_passed: bool) -> Verdict:
    return Verdict(
        passed=is_passed,
        description=description,
        compared=(Compared("judged questions asked, at least", least, 0),),
        severity="WARN",
        mend="`rag-assets eval TENANT` asks them now, or shows why they cannot be asked",
    )


def _format_means(evaluation: Evaluation) -> str:
    return ", ".join(
        f"{measure} {mean:.3f}" for measure, mean in _collect_means(evaluation).items()
    )


def _collect_means(evaluation: Evaluation) -> Mapping[str, float]:
    estimates = {measure: evaluation.people.estimate(measure) for measure in MEASURES}
    return {
        measure: estimate.mean for measure, estimate in estimates.items() if estimate is not None
    }


def _iter_notes(evaluation: Evaluation) -> Iterator[tuple[str, Cell]]:
    yield from _collect_means(evaluation).items()
    if evaluation.people.judged is not None:
        yield "judged of the first 10", round(evaluation.people.judged, 4)
    if evaluation.unanswerable:
        yield "questions that no document answers", evaluation.unanswerable
