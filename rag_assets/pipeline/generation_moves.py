"""Actions of people on builds: report, publish, roll back, discard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from rag_assets.common.errors import BuildNotWritable, ConfigurationError
from rag_assets.common.formatting import format_count
from rag_assets.models.factory import find_price
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import settle_discard
from rag_assets.pipeline.generations import (
    Judge,
    count_unfinished,
    find_active_builds,
    open_active_builds,
    publish,
    publish_if_passed,
    require_entries,
    require_index,
)
from rag_assets.pipeline.mark_keeper import require_current
from rag_assets.pipeline.recipes import describe_differences, find_configured_build
from rag_assets.privacy.masker import get_masker
from rag_assets.storage.catalog.builds.generations import Generation, Pin
from rag_assets.storage.catalog.builds.progress import BuildProgress

_FRESH_PERIOD = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """Who ordered an action on a build, and why; both are kept with the build and in events."""

    by: str
    reason: str

    @classmethod
    def create(cls, ctx: TenantContext, by: str, reason: str) -> BuildOrder:
        """Return an order, with the credentials in its reason masked."""
        return cls(by, get_masker(ctx.settings.local).text(reason))


def unpin_build(ctx: TenantContext, order: BuildOrder) -> None:
    """Remove the pin, if there is one, so that the configuration chooses the build."""
    pin = ctx.catalog.pins.find(ctx.ref.id)
    if pin is None:
        return
    ctx.guard()
    ctx.catalog.pins.delete(ctx.ref)
    payload = {"generation": pin.generation, "by": order.by}
    ctx.catalog.events.write(ctx.ref, "generation_unpinned", [payload])


def publish_build(
    ctx: TenantContext, order: BuildOrder, judge: Judge | None, *, number: int | None, force: bool
) -> Generation:
    """Publish the build of the configuration, if it passes every check or is forced.

    Returns:
        The build; it is held, not published, if a check failed.

    Raises:
        ConfigurationError: the configuration's build has another number, or is not complete.
        IndexInconsistent: the build's index was lost, or holds a wrong number of entries.
    """
    if number is not None:
        require_configured(ctx, number)
    build = open_active_builds(ctx).wanted
    generation = build.generation
    if generation.state != "SERVING":
        unfinished = count_unfinished(build.context, generation)
        if unfinished:
            raise ConfigurationError(
                f"generation {generation.number} of tenant {ctx.ref.id!r} is not complete:"
                f" {format_count(unfinished, 'document')} to go",
                hint=f"complete it with `rag-assets sync {ctx.ref.id}`;"
                f" `rag-assets documents {ctx.ref.id}` shows documents that wait",
            )
        require_entries(build.context, generation)
        if generation.state != "COMPLETE":
            ctx.guard()
            generation = ctx.catalog.generations.mark_complete(ctx.ref, generation)
        if force:
            forced = {"forced": True, "by": order.by, "reason": order.reason}
            publish(build.context, generation, notes=forced)
        else:
            publish_if_passed(build.context, generation, judge)
    return _get_generation(ctx, generation.number)


def require_configured(ctx: TenantContext, number: int) -> None:
    """Require that this is the build of the tenant's configuration."""
    _get_generation(ctx, number)
    live = ctx.catalog.generations.live(ctx.ref.id)
    configured = find_configured_build(live, ctx.tenant, ctx.embedder.embedder_id)
    if configured is None or number != configured.number:
        build = "not built yet" if configured is None else f"generation {configured.number}"
        raise ConfigurationError(
            f"generation {number} of tenant {ctx.ref.id!r} is not the build of the configuration,"
            f" which is {build}: the next sync would publish the configuration's build again",
            hint="pin this generation with `rag-assets generations rollback"
            f" {ctx.ref.id} --to {number} --reason ...`, or change tenants.yaml",
        )


def choose_rollback_build(ctx: TenantContext, number: int | None) -> Generation:
    """Return the build to roll back to: the requested build, or the last that answered before.

    An interrupted rollback continues to the build that it pinned.

    Raises:
        ConfigurationError: no such build exists, it was never published, or no number is given and
            a pinned build already answers.
        BuildNotWritable: the build's recipe or model is not available.
        IndexInconsistent: the build's index was lost.
    """
    live = ctx.catalog.generations.live(ctx.ref.id)
    generation = _find_former_build(ctx, live) if number is None else _get_generation(ctx, number)
    if generation.state in {"BUILDING", "REMOVING"} or generation.published_at is None:
        former = [g.number for g in live if g.state == "RETIRED"]
        raise ConfigurationError(
            f"generation {generation.number} of tenant {ctx.ref.id!r} is"
            f" {generation.state.lower()}, and never answered searches",
            hint="choose a generation that answered before:"
            f" {', '.join(map(str, former)) or 'there is none except the present one'}",
        )
    ctx.for_build(generation)
    require_index(ctx, generation)
    return generation


def roll_back(ctx: TenantContext, generation: Generation, order: BuildOrder, *, now: bool) -> bool:
    """Pin a build that answered before; let it answer at once, or when it is up to date.

    Return whether it answers now.
    """
    build = ctx.for_build(generation)
    pin = Pin(generation.number, order.by, order.reason)
    payload = {"generation": generation.number, "by": order.by, "reason": order.reason, "now": now}
    ctx.guard()
    serves = generation.state == "SERVING"
    if now and not serves:
        publish(build, generation, pin=pin, notes={"by": order.by, "reason": order.reason})
    else:
        ctx.catalog.pins.set(ctx.ref, pin)
    ctx.catalog.events.write(ctx.ref, "generation_pinned", [payload])
    return now or serves


def discard_build(ctx: TenantContext, number: int, order: BuildOrder) -> None:
    """Delete a build that neither answers nor is pinned."""
    require_current(ctx)
    generation = _get_generation(ctx, number)
    if generation.state == "SERVING":
        raise ConfigurationError(
            f"generation {number} of tenant {ctx.ref.id!r} is serving and cannot be discarded",
            hint="publish a different generation first, or roll back to a former one:"
            f" rag-assets generations list {ctx.ref.id}",
        )
    if generation.pinned:
        raise ConfigurationError(
            f"generation {number} of tenant {ctx.ref.id!r} is pinned: it cannot be discarded",
            hint=f"unpin the generation with `rag-assets generations publish {ctx.ref.id}`",
        )
    ctx.guard()
    at = ctx.clock.now()
    erasure = ctx.catalog.erasures.begin_discard(ctx.ref, generation, by=order.by, at=at)
    settle_discard(ctx, erasure)
    payload = {"generation": number, "by": order.by, "state": generation.state}
    ctx.catalog.events.write(ctx.ref, "generation_discarded", [payload])


def _find_former_build(ctx: TenantContext, live: Sequence[Generation]) -> Generation:
    pin = ctx.catalog.pins.find(ctx.ref.id)
    if pin is None:
        return _find_last_retired_build(ctx, live)
    pinned = _get_generation(ctx, pin.generation)
    if pinned.state == "SERVING":
        since = "" if pin.at is None else f" since {pin.at:%Y-%m-%d %H:%M} UTC"
        raise ConfigurationError(
            f"generation {pinned.number} of tenant {ctx.ref.id!r} answers already, pinned by"
            f" {pin.by}{since}: {pin.reason}",
            hint="choose the build to roll back to with --to;"
            f" rag-assets generations list {ctx.ref.id} shows all builds",
        )
    return pinned


def _find_last_retired_build(ctx: TenantContext, live: Sequence[Generation]) -> Generation:
    retired = [g for g in live if g.state == "RETIRED" and g.retired_at is not None]
    if not retired:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no former build to roll back to",
            hint=f"rag-assets generations list {ctx.ref.id} shows its builds",
        )
    return max(retired, key=lambda g: (g.retired_at or g.created_at, g.number))


def _get_generation(ctx: TenantContext, number: int) -> Generation:
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.number == number:
            return generation
    raise ConfigurationError(
        f"tenant {ctx.ref.id!r} has no generation {number}",
        hint=f"rag-assets generations list {ctx.ref.id} shows its builds",
    )


@dataclass(frozen=True, slots=True)
class BuildReport:
    """The state of one build, with the results of the checks that judged it.

    Attributes:
        wanted: whether this build should answer: it is pinned, or it is the configuration's build.
        of_entries: about how many entries the build will hold.
        behind: number of documents whose present content the build lacks; None if unknown.
        waiting: number of documents that wait for a provider or a person.
        per_second: documents indexed per second, while the build is being made.
        remaining_seconds: time until it is complete at this rate; None while unknown.
        spent, planned: dollars spent so far, and estimated dollars in total; None if no price is
            known.
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
    """Return a report on each of a tenant's builds, oldest first; read-only.

    Args:
        current: report only the serving build and the builds that syncs keep up to date, because
            each reported build costs a count of all documents.
    """
    now = ctx.clock.now()
    live = ctx.catalog.generations.live(ctx.ref.id)
    active = find_active_builds(ctx, live)
    shown = [g for g in live if not current or g.number in active or g.state == "SERVING"]
    contexts, reasons = _map_contexts(ctx, shown)
    keys = {g.number: c.config_key if (c := contexts.get(g.number)) else None for g in shown}
    progress = ctx.catalog.build_progress.read(ctx.ref.id, keys)
    pin = ctx.catalog.pins.find(ctx.ref.id)
    serving = next((g for g in live if g.state == "SERVING"), None)
    wanted = {number for number, build in active.items() if not build.is_superseded}
    return [
        _build_report(
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


def _map_contexts(
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


def _build_report(
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
    indexed = progress.of_documents - (progress.behind or 0)
    share = indexed / progress.of_documents if building and progress.of_documents else 1.0
    rate = _compute_rate(progress, now) if building else None
    documents_left = (progress.behind or 0) - progress.waiting
    grace = timedelta(days=ctx.tenant.grace_days)
    goes = generation.state in {"RETIRED", "BUILDING", "COMPLETE", "HELD"} and not wanted
    last = generation.retired_at or generation.completed_at or generation.created_at
    return BuildReport(
        number=generation.number,
        state=generation.state,
        reason=generation.reason,
        differs=() if serving is None else tuple(describe_differences(generation, serving)),
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
        remaining_seconds=documents_left / rate if rate and documents_left > 0 else None,
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
        since=_find_state_start(generation),
    )


def _find_state_start(generation: Generation) -> datetime:
    entered = {
        "COMPLETE": generation.completed_at,
        "HELD": generation.completed_at,
        "SERVING": generation.published_at,
        "RETIRED": generation.retired_at,
    }
    return entered.get(generation.state) or generation.created_at


def _compute_rate(progress: BuildProgress, now: datetime) -> float | None:
    """Return the documents indexed per second in the last ten minutes; None if there were none."""
    if progress.last_at is None or now - progress.last_at > _FRESH_PERIOD:
        return None
    return progress.recent / progress.recent_seconds if progress.recent_seconds else None


def _estimate_total_cost(ctx: TenantContext, generation: Generation, share: float) -> float | None:
    """Estimate the dollars for the whole build from its finished share; None if unknown."""
    try:
        build = ctx.for_build(generation)
    except BuildNotWritable:
        return None
    if find_price(build.tenant.embedder) is None:
        return None
    return generation.spent / share if share else None
