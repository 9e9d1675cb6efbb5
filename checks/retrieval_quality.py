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


def build_verdict(found: QualityVerdict, tenant_id: str) -> Verdict:
    """Pass if a new build measures at most the tolerance below the serving build."""
    failed = found.outcome == "fail"
    command = f"; `rag-assets eval {tenant_id} --generation N --against M` shows each question"
    severity: Severity = "ERROR" if failed else "WARN"
    return Verdict(
        passed=found.outcome == "pass",
        description=f"{found.description}{command if failed else ''}",
        compared=(
            *(Compared(f"{one.measure}, at least", one.least, one.new) for one in found.guarded),
            Compared("judged questions asked, at least", found.least, found.questions),
        ),
        columns=("question answered worse", "nDCG@10 of the serving build", "of the new build"),
        offenders=tuple((one.question, one.serving, one.new) for one in found.worse),
        severity=severity,
        notes={"questions left out": len(found.apart)} if found.apart else {},
    )


def build_serving_verdict(found: Evaluation, least: int) -> Verdict:
    """Report the serving build's measures; warn of too few questions and of deleted documents."""
    count, gone = len(found.people.ids), len(found.gone)
    parts = [f"serving build {found.generation}: {_format_means(found)}"] if count else []
    if count < least:
        parts.append(
            f"only {format_count(count, 'judged question')}, and at least {least} are needed: no"
            " build is held back because of its answers"
        )
    if gone:
        parts.append(f"documents that answer {format_count(gone, 'question')} no longer exist")
    return Verdict(
        passed=count >= least and not found.unmeasured,
        description="; ".join(parts),
        compared=(
            Compared("judged questions asked, at least", least, count),
            Compared("questions whose documents are gone", 0, len(found.unmeasured)),
        ),
        columns=("question", "documents that are gone"),
        offenders=tuple((id_, ", ".join(paths)) for id_, paths in found.gone.items()),
        severity="WARN",
        mend="add or replace judged questions with `rag-assets judgements import TENANT FILE`",
        notes=dict(_iter_notes(found)),
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
            describe_missing_questions(tenant_id), least, passed=True
        )
    serving = ctx.catalog.generations.serving(tenant_id)
    if serving is None:
        return _build_verdict_without_questions("no build serves yet", least, passed=True)
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
            f"the questions could not be asked: {error.advice}", least, passed=False
        )


def _find_candidate(ctx: TenantContext, serving: Generation) -> Generation | None:
    """Return the newest complete build that is newer than the serving build."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    waiting = (
        build for build in live if build.state in _COMPLETE and build.number > serving.number
    )
    return max(waiting, key=lambda build: build.number, default=None)


def _build_verdict_without_questions(description: str, least: int, *, passed: bool) -> Verdict:
    return Verdict(
        passed=passed,
        description=description,
        compared=(Compared("judged questions asked, at least", least, 0),),
        severity="WARN",
        mend="`rag-assets eval TENANT` asks them now, or shows why they cannot be asked",
    )


def _format_means(found: Evaluation) -> str:
    return ", ".join(f"{measure} {mean:.3f}" for measure, mean in _collect_means(found).items())


def _collect_means(found: Evaluation) -> Mapping[str, float]:
    estimates = {measure: found.people.estimate(measure) for measure in MEASURES}
    return {
        measure: estimate.mean for measure, estimate in estimates.items() if estimate is not None
    }


def _iter_notes(found: Evaluation) -> Iterator[tuple[str, Cell]]:
    yield from _collect_means(found).items()
    if found.people.judged is not None:
        yield "judged of the first 10", round(found.people.judged, 4)
    if found.unanswerable:
        yield "questions that no document answers", found.unanswerable
