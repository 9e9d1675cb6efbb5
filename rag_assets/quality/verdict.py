"""The quality gate: decide whether a build answers judged questions worse than the serving one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from rag_assets.common.errors import BuildNotAskable
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import BuildComparison, compare_builds
from rag_assets.quality.measures import NDCG, RECALL_5
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.tenants.model import QualityConfig

Outcome: TypeAlias = Literal["pass", "warn", "fail"]

GUARDED = (NDCG, RECALL_5)
"""The measures that a new build must not lower."""
# A difference that equals the limit except for rounding does not exceed it.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class GuardedMeasure:
    """A measure that a new build must not lower, with its required and actual values."""

    measure: str
    serving: float
    least: float
    """The value that the new build must reach: the serving build's value minus the tenant's
    tolerance."""
    new: float

    @property
    def is_lower(self) -> bool:
        """Return whether the new build is worse by more than the tolerance."""
        return self.new < self.least - _TOLERANCE


@dataclass(frozen=True, slots=True)
class WorseQuestion:
    """A question that the new build answers worse, with its nDCG@10 in both builds."""

    question: str
    serving: float
    new: float


@dataclass(frozen=True, slots=True)
class QualityVerdict:
    """The decision whether a build may replace the serving build."""

    outcome: Outcome
    """The outcome "fail" forbids it; "warn": there are too few questions to forbid it."""
    description: str
    """The finding in one line."""
    questions: int
    least: int
    guarded: tuple[GuardedMeasure, ...] = ()
    """The guarded measures with their required and actual values; empty without a question."""
    worse: tuple[WorseQuestion, ...] = ()
    """Questions that the new build answers worse, the worst first."""
    apart: tuple[str, ...] = ()
    """See BuildComparison."""


def judge_comparison(comparison: BuildComparison, limits: QualityConfig) -> QualityVerdict:
    """Judge a build by how well it answers the questions that people judged.

    It fails if its nDCG@10 or recall@5 is lower than the serving build's by more than the
    tolerance. It cannot fail if there are fewer questions than required. Synthetic questions never
    count.
    """
    count = len(comparison.new.people.ids)
    guarded = tuple(_measure_guarded(comparison, limits.tolerance))
    lower = [measure for measure in guarded if measure.is_lower]
    few = count < limits.least
    outcome: Outcome = "warn" if few else "fail" if lower else "pass"
    return QualityVerdict(
        outcome,
        _describe_verdict(comparison, limits, guarded, few=few),
        count,
        limits.least,
        guarded,
        tuple(_list_worse_questions(comparison)),
        comparison.apart,
    )


def _measure_guarded(comparison: BuildComparison, tolerance: float) -> Iterator[GuardedMeasure]:
    for measure in GUARDED:
        new = comparison.new.people.estimate(measure)
        serving = comparison.serving.people.estimate(measure)
        if new is not None and serving is not None:
            least = max(0.0, round(serving.mean - tolerance, 4))
            yield GuardedMeasure(measure, serving.mean, least, new.mean)


def _list_worse_questions(comparison: BuildComparison) -> list[WorseQuestion]:
    new, serving = (
        build.people.values.get(NDCG, {}) for build in (comparison.new, comparison.serving)
    )
    worse = [
        WorseQuestion(id_, round(serving[id_], 4), round(value, 4))
        for id_, value in new.items()
        if value < serving[id_] - _TOLERANCE
    ]
    return sorted(worse, key=lambda question: (question.new - question.serving, question.question))


def _describe_verdict(
    comparison: BuildComparison,
    limits: QualityConfig,
    guarded: tuple[GuardedMeasure, ...],
    *,
    few: bool,
) -> str:
    builds = f"build {comparison.new.generation}", f"build {comparison.serving.generation}"
    lower = [guard for guard in guarded if guard.is_lower]
    values = ", ".join(
        f"{guard.measure} {guard.new:.3f} against {guard.serving:.3f}" for guard in guarded
    )
    compared = f"{builds[0]} compared with {builds[1]}, which serves: {values}" if values else ""
    if few:
        count = format_count(len(comparison.new.people.ids), "judged question")
        note = f"only {count}, fewer than the required {limits.least}: the build is not held back"
        return f"{note}; {compared}" if compared else note
    if not lower:
        return compared
    margins = ", ".join(
        f"{guard.measure} is {guard.new:.3f}, below {guard.least:.3f}" for guard in lower
    )
    return (
        f"{builds[0]} answers worse than {builds[1]}, which serves: {margins}"
        f" ({values}; tolerance {limits.tolerance:g})"
    )


def judge_build(ctx: TenantContext, new: Generation, serving: Generation) -> QualityVerdict:
    """Judge a build against the serving build, with the tenant's search mode.

    The new build need not be published. Hits are not reranked, because a reranker is not part of a
    build. Errors are as in evaluate_build.
    """
    least = ctx.tenant.quality.least
    if not ctx.catalog.judgements.counts(ctx.ref.id).get(False):
        return QualityVerdict("pass", describe_missing_questions(ctx.ref.id), 0, least)
    try:
        comparison = compare_builds(ctx, new, serving, AskOptions(ctx.tenant.retrieval.mode))
    except BuildNotAskable as error:
        if error.generation != serving.number:
            raise
        note = f"there is nothing to compare with: {error.advice}"
        return QualityVerdict("warn", note, 0, least)
    return judge_comparison(comparison, ctx.tenant.quality)


def describe_missing_questions(tenant_id: str) -> str:
    """Return the message for a tenant without judged questions."""
    return (
        "the tenant has no judged questions, so no build is held back for its answers;"
        f" add some with `rag-assets judgements import {tenant_id} PATH`"
    )
