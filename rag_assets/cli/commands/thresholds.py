"""thresholds: show, measure and set the cosine below which passages are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rag_assets.cli.commands.operator import operator
from rag_assets.cli.commands.output import print_json, print_table, say
from rag_assets.cli.commands.session import Session, with_reading_session, with_session
from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.thresholds import (
    CurvePoint,
    judged_tasks,
    measure_curve,
    past_tasks,
    suggested,
    tasks_of,
)
from rag_assets.retrieval.calibration import QUESTIONS
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.thresholds import measured_floors, measured_value
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import profile_of


@with_reading_session
def show(session: Session, tenant_id: str, *, as_json: bool) -> None:
    """Print each use with its threshold."""
    ctx = session.reader(tenant_id)
    serving = _serving(ctx)
    rows = [_row(ctx.tenant, serving, use) for use in _uses(ctx.tenant)]
    if as_json:
        print_json({"tenant": tenant_id, "embedder": serving.embedder_id, "thresholds": rows})
        return
    say(f"{tenant_id}: {serving.embedder_id}")
    print_table(
        ["use", "threshold", "as described", "from", "reason"],
        [
            (
                *(row["use"] or "(any)", _shown(row["threshold"]), _shown(row["described"])),
                *(row["from"], row["reason"] or ""),
            )
            for row in rows
        ],
    )


@with_reading_session
def measure(session: Session, tenant_id: str, tasks: Path | None, *, as_json: bool) -> None:
    """Print what each threshold keeps."""
    ctx = session.reader(tenant_id)
    serving = _serving(ctx)
    questions, origin = _questions(ctx, tasks)
    points = measure_curve(ctx, serving, questions)
    proposal = suggested(points)
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
    say(f"{tenant_id}: {counted(len(questions), 'question')} ({origin}), {serving.embedder_id}")
    _print_curve(points)
    if proposal is not None:
        say(f"{proposal} is the highest threshold that costs at most 2 % of the answers.")
    say(f"Set one: rag-assets thresholds measure {tenant_id} --set COSINE --reason TEXT")


@with_session
def set_threshold(
    session: Session,
    tenant_id: str,
    use: str,
    value: float | None,
    *,
    reason: str | None,
    as_json: bool,
) -> None:
    """Set the threshold of a use, or have it measured anew."""
    ctx = session.reader(tenant_id)
    serving = _serving(ctx)
    uses = _uses(ctx.tenant)
    if use not in uses:
        raise ConfigurationError(
            f"the searches of tenant {tenant_id!r} have no use {use!r}",
            hint=f"choose one of: {', '.join(name for name in uses if name) or 'none'}",
        )
    if value is not None and not (reason or "").strip():
        raise ConfigurationError("a threshold is set for a reason", hint="give it as --reason TEXT")
    retrieval = ctx.tenant.retrieval
    if retrieval.threshold_from != "measured" or "min_score" in retrieval.model_fields_set:
        raise ConfigurationError(
            f"tenant {tenant_id!r} has a threshold by its configuration",
            hint="take out retrieval.min_score and retrieval.threshold_from first",
        )
    ctx.catalog.thresholds.set_value(
        ctx.ref,
        serving.embedder_id,
        use,
        value,
        reason=reason or "",
        by=operator(),
        questions=0,
    )
    row = _row(ctx.tenant, _serving(ctx), use)
    if as_json:
        print_json({"tenant": tenant_id, "embedder": serving.embedder_id, **row})
    elif value is None:
        say(f"{tenant_id}: the next {QUESTIONS} questions measure the threshold.")
    else:
        say(f"{tenant_id}: the threshold is {value} from the next search on.")


def _questions(ctx: TenantContext, tasks: Path | None) -> tuple[Sequence[JudgedQuestion], str]:
    if tasks is not None:
        try:
            lines = tasks.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError):
            raise ConfigurationError(
                f"{tasks} cannot be read", hint="give a UTF-8 file with a task on each line"
            ) from None
        questions, origin = tasks_of([line.strip() for line in lines if line.strip()]), "file"
    elif judged := judged_tasks(ctx):
        questions, origin = judged, "judged questions"
    else:
        questions, origin = past_tasks(ctx), "past tasks"
    if not questions:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no judged questions and no past tasks",
            hint="give a file with a task on each line: --tasks FILE",
        )
    return questions, origin


def _serving(ctx: TenantContext) -> Generation:
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no build that serves",
            hint=f"`rag-assets sync {ctx.ref.id}` first",
        )
    return serving


def _uses(tenant: Tenant) -> tuple[str, ...]:
    return tuple(profile_of(tenant.profile).thresholds_of_uses) or ("",)


def _row(tenant: Tenant, serving: Generation, use: str) -> dict[str, Any]:
    measured = measured_value(serving, use)
    stored = serving.thresholds.get(use, {})
    described = profile_of(tenant.profile).threshold(serving.embedder_id, use or None)
    origin, reason = "description", None
    if "min_score" in tenant.retrieval.model_fields_set:
        origin = "retrieval.min_score"
    elif tenant.retrieval.threshold_from == "measured" and measured is not None:
        origin, reason = str(stored.get("by")), str(stored.get("reason"))
    elif tenant.calibrates(serving.embedder_id) and described is not None:
        origin = "calibration"
        reason = f"{len(measured_floors(serving, use))} of {QUESTIONS} questions so far"
    return {
        "use": use,
        "threshold": tenant.min_score(serving.embedder_id, use or None, measured=measured),
        "described": described,
        "from": origin,
        "reason": reason,
        "at": stored.get("at"),
    }


def _print_curve(points: Sequence[CurvePoint]) -> None:
    print_table(
        ["threshold", "with passages", "passages", "answered", "rejected"],
        [
            (
                *(f"{point.threshold:.2f}", f"{point.with_passages:.0%}", f"{point.passages:.1f}"),
                *(_percent(point.answered), _percent(point.rejected)),
            )
            for point in points
        ],
    )


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0%}"


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"
