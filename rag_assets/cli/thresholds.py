"""Commands that show, measure and set cosine thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, say
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality import thresholds
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.thresholds import (
    CurvePoint,
    Threshold,
    build_questions,
    get_serving_build,
    list_tasks,
    list_thresholds,
    measure_curve,
    suggest_threshold,
)
from rag_assets.search.scoring import CALIBRATION_QUESTIONS

UseOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Use of searches with its own threshold, such as task or failure of experience."
    ),
]

app = typer.Typer()


@app.command("show")
@with_reading_session
def show(session: Session, tenant_id: TenantArgument, *, as_json: Json = False) -> None:
    """Print the thresholds in force and the origin of each."""
    ctx = session.build_reader_context(tenant_id)
    serving = get_serving_build(ctx)
    rows = list_thresholds(ctx.tenant, serving)
    if as_json:
        listed_rows = [_to_json(row) for row in rows]
        print_json(
            {"tenant": tenant_id, "embedder": serving.embedder_id, "thresholds": listed_rows}
        )
        return
    say(f"{tenant_id}: {serving.embedder_id}")
    print_table(
        ["use", "threshold", "as described", "from", "reason"],
        [
            (
                *(
                    row.use or "(any)",
                    _format_threshold(row.threshold),
                    _format_threshold(row.described),
                ),
                *(row.origin, row.reason or ""),
            )
            for row in rows
        ],
    )


@app.command("measure")
def measure(
    tenant_id: TenantArgument,
    *,
    tasks: Annotated[
        Path | None,
        typer.Option(
            help="File with a task on each line; by default the judged questions, or past tasks."
        ),
    ] = None,
    use: UseOption = "",
    value: Annotated[
        float | None, typer.Option("--set", min=-1.0, max=1.0, help="Set this threshold.")
    ] = None,
    calibrate: Annotated[
        bool,
        typer.Option(
            "--calibrate", help="Remove the threshold, so that the next questions measure it again."
        ),
    ] = False,
    reason: Annotated[str | None, typer.Option(help="Reason, which is stored.")] = None,
    as_json: Json = False,
) -> None:
    """Show the effect of each threshold; with --set and --reason, set a threshold."""
    if value is None and not calibrate:
        _print_effects(tenant_id, tasks, as_json=as_json)
    else:
        new_value = None if calibrate else value
        _set_threshold(tenant_id, use, new_value, reason=reason, as_json=as_json)


@with_reading_session
def _print_effects(session: Session, tenant_id: str, tasks: Path | None, *, as_json: bool) -> None:
    """Print, for each threshold, its effect on the questions of a file or of the tenant."""
    ctx = session.build_reader_context(tenant_id)
    serving = get_serving_build(ctx)
    questions, origin = _read_questions(ctx, tasks)
    points = measure_curve(ctx, serving, questions)
    proposal = suggest_threshold(points)
    if as_json:
        print_json(
            {
                "tenant": tenant_id,
                "embedder": serving.embedder_id,
                "questions": len(questions),
                "origin": origin,
                "curve": [asdict(point) for point in points],
                "suggested": proposal,
            }
        )
        return
    say(
        f"{tenant_id}: {format_count(len(questions), 'question')} ({origin}), {serving.embedder_id}"
    )
    _print_curve(points)
    if proposal is not None:
        say(f"{proposal} is the highest threshold that loses at most 2 % of the answers.")
    say(f"Set it with: rag-assets thresholds measure {tenant_id} --set COSINE --reason TEXT")


@with_session
def _set_threshold(
    session: Session,
    tenant_id: str,
    use: str,
    value: float | None,
    *,
    reason: str | None,
    as_json: bool,
) -> None:
    """Set the threshold of a use, or reset it so that it is measured again."""
    ctx = session.build_reader_context(tenant_id)
    row = thresholds.set_threshold(ctx, use, value, reason=reason or "", by=operator())
    if as_json:
        embedder_id = get_serving_build(ctx).embedder_id
        print_json({"tenant": tenant_id, "embedder": embedder_id, **_to_json(row)})
    elif value is None:
        say(f"{tenant_id}: the next {CALIBRATION_QUESTIONS} questions measure the threshold.")
    else:
        say(f"{tenant_id}: the threshold is {value} from the next search on.")


def _read_questions(ctx: TenantContext, tasks: Path | None) -> tuple[Sequence[JudgedQuestion], str]:
    if tasks is not None:
        try:
            lines = tasks.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError(
                f"{tasks} cannot be read", hint="use a UTF-8 file with a task on each line"
            ) from None
        questions, origin = (
            build_questions([line.strip() for line in lines if line.strip()]),
            "file",
        )
    else:
        questions, origin = list_tasks(ctx)
    if not questions:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no judged questions and no past tasks",
            hint="use --tasks FILE, with a task on each line of the file",
        )
    return questions, origin


def _to_json(row: Threshold) -> dict[str, Any]:
    names = {"origin": "from"}
    return {names.get(name, name): value for name, value in asdict(row).items()}


def _print_curve(points: Sequence[CurvePoint]) -> None:
    print_table(
        ["threshold", "with passages", "passages", "answered", "rejected"],
        [
            (
                *(f"{point.threshold:.2f}", f"{point.with_passages:.0%}", f"{point.passages:.1f}"),
                *(_format_percent(point.answered), _format_percent(point.rejected)),
            )
            for point in points
        ],
    )


def _format_percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _format_threshold(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
