"""Cosine thresholds: measure them with judged questions or past tasks, list them, and set them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.hashing import sha256_hex
from rag_assets.pipeline.context import TenantContext
from rag_assets.privacy.masker import get_masker
from rag_assets.quality.asking import Asker, AskOptions
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.store import find_judged_documents, limit_judgements, read_questions
from rag_assets.search.model import Hit
from rag_assets.search.scoring import CALIBRATION_QUESTIONS
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.measurements import (
    get_measured_floors,
    get_measured_threshold,
)
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile

MAX_TASKS = 200
MAX_REASON_CHARACTERS = 1_000
_CURVE_STEPS = 12
_ANY_COSINE = -1.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The effect that one threshold would have on the questions."""

    threshold: float
    with_passages: float
    """Share of all questions that get a passage."""
    passages: float
    answered: float | None
    """Share of the answerable questions that keep a relevant passage; None if no question is
    judged."""
    rejected: float | None
    """Share of the unanswerable questions that get no passage; None if no question is judged."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """The threshold in force for one use of a search."""

    use: str
    """Use of a search; empty for any use."""
    threshold: float | None
    described: float | None
    """The value in the system's description; None if it has none."""
    origin: str
    """Who set the threshold, or the rule that it comes from."""
    reason: str | None
    """Why the threshold was set, or the progress of the calibration."""
    at: str | None


def list_past_tasks(ctx: TenantContext) -> list[JudgedQuestion]:
    """Return the distinct questions of the tenant's last searches, without judgements."""
    events = ctx.catalog.events.latest(ctx.ref.id, kind="rag_search_started", limit=10 * MAX_TASKS)
    texts = dict.fromkeys(str(event.payload.get("query") or "") for event in events)
    return build_questions([text for text in texts if text.strip()][:MAX_TASKS])


def list_judged_tasks(ctx: TenantContext) -> list[JudgedQuestion]:
    """Return the tenant's judged questions, except those that were generated from headings."""
    stored = [
        question for question in read_questions(ctx.catalog, ctx.ref.id) if not question.synthetic
    ]
    present = limit_judgements(stored, find_judged_documents(ctx.catalog, ctx.ref.id, stored))
    # If all documents of an answerable question are gone, an empty result is not a correct answer
    # to it.
    return [
        now
        for before, now in zip(stored, present, strict=True)
        if now.answerable == before.answerable
    ]


def list_tasks(ctx: TenantContext) -> tuple[list[JudgedQuestion], str]:
    """Return the judged questions or, if there are none, past tasks; and a name for them."""
    if judged := list_judged_tasks(ctx):
        return judged, "judged questions"
    return list_past_tasks(ctx), "past tasks"


def build_questions(texts: Sequence[str]) -> list[JudgedQuestion]:
    """Convert texts to questions without judgements, each text once."""
    return [JudgedQuestion(sha256_hex(text), "task", text) for text in dict.fromkeys(texts)]


def measure_curve(
    ctx: TenantContext, generation: Generation, questions: Sequence[JudgedQuestion]
) -> list[CurvePoint]:
    """Search for every question by vectors alone, and return the effect of each threshold."""
    result = Asker(ctx).ask(
        generation,
        questions,
        AskOptions("knn"),
        top_k=ctx.tenant.retrieval.top_k,
        min_score=_ANY_COSINE,
    )
    hits = [result.hits.get(question.id, ()) for question in questions]
    scores = sorted(hit.cosine for passages in hits for hit in passages if hit.cosine is not None)
    if not scores:
        return []
    is_judged = any(question.relevant for question in questions)
    return [_measure_point(at, questions, hits, is_judged=is_judged) for at in _build_grid(scores)]


def suggest_threshold(points: Sequence[CurvePoint], loss: float = 0.02) -> float | None:
    """Return the highest threshold that loses few answers; None if no question is judged.

    The share of answered questions may be lower by `loss` than with the best threshold.
    """
    known = [(point.threshold, point.answered) for point in points if point.answered is not None]
    if not known:
        return None
    max_answered = max(answered for _, answered in known)
    return max(threshold for threshold, answered in known if answered >= max_answered - loss)


def get_serving_build(ctx: TenantContext) -> Generation:
    """Return the serving build; raise a ConfigurationError if there is none."""
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is None:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no serving build",
            hint=f"run `rag-assets sync {ctx.ref.id}` first",
        )
    return serving


def list_thresholds(tenant: Tenant, serving: Generation) -> list[Threshold]:
    """Return the threshold in force for each use of a search."""
    return [_build_threshold(tenant, serving, use) for use in _list_uses(tenant)]


def set_threshold(
    ctx: TenantContext, use: str, value: float | None, *, reason: str, by: str
) -> Threshold:
    """Set the threshold of a use in all builds with the serving build's embedder.

    None lets the next questions measure it. A value requires a reason, in which credentials are
    masked.
    """
    serving = get_serving_build(ctx)
    uses = _list_uses(ctx.tenant)
    if use not in uses:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no searches for the use {use!r}",
            hint=f"choose one of: {', '.join(name for name in uses if name) or 'none'}",
        )
    if value is not None:
        _require_valid(value, reason)
    if ctx.tenant.retrieval.fixes_threshold:
        raise ConfigurationError(
            f"the configuration of tenant {ctx.ref.id!r} already sets a threshold",
            hint="remove retrieval.min_score and retrieval.threshold_from first",
        )
    masked = get_masker(ctx.settings.local).text(reason.strip())
    ctx.catalog.thresholds.set_value(
        ctx.ref, serving.embedder_id, use, value, reason=masked, by=by, questions=0
    )
    return _build_threshold(ctx.tenant, get_serving_build(ctx), use)


def _require_valid(value: float, reason: str) -> None:
    # For NaN, the comparison is false as well.
    if not -1.0 <= value <= 1.0:
        raise ConfigurationError(
            "the threshold is out of range", hint="set a cosine between -1 and 1"
        )
    if not reason.strip():
        raise ConfigurationError("the reason for the threshold is missing", hint="add a reason")
    if len(reason) > MAX_REASON_CHARACTERS:
        raise ConfigurationError(
            "the reason is too long", hint=f"use at most {MAX_REASON_CHARACTERS:,} characters"
        )


def _list_uses(tenant: Tenant) -> tuple[str, ...]:
    return tuple(get_profile(tenant.profile).thresholds_of_uses) or ("",)


def _build_threshold(tenant: Tenant, serving: Generation, use: str) -> Threshold:
    measured = get_measured_threshold(serving, use)
    stored = serving.thresholds.get(use, {})
    described = get_profile(tenant.profile).threshold(serving.embedder_id, use or None)
    origin, reason = "description", None
    if "min_score" in tenant.retrieval.model_fields_set:
        origin = "retrieval.min_score"
    elif tenant.retrieval.threshold_from == "measured" and measured is not None:
        origin, reason = str(stored.get("by")), str(stored.get("reason"))
    elif tenant.calibrates(serving.embedder_id) and described is not None:
        origin = "calibration"
        reason = (
            f"{len(get_measured_floors(serving, use))} of {CALIBRATION_QUESTIONS} questions so far"
        )
    in_force = tenant.min_score(serving.embedder_id, use or None, measured=measured)
    return Threshold(use, in_force, described, origin, reason, stored.get("at"))


def _build_grid(scores: Sequence[float]) -> list[float]:
    """Return thresholds from the lowest to the highest cosine, in equal steps of at least 0.01."""
    low, high = scores[0], scores[-1]
    step = max(0.01, round((high - low) / _CURVE_STEPS, 2))
    # Round down, so that the first threshold also keeps hits with a negative cosine.
    first = floor(low / step) * step
    count = int((high - first) / step) + 1
    return [round(first + step * number, 2) for number in range(count + 1)]


def _measure_point(
    threshold: float,
    questions: Sequence[JudgedQuestion],
    hits: Sequence[Sequence[Hit]],
    *,
    is_judged: bool,
) -> CurvePoint:
    hits_above = [
        [
            hit
            for hit in passages
            if (_ANY_COSINE if hit.cosine is None else hit.cosine) >= threshold
        ]
        for passages in hits
    ]
    answered = [
        any(_is_relevant(question, hit) for hit in passages)
        for question, passages in zip(questions, hits_above, strict=True)
        if question.answerable
    ]
    rejected = [
        not passages
        for question, passages in zip(questions, hits_above, strict=True)
        if is_judged and not question.answerable
    ]
    return CurvePoint(
        threshold,
        with_passages=_compute_share([bool(passages) for passages in hits_above]) or 0.0,
        passages=sum(map(len, hits_above)) / len(hits_above),
        answered=_compute_share(answered),
        rejected=_compute_share(rejected),
    )


def _is_relevant(question: JudgedQuestion, hit: Hit) -> bool:
    return any(
        judgement.grade >= question.relevant_from and judgement.is_about(hit)
        for judgement in question.relevant
    )


def _compute_share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
