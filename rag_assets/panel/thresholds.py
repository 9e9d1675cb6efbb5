"""The page that measures and sets the threshold of a tenant, shared by several systems."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.responses import HTMLResponse, Response

from rag_assets.common.errors import ConfigurationError
from rag_assets.panel.frame import PanelPage, Visit
from rag_assets.quality.thresholds import (
    MAX_REASON_CHARACTERS,
    MAX_TASKS,
    CurvePoint,
    get_serving_build,
    list_tasks,
    list_thresholds,
    measure_curve,
    set_threshold,
    suggest_threshold,
)
from rag_assets.search.scoring import CALIBRATION_QUESTIONS

_DONE = {
    "set": "The threshold is set. It applies from the next search on.",
    "calibrating": (
        f"The threshold is reset. The next {CALIBRATION_QUESTIONS} questions measure it again."
    ),
}
_UNPROCESSABLE = 422
_LEFT, _RIGHT, _TOP, _BOTTOM = 40, 322, 12, 172
"""Edges of the plot area in the picture, which is 340 units wide and 206 units high."""
_MAX_LABELS = 5


async def show(visit: Visit) -> Response:
    """Show the thresholds in force."""
    done = _DONE.get(visit.request.query_params.get("done", ""), "")
    return await _render_page(visit, done=done)


async def measure(visit: Visit) -> Response:
    """Show, for each possible threshold, its effect on the tenant's own questions."""
    try:
        measured = partial(_measure_curve, visit)
        curve = await visit.backend.run(visit.tenant_id, visit.session.name, measured)
    except ConfigurationError as error:
        return await _render_page(visit, problem=error.advice)
    return await _render_page(visit, curve=curve)


async def change(visit: Visit) -> Response:
    """Set the threshold, or reset it so that the next questions measure it."""
    should_calibrate = visit.field("action") == "calibrate"

    def work() -> None:
        ctx = visit.backend.build_reader_context(visit.tenant_id)
        value = None if should_calibrate else _parse_cosine(visit.field("value"))
        use, reason = visit.field("use"), visit.field("reason")
        set_threshold(ctx, use, value, reason=reason, by=visit.session.name)

    try:
        await visit.backend.write(visit.tenant_id, work)
    except ConfigurationError as error:
        return await _render_page(visit, problem=error.advice)
    return visit.redirect(f"/threshold?done={'calibrating' if should_calibrate else 'set'}")


THRESHOLD_PAGES = (
    PanelPage("/threshold", show),
    PanelPage("/threshold", change, "POST", texts=("reason",)),
    PanelPage("/threshold/measure", measure, "POST"),
)
"""Pages for each system with tenants that may measure their threshold."""


async def _render_page(
    visit: Visit, *, done: str = "", problem: str = "", curve: dict[str, Any] | None = None
) -> Response:
    status = _UNPROCESSABLE if problem else 200
    state = partial(_read_state, visit)
    values = await visit.backend.run(visit.tenant_id, visit.session.name, state)
    page = visit.renderer.page(
        "threshold.html",
        visit=visit,
        done=done,
        problem=problem,
        curve=curve,
        given={name: visit.field(name) for name in ("use", "value", "reason")},
        most_characters=MAX_REASON_CHARACTERS,
        questions=CALIBRATION_QUESTIONS,
        **values,
    )
    return HTMLResponse(page, status)


def _read_state(visit: Visit) -> dict[str, Any]:
    ctx = visit.backend.build_reader_context(visit.tenant_id)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    return {
        "embedder": None if serving is None else serving.embedder_id,
        "thresholds": [] if serving is None else list_thresholds(ctx.tenant, serving),
        "is_configured": ctx.tenant.retrieval.fixes_threshold,
    }


def _measure_curve(visit: Visit) -> dict[str, Any]:
    """Measure the effect of each threshold on the tenant's questions.

    Returns:
        Variables of the template: the measured points, the coordinates of their picture, counts
        of the questions, and the suggested threshold.
    """
    ctx = visit.backend.build_reader_context(visit.tenant_id)
    serving = get_serving_build(ctx)
    questions, origin = list_tasks(ctx)
    if not questions:
        raise ConfigurationError(
            "there are no judged questions and no past tasks to measure with",
            hint="try some tasks first; each task counts as a question",
        )
    used_questions = questions[:MAX_TASKS]
    points = measure_curve(ctx, serving, used_questions)
    if not points:
        raise ConfigurationError(
            "no question finds a passage", hint="wait until documents are indexed"
        )
    in_force = {row.threshold for row in list_thresholds(ctx.tenant, serving)} - {None}
    return {
        "points": points,
        "is_judged": any(point.answered is not None for point in points),
        "is_rejecting": any(point.rejected is not None for point in points),
        "questions": len(used_questions),
        "all": len(questions),
        "origin": origin,
        "suggested": suggest_threshold(points),
        "picture": _build_picture(points, [value for value in in_force if value is not None]),
    }


def _build_picture(points: Sequence[CurvePoint], in_force: Sequence[float]) -> dict[str, Any]:
    """Return the coordinates of the lines and labels of the curve's picture."""
    low, high = points[0].threshold, points[-1].threshold
    width = (high - low) or 1.0

    def scale_x(threshold: float) -> float:
        return round(_LEFT + (threshold - low) / width * (_RIGHT - _LEFT), 1)

    def scale_y(share: float) -> float:
        return round(_BOTTOM - share * (_BOTTOM - _TOP), 1)

    def format_line(shares: Sequence[float | None]) -> str:
        pairs = zip(points, shares, strict=True)
        return " ".join(
            f"{scale_x(point.threshold)},{scale_y(share)}"
            for point, share in pairs
            if share is not None
        )

    labelled = [point.threshold for point in points[:: -(-len(points) // _MAX_LABELS)]]
    return {
        "passages": format_line([point.with_passages for point in points]),
        "answered": format_line([point.answered for point in points]),
        "shares": [(scale_y(share), f"{share:.0%}") for share in (0.0, 0.5, 1.0)],
        "cosines": [(scale_x(threshold), f"{threshold:.2f}") for threshold in labelled],
        "in_force": [(scale_x(value), value) for value in in_force if low <= value <= high],
    }


def _parse_cosine(text: str) -> float:
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        raise ConfigurationError(
            "the threshold is not a number", hint="use a cosine between -1 and 1, such as 0.34"
        ) from None
