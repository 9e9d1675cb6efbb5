"""Actions of a person on builds: publish one, roll back to a former one, discard one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.formatting import counted
from rag_assets.pipeline.catalog_mark import require_current
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.erasure import settle_discard
from rag_assets.pipeline.generations import active_builds, require_index
from rag_assets.pipeline.judging import Judge
from rag_assets.pipeline.publication import (
    publish,
    publish_if_passed,
    require_entries,
    unfinished_count,
)
from rag_assets.pipeline.recipes import build_of
from rag_assets.privacy.masker import masker_of
from rag_assets.storage.catalog.builds.generations import Generation, Pin


@dataclass(frozen=True, slots=True)
class Order:
    """Who ordered an action on a build, and why; both are kept with the build and in events.

    Attributes:
        reason: the reason, with credentials masked.
    """

    by: str
    reason: str

    @classmethod
    def of(cls, ctx: TenantContext, by: str, reason: str) -> Order:
        """Return an order, with the credentials in its reason masked."""
        return cls(by, masker_of(ctx.settings.local).text(reason))


def unpin(ctx: TenantContext, order: Order) -> bool:
    """Let the configuration decide again which build answers; return whether one was pinned."""
    pin = ctx.catalog.pins.find(ctx.ref.id)
    if pin is None:
        return False
    ctx.guard()
    ctx.catalog.pins.delete(ctx.ref)
    payload = {"generation": pin.generation, "by": order.by}
    ctx.catalog.events.write(ctx.ref, "generation_unpinned", [payload])
    return True


def publish_build(
    ctx: TenantContext, order: Order, judge: Judge | None, *, number: int | None, force: bool
) -> Generation:
    """Publish the build of the configuration, if it passes every check or is forced.

    Args:
        ctx: the tenant's context, as configured; the caller holds the tenant's lock.
        order: who publishes the build, and why.
        judge: see publish_when_complete.
        number: the expected build; None: whichever the configuration asks for.
        force: publish the build without judging it.

    Returns:
        The build; it is held, not published, if a check failed.

    Raises:
        ConfigurationError: the configuration's build has another number, or is not complete.
        IndexInconsistent: the build's index was lost, or holds a wrong number of entries.
    """
    if number is not None:
        require_configured(ctx, number)
    build = active_builds(ctx).wanted
    generation = build.generation
    if generation.state != "SERVING":
        left = unfinished_count(build.context, generation)
        if left:
            raise ConfigurationError(
                f"generation {generation.number} of tenant {ctx.ref.id!r} is not complete:"
                f" {counted(left, 'document')} to go",
                hint=f"complete it with `rag-assets sync {ctx.ref.id}`; `rag-assets documents"
                f" {ctx.ref.id}`"
                " shows documents that wait",
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
    return _present(ctx, generation.number)


def require_configured(ctx: TenantContext, number: int) -> None:
    """Require that this is the build of the tenant's configuration.

    Raises:
        ConfigurationError: the configuration's build has another number, or does not exist.
    """
    _present(ctx, number)
    live = ctx.catalog.generations.live(ctx.ref.id)
    configured = build_of(live, ctx.tenant, ctx.embedder.embedder_id)
    if configured is None or number != configured.number:
        which = "not built yet" if configured is None else f"generation {configured.number}"
        raise ConfigurationError(
            f"generation {number} of tenant {ctx.ref.id!r} is not the build of the configuration,"
            f" which is {which}: the next sync would publish the configuration's build again",
            hint="pin this generation with `rag-assets generations rollback"
            f" {ctx.ref.id} --to {number} --reason ...`, or change tenants.yaml",
        )


def build_to_return_to(ctx: TenantContext, number: int | None) -> Generation:
    """Return the build to roll back to: the given one, or the last one that answered before.

    An interrupted rollback continues to the build that it pinned.

    Raises:
        ConfigurationError: no such build exists, it was never published, or no number is given and
            a pinned build already answers.
        BuildNotWritable: the build's recipe or model is not available.
        IndexInconsistent: the build's index was lost.
    """
    live = ctx.catalog.generations.live(ctx.ref.id)
    generation = _former(ctx, live) if number is None else _present(ctx, number)
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


def roll_back(ctx: TenantContext, generation: Generation, order: Order, *, now: bool) -> bool:
    """Pin a build that answered before, and let it answer once it is up to date.

    Args:
        ctx: the tenant's context, as configured; the caller holds the tenant's lock.
        generation: the build that build_to_return_to returned.
        order: who rolls back, and why.
        now: let it answer at once; the next sync brings it up to date.

    Returns:
        Whether it answers already.
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


def discard(ctx: TenantContext, number: int, order: Order) -> Generation:
    """Delete a build that does not answer; return it as it was before.

    Raises:
        ConfigurationError: the build does not exist, answers searches, or is pinned.
        CatalogSetBack: the catalog lacks changes, and so may lack builds.
    """
    require_current(ctx)
    generation = _present(ctx, number)
    if generation.state == "SERVING":
        raise ConfigurationError(
            f"generation {number} of tenant {ctx.ref.id!r} answers: it cannot be discarded",
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
    begun = ctx.catalog.erasures.begin_discard(ctx.ref, generation, by=order.by, at=at)
    settle_discard(ctx, begun)
    payload = {"generation": number, "by": order.by, "state": generation.state}
    ctx.catalog.events.write(ctx.ref, "generation_discarded", [payload])
    return generation


def _former(ctx: TenantContext, live: Sequence[Generation]) -> Generation:
    pin = ctx.catalog.pins.find(ctx.ref.id)
    if pin is None:
        return _last_retired(ctx, live)
    pinned = _present(ctx, pin.generation)
    if pinned.state == "SERVING":
        since = "" if pin.at is None else f" since {pin.at:%Y-%m-%d %H:%M} UTC"
        raise ConfigurationError(
            f"generation {pinned.number} of tenant {ctx.ref.id!r} answers already, pinned by"
            f" {pin.by}{since}: {pin.reason}",
            hint="choose the build to roll back to with --to;"
            f" rag-assets generations list {ctx.ref.id} shows all builds",
        )
    return pinned


def _last_retired(ctx: TenantContext, live: Sequence[Generation]) -> Generation:
    retired = [g for g in live if g.state == "RETIRED" and g.retired_at is not None]
    if not retired:
        raise ConfigurationError(
            f"tenant {ctx.ref.id!r} has no former build to roll back to",
            hint=f"rag-assets generations list {ctx.ref.id} shows its builds",
        )
    return max(retired, key=lambda g: (g.retired_at or g.created_at, g.number))


def _present(ctx: TenantContext, number: int) -> Generation:
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.number == number:
            return generation
    raise ConfigurationError(
        f"tenant {ctx.ref.id!r} has no generation {number}",
        hint=f"rag-assets generations list {ctx.ref.id} shows its builds",
    )
