"""What a threshold keeps and leaves out, measured on judged questions or on past tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.common.hashing import sha256_hex
from rag_assets.pipeline.context import TenantContext
from rag_assets.quality.asking import Asker, Manner
from rag_assets.quality.judgements import JudgedQuestion
from rag_assets.quality.store import stored_questions
from rag_assets.retrieval.model import Hit
from rag_assets.storage.catalog.generations import Generation

MAX_TASKS = 200
_POINTS = 12
_ANY_COSINE = -1.0


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """What one threshold does to the questions.

    Attributes:
        threshold: the cosine.
        with_passages: share of all questions that get a passage.
        passages: of a question, on average.
        answered: share of the answerable questions whose relevant passage is kept; None if none
            is judged.
        rejected: share of the unanswerable questions that get nothing; likewise.
    """

    threshold: float
    with_passages: float
    passages: float
    answered: float | None
    rejected: float | None


def past_tasks(ctx: TenantContext) -> list[JudgedQuestion]:
    """Return the distinct questions of the tenant's last searches, without judgements."""
    events = ctx.catalog.events.latest(ctx.ref.id, kind="rag_search_started", limit=10 * MAX_TASKS)
    texts = dict.fromkeys(str(event.payload.get("query") or "") for event in events)
    return tasks_of([text for text in texts if text.strip()][:MAX_TASKS])


def judged_tasks(ctx: TenantContext) -> list[JudgedQuestion]:
    """Return the tenant's judged questions, without those that were made from headings."""
    stored = stored_questions(ctx.catalog, ctx.ref.id)
    return [question for question in stored if not question.synthetic]


def tasks_of(texts: Sequence[str]) -> list[JudgedQuestion]:
    """Return texts as questions that nobody has judged."""
    return [JudgedQuestion(sha256_hex(text), "task", text) for text in dict.fromkeys(texts)]


def measure_curve(
    ctx: TenantContext, generation: Generation, questions: Sequence[JudgedQuestion]
) -> list[CurvePoint]:
    """Ask every question by vectors alone, and return what each threshold keeps of the answers.

    Raises:
        RagAssetsError: see Asker.ask.
    """
    asked = Asker(ctx).ask(
        generation,
        questions,
        Manner("knn"),
        top_k=ctx.tenant.retrieval.top_k,
        min_score=_ANY_COSINE,
    )
    hits = [asked.hits.get(question.id, ()) for question in questions]
    scores = sorted(hit.score for found in hits for hit in found if hit.score is not None)
    if not scores:
        return []
    is_judged = any(question.relevant for question in questions)
    return [_point(at, questions, hits, is_judged=is_judged) for at in _grid(scores)]


def suggested(points: Sequence[CurvePoint], loss: float = 0.02) -> float | None:
    """Return the highest threshold that costs at most a share of the answers; None if unjudged."""
    known = [(point.threshold, point.answered) for point in points if point.answered is not None]
    if not known:
        return None
    most = max(answered for _, answered in known)
    return max(threshold for threshold, answered in known if answered >= most - loss)


def _grid(scores: Sequence[float]) -> list[float]:
    """Return thresholds between the lowest and the highest cosine, in steps of a hundredth."""
    low, high = scores[0], scores[-1]
    step = max(0.01, round((high - low) / _POINTS, 2))
    first = int(low / step) * step
    count = int((high - first) / step) + 1
    return [round(first + step * number, 2) for number in range(count + 1)]


def _point(
    threshold: float,
    questions: Sequence[JudgedQuestion],
    hits: Sequence[Sequence[Hit]],
    *,
    is_judged: bool,
) -> CurvePoint:
    kept = [[hit for hit in found if (hit.score or -1.0) >= threshold] for found in hits]
    answered = [
        any(_is_relevant(question, hit) for hit in found)
        for question, found in zip(questions, kept, strict=True)
        if question.answerable
    ]
    rejected = [
        not found
        for question, found in zip(questions, kept, strict=True)
        if is_judged and not question.answerable
    ]
    return CurvePoint(
        threshold,
        with_passages=_share([bool(found) for found in kept]) or 0.0,
        passages=sum(map(len, kept)) / len(kept),
        answered=_share(answered),
        rejected=_share(rejected),
    )


def _is_relevant(question: JudgedQuestion, hit: Hit) -> bool:
    return any(
        judgement.grade >= question.relevant_from and judgement.is_about(hit)
        for judgement in question.relevant
    )


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
