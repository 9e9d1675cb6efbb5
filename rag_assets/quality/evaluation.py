"""Evaluate how well builds answer judged questions, and judge a new build: the quality gate."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from rag_assets.common.errors import (
    BuildNotSearchable,
    ConfigurationError,
    IndexInconsistent,
    RequestRefused,
)
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import Asker, AskOptions, AskResult
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.measures import (
    DEPTH,
    MEASURES,
    NDCG,
    RECALL_5,
    MeanDifference,
    MeanEstimate,
    Values,
    compute_judged_share,
    compute_measures,
    estimate_difference,
    estimate_mean,
)
from rag_assets.quality.store import (
    Documents,
    find_judged_documents,
    limit_judgements,
    read_questions,
)
from rag_assets.search.model import MAX_TOP_K, Hit
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.tenants.model import QualityConfig

_DOCUMENT_TOP_K = 50
"""Number of passages that are read when documents are ranked, since the first ten may belong to one
document."""

HitsByQuestion = Mapping[str, Sequence[Hit]]
"""Hits by question id."""


@dataclass(frozen=True, slots=True)
class MeasuredPart:
    """Measures of rankings, either for questions that people judged or for synthetic questions."""

    values: Values = field(default_factory=dict)
    """Values by measure, then by question id."""
    judged: float | None = None
    """The share of the first ten hits that were judged, 0 to 1; None without hits."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the ids of the measured questions."""
        return tuple(self.values.get(MEASURES[0], ()))

    def estimate(self, measure: str) -> MeanEstimate | None:
        """Return the mean of a measure, with its 95 % interval; None without a question."""
        return estimate_mean(self.values[measure]) if self.ids else None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Measures of one build's answers to the judged questions."""

    generation: int
    embedder_id: str
    manner: AskOptions
    people: MeasuredPart
    """Measures for the questions that people judged."""
    synthetic: MeasuredPart
    """Measures for the questions that were made from headings."""
    gone: Mapping[str, tuple[str, ...]]
    """By question id, paths in judgements that match no present document."""
    unmeasured: tuple[str, ...]
    """Ids of questions whose answers are only in documents that are gone."""
    unanswerable: int
    """Number of questions without an answer in the documents."""
    unranked: int = 0
    embedded: int = 0


@dataclass(frozen=True, slots=True)
class BuildComparison:
    """The evaluations of two builds with the same questions and the same document versions."""

    new: Evaluation
    serving: Evaluation
    apart: tuple[str, ...]
    """Ids of questions that were left out, since the builds have different versions of all
    documents that answer them."""

    def difference(self, measure: str) -> MeanDifference | None:
        """Return the mean difference of a measure, new minus serving; None without a question."""
        ours, theirs = self.new.people, self.serving.people
        if not ours.ids:
            return None
        return estimate_difference(ours.values[measure], theirs.values[measure])


def evaluate_build(ctx: TenantContext, generation: Generation, manner: AskOptions) -> Evaluation:
    """Search a build for every judged question of its tenant, and measure the hits.

    Raises:
        BuildNotSearchable: a build cannot be searched until a person acts.
        RequestsStopped: questions could not be embedded: a cap is reached, or the provider is
            unavailable.
        ServiceUnavailable: a server does not answer.
    """
    questions = _JudgedQuestions.read(ctx)
    ask_result = _ask(Asker(ctx), generation, questions.asked, manner)
    return questions.build_evaluation(generation, manner, ask_result, questions.present)


def compare_builds(
    ctx: TenantContext, new: Generation, serving: Generation, manner: AskOptions
) -> BuildComparison:
    """Evaluate two builds by the documents that have the same version in both."""
    questions, asker = _JudgedQuestions.read(ctx), Asker(ctx)
    builds = (new, serving)
    ask_results = [_ask(asker, build, questions.asked, manner) for build in builds]
    same = _find_documents_in_both(ctx, new, serving, questions, ask_results)
    if short := [
        question for question in questions.asked if _needs_more_hits(question, ask_results, same)
    ]:
        deeper = [asker.ask(build, short, manner, top_k=MAX_TOP_K) for build in builds]
        ask_results = [_join_results(*pair) for pair in zip(ask_results, deeper, strict=True)]
        same = _find_documents_in_both(ctx, new, serving, questions, ask_results)
    common_questions = limit_judgements(questions.all, questions.documents, same)
    remaining_ids = {question.id for question in common_questions if question.answerable}
    apart = tuple(question.id for question in questions.asked if question.id not in remaining_ids)
    ours, theirs = (
        questions.build_evaluation(build, manner, _filter_hits(result, same), common_questions)
        for build, result in zip(builds, ask_results, strict=True)
    )
    return BuildComparison(ours, theirs, apart)


@dataclass(frozen=True, slots=True)
class _JudgedQuestions:
    """A tenant's judged questions."""

    all: Sequence[JudgedQuestion]
    documents: Documents
    """The documents that their judgements refer to."""
    present: Sequence[JudgedQuestion]
    """The questions with only their judgements of present documents."""

    @classmethod
    def read(cls, ctx: TenantContext) -> _JudgedQuestions:
        """Read the questions of a tenant."""
        found = read_questions(ctx.catalog, ctx.ref.id)
        documents = find_judged_documents(ctx.catalog, ctx.ref.id, found)
        return cls(found, documents, limit_judgements(found, documents))

    @property
    def asked(self) -> list[JudgedQuestion]:
        """Return the questions that at least one present document answers."""
        return [question for question in self.present if question.answerable]

    def build_evaluation(
        self,
        generation: Generation,
        manner: AskOptions,
        result: AskResult,
        judged: Sequence[JudgedQuestion],
    ) -> Evaluation:
        """Return the measures of a build's hits; only the judgements in `judged` count."""
        measured = [question for question in judged if question.answerable]
        answered = {question.id for question in self.asked}
        answerable = [question.id for question in self.all if question.answerable]
        return Evaluation(
            generation.number,
            generation.embedder_id,
            manner,
            _measure_part(
                [question for question in measured if not question.synthetic], result.hits
            ),
            _measure_part([question for question in measured if question.synthetic], result.hits),
            self._find_gone_paths(),
            tuple(id_ for id_ in answerable if id_ not in answered),
            len(self.all) - len(answerable),
            result.unranked,
            result.embedded,
        )

    def _find_gone_paths(self) -> dict[str, tuple[str, ...]]:
        missing_paths = {
            question.id: tuple(
                dict.fromkeys(j.path for j in question.relevant if j.path not in self.documents)
            )
            for question in self.all
        }
        return {id_: paths for id_, paths in missing_paths.items() if paths}


def _measure_part(
    questions: Sequence[JudgedQuestion], hits_by_question: HitsByQuestion
) -> MeasuredPart:
    if not questions:
        return MeasuredPart()
    return MeasuredPart(
        compute_measures(questions, hits_by_question),
        compute_judged_share(questions, hits_by_question),
    )


def _ask(
    asker: Asker, generation: Generation, questions: Sequence[JudgedQuestion], manner: AskOptions
) -> AskResult:
    passages = [question for question in questions if not question.is_of_documents]
    documents = [question for question in questions if question.is_of_documents]
    try:
        return _join_results(
            asker.ask(generation, passages, manner, top_k=DEPTH),
            asker.ask(generation, documents, manner, top_k=_DOCUMENT_TOP_K),
        )
    except (ConfigurationError, RequestRefused, IndexInconsistent) as error:
        raise BuildNotSearchable(generation.number, error) from error


def _join_results(first: AskResult, second: AskResult) -> AskResult:
    """Combine two results; if a question is in both, the second result's hits are used."""
    return AskResult(
        {**first.hits, **second.hits},
        first.unranked + second.unranked,
        first.embedded + second.embedded,
    )


def _find_documents_in_both(
    ctx: TenantContext,
    new: Generation,
    serving: Generation,
    questions: _JudgedQuestions,
    results: Iterable[AskResult],
) -> set[str]:
    """Return the ids of the found or judged documents that have the same version in both builds."""
    ids = {hit.document_id for result in results for hits in result.hits.values() for hit in hits}
    ids |= {named.document_id for document in questions.documents.values() for named in document}
    return ctx.catalog.judgements.find_in_both(ctx.ref.id, new.number, serving.number, ids)


def _needs_more_hits(
    question: JudgedQuestion, results: Iterable[AskResult], same: Container[str]
) -> bool:
    """Return whether a question needs more hits, because a hit's document is not in `same`."""
    return any(
        hit.document_id not in same for result in results for hit in result.hits[question.id]
    )


def _filter_hits(result: AskResult, same: Container[str]) -> AskResult:
    hits = {
        id_: [hit for hit in question_hits if hit.document_id in same]
        for id_, question_hits in result.hits.items()
    }
    return replace(result, hits=hits)


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
    guarded = tuple(_iter_guarded_measures(comparison, limits.tolerance))
    lower = [measure for measure in guarded if measure.is_lower]
    is_inconclusive = count < limits.least
    outcome: Outcome = "warn" if is_inconclusive else "fail" if lower else "pass"
    return QualityVerdict(
        outcome,
        _describe_verdict(comparison, limits, guarded, is_inconclusive=is_inconclusive),
        count,
        limits.least,
        guarded,
        tuple(_list_worse_questions(comparison)),
        comparison.apart,
    )


def _iter_guarded_measures(
    comparison: BuildComparison, tolerance: float
) -> Iterator[GuardedMeasure]:
    for measure in GUARDED:
        new = comparison.new.people.estimate(measure)
        serving = comparison.serving.people.estimate(measure)
        if new is not None and serving is not None:
            minimum = max(0.0, round(serving.mean - tolerance, 4))
            yield GuardedMeasure(measure, serving.mean, minimum, new.mean)


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
    is_inconclusive: bool,
) -> str:
    builds = f"build {comparison.new.generation}", f"build {comparison.serving.generation}"
    lower = [guard for guard in guarded if guard.is_lower]
    values = ", ".join(
        f"{guard.measure} {guard.new:.3f} against {guard.serving:.3f}" for guard in guarded
    )
    compared = f"{builds[0]} compared with {builds[1]}, which serves: {values}" if values else ""
    if is_inconclusive:
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
    """Judge a build, published or not, against the serving build, without reranking."""
    minimum = ctx.tenant.quality.least
    if not ctx.catalog.judgements.count_by_kind(ctx.ref.id).get(False):
        return QualityVerdict("pass", describe_missing_questions(ctx.ref.id), 0, minimum)
    try:
        comparison = compare_builds(ctx, new, serving, AskOptions(ctx.tenant.retrieval.mode))
    except BuildNotSearchable as error:
        if error.generation != serving.number:
            raise
        note = f"there is nothing to compare with: {error.advice}"
        return QualityVerdict("warn", note, 0, minimum)
    return judge_comparison(comparison, ctx.tenant.quality)


def describe_missing_questions(tenant_id: str) -> str:
    """Return the message for a tenant without judged questions."""
    return (
        "the tenant has no judged questions, so no build is held back for its answers;"
        f" add some with `rag-assets judgements import {tenant_id} PATH`"
    )
