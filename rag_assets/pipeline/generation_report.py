"""Reports on a tenant's builds, for the command line and for pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rag_assets.common.errors import BuildNotWritable
from rag_assets.models.factory import price_of
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import found_builds
from rag_assets.pipeline.recipes import differences
from rag_assets.storage.catalog.builds.generations import Generation, Pin
from rag_assets.storage.catalog.builds.progress import BuildProgress

_FRESH = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The state of one build.

    Attributes:
        number: the number of the generation.
        differs: differences from the serving build, one line each.
        wanted: whether this build should answer: it is pinned, or it is the configuration's build.
        current: whether syncs keep it up to date.
        not_writable: why it cannot be brought up to date.
        documents, entries: numbers of documents and entries in the build.
        of_documents: number of all documents of the tenant.
        of_entries: about how many entries the build will hold.
        behind: number of documents whose present content the build lacks; None if unknown.
        waiting: number of documents that wait for a provider or a person.
        per_second: documents indexed per second, while the build is being made.
        remaining_seconds: time until it is complete at this rate; None while unknown.
        spent: dollars spent so far.
        planned: about how many dollars the build will cost in total; None without a price.
        checks: results of the checks that judged it.
        pinned: by whom, when and why it was pinned.
        since: when it entered its state, as far as recorded.
    """

    number: int
    state: str
    reason: str | None
    differs: tuple[str, ...]
    wanted: bool
    current: bool
    not_writable: str | None
    documents: int
    of_documents: int
    entries: int
    of_entries: int
    behind: int | None
    waiting: int
    per_second: float | None
    remaining_seconds: float | None
    spent: float
    planned: float | None
    embedder: str
    index: str
    checks: tuple[Mapping[str, Any], ...]
    created_at: datetime
    completed_at: datetime | None
    published_at: datetime | None
    retired_at: datetime | None
    removed_after: datetime | None
    pinned: Pin | None
    since: datetime


def report_builds(ctx: TenantContext, *, current: bool = False) -> list[BuildReport]:
    """Report on a tenant's builds, oldest first; read-only.

    Args:
        ctx: the tenant's context, as configured.
        current: report only the serving build and the builds that syncs keep up to date, because
            each reported build costs a count of all documents.
    """
    now = ctx.clock.now()
    live = ctx.catalog.generations.live(ctx.ref.id)
    active = found_builds(ctx, live)
    shown = [g for g in live if not current or g.number in active or g.state == "SERVING"]
    contexts, reasons = _contexts(ctx, shown)
    keys = {g.number: c.config_key if (c := contexts.get(g.number)) else None for g in shown}
    progress = ctx.catalog.build_progress.read(ctx.ref.id, keys)
    pin = ctx.catalog.pins.find(ctx.ref.id)
    serving = next((g for g in live if g.state == "SERVING"), None)
    wanted = {number for number, build in active.items() if not build.beside}
    return [
        _report(
            ctx,
            generation,
            progress[generation.number],
            serving=serving,
            wanted=generation.number in wanted,
            current=generation.number in active,
            not_writable=reasons.get(generation.number),
            pin=pin,
            now=now,
        )
        for generation in shown
    ]


def _contexts(
    ctx: TenantContext, live: Sequence[Generation]
) -> tuple[dict[int, TenantContext], dict[int, str]]:
    contexts: dict[int, TenantContext] = {}
    reasons: dict[int, str] = {}
    for generation in live:
        try:
            contexts[generation.number] = ctx.for_build(generation)
        except BuildNotWritable as error:
            reasons[generation.number] = error.message
    return contexts, reasons


def _report(
    ctx: TenantContext,
    generation: Generation,
    progress: BuildProgress,
    *,
    serving: Generation | None,
    wanted: bool,
    current: bool,
    not_writable: str | None,
    pin: Pin | None,
    now: datetime,
) -> BuildReport:
    building = wanted and generation.state == "BUILDING"
    done = progress.of_documents - (progress.behind or 0)
    share = done / progress.of_documents if building and progress.of_documents else 1.0
    rate = _rate(progress, now) if building else None
    left = (progress.behind or 0) - progress.waiting
    grace = timedelta(days=ctx.tenant.grace_days)
    goes = generation.state in {"RETIRED", "BUILDING", "COMPLETE", "HELD"} and not wanted
    last = generation.retired_at or generation.completed_at or generation.created_at
    return BuildReport(
        number=generation.number,
        state=generation.state,
        reason=generation.reason,
        differs=() if serving is None else tuple(differences(generation, serving)),
        wanted=wanted,
        current=current,
        not_writable=not_writable,
        documents=progress.documents,
        of_documents=progress.of_documents,
        entries=progress.entries,
        of_entries=round(progress.entries / share) if share else 0,
        behind=progress.behind,
        waiting=progress.waiting,
        per_second=rate,
        remaining_seconds=left / rate if rate and left > 0 else None,
        spent=generation.spent,
        planned=_estimate_total_cost(ctx, generation, share),
        embedder=generation.embedder_id,
        index=generation.index_name,
        checks=tuple(generation.checks or ()),
        created_at=generation.created_at,
        completed_at=generation.completed_at,
        published_at=generation.published_at,
        retired_at=generation.retired_at,
        removed_after=last + grace if goes else None,
        pinned=pin if pin is not None and pin.generation == generation.number else None,
        since=_state_start(generation),
    )


def _state_start(generation: Generation) -> datetime:
    entered = {
        "COMPLETE": generation.completed_at,
        "HELD": generation.completed_at,
        "SERVING": generation.published_at,
        "RETIRED": generation.retired_at,
    }
    return entered.get(generation.state) or generation.created_at


def _rate(progress: BuildProgress, now: datetime) -> float | None:
    """Return the documents indexed per second in the last ten minutes; None if there were none."""
    if progress.last_at is None or now - progress.last_at > _FRESH:
        return None
    return progress.recent / progress.recent_seconds if progress.recent_seconds else None


def _estimate_total_cost(ctx: TenantContext, generation: Generation, share: float) -> float | None:
    """Return about how much the whole build costs, estimated from its finished documents."""
    try:
        build = ctx.for_build(generation)
    except BuildNotWritable:
        return None
    if price_of(build.tenant.embedder) is None:
        return None
    return generation.spent / share if share else None
