"""Commands for the asset checks of a tenant, and for its builds' measures on judged questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, cast

import click
import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say, warn
from rag_assets.cli.runs import CheckResult
from rag_assets.cli.session import Session, with_reading_session, with_session
from rag_assets.common.errors import (
    ConfigurationError,
    NoReranker,
    RagAssetsError,
    UnknownGeneration,
)
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import AskOptions
from rag_assets.quality.evaluation import (
    BuildComparison,
    Evaluation,
    MeasuredPart,
    compare_builds,
    evaluate_build,
)
from rag_assets.quality.measures import MEASURES, MeanEstimate
from rag_assets.quality.thresholds import get_serving_build
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.tenants.modes import SearchMode

_MIN_P = 0.001

app = typer.Typer()


@app.command()
@with_session
def check(
    session: Session,
    tenant_id: TenantArgument,
    *,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep", help="Compare all contents, vectors and files, not only the day's share."
        ),
    ] = False,
    as_json: Json = False,
) -> bool:
    """Run the asset checks of a tenant."""
    session.get_active_tenant(tenant_id)
    results = run_checks(session, tenant_id, deep=deep)
    passed = all(result.passed or result.severity != "ERROR" for result in results)
    if as_json:
        print_json({"tenant": tenant_id, "passed": passed, "checks": results})
    else:
        print_checks(tenant_id, results)
    return passed


def run_checks(session: Session, tenant_id: str, *, deep: bool = False) -> list[CheckResult]:
    """Run the asset checks and the expectations of a tenant, and return their results."""
    from rag_assets.checks.tenant_check import DEEP_TAG

    runner = session.runner
    tags = {DEEP_TAG: "true"} if deep else {}
    results: list[CheckResult] = []
    for job_name in ("check_tenant", "expectations"):
        run = runner.run(job_name, tenant_id, tags=tags)
        if run.failure is not None:
            # A check that was not evaluated must not look like a passed check.
            raise run.failure
        results += run.checks
    if not results:
        raise RagAssetsError("no check was evaluated", hint="open the run in Dagster's UI")
    return results


def print_checks(tenant_id: str, results: list[CheckResult]) -> None:
    """Print each check with its finding."""
    print_table(
        ["check", "asset", "result", "finding"],
        [
            (r.check, r.asset, "passed" if r.passed else r.severity.lower(), r.description)
            for r in sorted(results, key=lambda r: (r.passed, r.asset, r.check))
        ],
    )
    failed = [result for result in results if not result.passed]
    say(f"\n{tenant_id}: {len(results) - len(failed)} of {len(results)} checks passed")


@app.command("eval")
@with_reading_session
def evaluate(
    session: Session,
    tenant_id: TenantArgument,
    generation: Annotated[
        int | None,
        typer.Option(metavar="N", help="Build to measure; by default the serving build."),
    ] = None,
    against: Annotated[
        int | None, typer.Option(metavar="M", help="Build to compare it with.")
    ] = None,
    mode: Annotated[
        list[str] | None,
        typer.Option(
            click_type=click.Choice(["knn", "text", "hybrid"]),
            help="Vectors, words, or both; repeat for several. By default the tenant's mode.",
        ),
    ] = None,
    *,
    rerank: Annotated[
        bool, typer.Option("--rerank", help="Rerank the top hits with a cross-encoder.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Measure how well a build answers a tenant's judged questions."""
    ctx = session.build_reader_context(tenant_id)
    _require_questions(ctx)
    if rerank and ctx.tenant.retrieval.rerank is None:
        raise NoReranker(
            f"tenant {tenant_id!r} has no reranker", hint="configure a reranker as retrieval.rerank"
        )
    build = _find_build(ctx, generation)
    other = None if against is None else _find_build(ctx, against)
    evaluations: list[Evaluation | BuildComparison] = []
    for search_mode in dict.fromkeys(mode or [ctx.tenant.retrieval.mode]):
        manner = AskOptions(cast("SearchMode", search_mode), rerank)
        evaluations.append(
            evaluate_build(ctx, build, manner)
            if other is None
            else compare_builds(ctx, build, other, manner)
        )
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "evaluations": [_to_json(evaluation) for evaluation in evaluations],
            }
        )
        return
    for evaluation in evaluations:
        _print_evaluation(tenant_id, evaluation)


def _require_questions(ctx: TenantContext) -> None:
    if not ctx.catalog.judgements.count_by_kind(ctx.ref.id):
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no judged questions",
            hint=f"run `rag-assets judgements import {ctx.ref.id} PATH`, or `judgements propose`",
        )


def _find_build(ctx: TenantContext, number: int | None) -> Generation:
    if number is None:
        return get_serving_build(ctx)
    builds = [
        build for build in ctx.catalog.generations.live(ctx.ref.id) if build.state != "REMOVING"
    ]
    for build in builds:
        if build.number == number:
            return build
    numbers = ", ".join(str(build.number) for build in builds)
    raise UnknownGeneration(
        f"tenant {ctx.ref.id!r} has no build {number}",
        hint=f"choose one of its builds: {numbers or 'none'}",
    )


def _print_evaluation(tenant_id: str, evaluation: Evaluation | BuildComparison) -> None:
    builds = (
        [evaluation] if isinstance(evaluation, Evaluation) else [evaluation.new, evaluation.serving]
    )
    _print_questions(builds)
    say()
    for build in builds:
        _print_overall_measures(tenant_id, build)
    if isinstance(evaluation, BuildComparison):
        _print_difference(evaluation)
    _print_notes(builds[0])


def _print_questions(builds: Sequence[Evaluation]) -> None:
    """Print a table with a row per question and the value of each measure for each build."""
    rows = []
    for part in ("people", "synthetic"):
        first: MeasuredPart = getattr(builds[0], part)
        for id_ in first.ids:
            values = [
                f"{getattr(build, part).values[measure][id_]:.2f}"
                for measure in MEASURES
                for build in builds
            ]
            rows.append([id_, *values])
    columns = [
        measure if len(builds) == 1 else f"{measure}, {build.generation}"
        for measure in MEASURES
        for build in builds
    ]
    print_table(["question", *columns], rows)


def _print_overall_measures(tenant_id: str, evaluation: Evaluation) -> None:
    manner = f"{evaluation.manner.mode}{', reranked' if evaluation.manner.rerank else ''}"
    say(f"{tenant_id}, build {evaluation.generation} ({evaluation.embedder_id}), {manner}")
    parts = {"judged": evaluation.people, "synthetic": evaluation.synthetic}
    print_table(
        ["questions", "", *MEASURES, "judged of the first 10"],
        [
            [
                name,
                str(len(part.ids)),
                *(_format_interval(part.estimate(measure)) for measure in MEASURES),
                "" if part.judged is None else f"{part.judged:.0%}",
            ]
            for name, part in parts.items()
            if part.ids or name == "judged"
        ],
    )
    say()


def _print_difference(comparison: BuildComparison) -> None:
    differences = {measure: comparison.difference(measure) for measure in MEASURES}
    shown_rows = [
        f"{measure} {difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f}, "
        f"p {_format_p_value(difference.p)})"
        for measure, difference in differences.items()
        if difference is not None
    ]
    if shown_rows:
        builds = f"build {comparison.new.generation} against {comparison.serving.generation}"
        say(f"{builds}: {'; '.join(shown_rows)}")
    if comparison.apart:
        warn(
            f"{format_count(len(comparison.apart), 'question')} left out: the builds contain "
            f"different versions of the answering documents: {', '.join(comparison.apart)}"
        )


def _print_notes(evaluation: Evaluation) -> None:
    for id_, paths in evaluation.gone.items():
        unmeasured = " (not measured)" if id_ in evaluation.unmeasured else ""
        warn(f"{id_}{unmeasured}: missing documents: {', '.join(paths)}")
    if evaluation.unranked:
        warn(f"{format_count(evaluation.unranked, 'question')} not reranked: the reranker failed")
    if evaluation.unanswerable:
        say(f"{format_count(evaluation.unanswerable, 'question')} without an answer, not measured")
    if evaluation.embedded:
        say(f"{format_count(evaluation.embedded, 'question')} embedded; the vectors are kept")


def _format_interval(evaluation: MeanEstimate | None) -> str:
    return (
        ""
        if evaluation is None
        else f"{evaluation.mean:.3f} ({evaluation.low:.2f} to {evaluation.high:.2f})"
    )


def _format_p_value(p: float) -> str:
    return f"= {p:.3f}" if p >= _MIN_P else f"< {_MIN_P}"


def _to_json(evaluation: Evaluation | BuildComparison) -> dict[str, Any]:
    if isinstance(evaluation, Evaluation):
        return _evaluation_to_json(evaluation)
    differences = {measure: evaluation.difference(measure) for measure in MEASURES}
    return {
        "build": _evaluation_to_json(evaluation.new),
        "against": _evaluation_to_json(evaluation.serving),
        "differences": {
            measure: None if difference is None else asdict(difference)
            for measure, difference in differences.items()
        },
        "left_out": list(evaluation.apart),
    }


def _evaluation_to_json(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "generation": evaluation.generation,
        "embedder": evaluation.embedder_id,
        "mode": evaluation.manner.mode,
        "reranked": evaluation.manner.rerank,
        "judged": _part_to_json(evaluation.people),
        "synthetic": _part_to_json(evaluation.synthetic),
        "gone": evaluation.gone,
        "unmeasured": list(evaluation.unmeasured),
        "unanswerable": evaluation.unanswerable,
        "not_reranked": evaluation.unranked,
        "embedded": evaluation.embedded,
    }


def _part_to_json(part: MeasuredPart) -> Mapping[str, Any]:
    estimates = {measure: part.estimate(measure) for measure in MEASURES}
    return {
        "questions": len(part.ids),
        "judged_share": part.judged,
        "overall": {
            measure: None if estimate is None else asdict(estimate)
            for measure, estimate in estimates.items()
        },
        "by_question": {
            id_: {measure: round(part.values[measure][id_], 4) for measure in MEASURES}
            for id_ in part.ids
        },
    }
