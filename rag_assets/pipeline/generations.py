"""Generations: which build a tenant's runs write to, and when it begins to serve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rag_assets.common.errors import BuildNotWritable, ConfigurationError, IndexInconsistent
from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.judging import Finding, Judge
from rag_assets.pipeline.recipes import Recipe, known_recipe, recipe_of, wanted_build
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.generations import Generation, Pin
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.storage.index.store import VectorStore
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class ActiveBuild:
    """A build that a tenant's runs bring up to date.

    Attributes:
        context: the context of stages that work on it.
        beside: whether another build is wanted.
    """

    context: TenantContext
    generation: Generation
    beside: bool = False


@dataclass(frozen=True, slots=True)
class ActiveBuilds:
    """The builds that a tenant's runs bring up to date.

    Attributes:
        wanted: the one that is to answer: the pinned one, else that of the configuration.
        beside: the one that answers while `wanted` is not published; None where `wanted` answers
            itself, or the other one cannot be written any more.
        not_writable: why the build that answers cannot be written.
    """

    wanted: ActiveBuild
    beside: ActiveBuild | None = None
    not_writable: str | None = None

    @property
    def all(self) -> tuple[ActiveBuild, ...]:
        """The one or two builds."""
        return (self.wanted,) if self.beside is None else (self.wanted, self.beside)


def active_builds(ctx: TenantContext) -> ActiveBuilds:
    """The builds to bring up to date; opens that of the configuration if none exists.

    A tenant's first build serves from the start; a later one when it is complete.

    Raises:
        IndexInconsistent: the index of one of them was lost or replaced.
        BuildNotWritable: the pinned build cannot be brought up to date any more.
    """
    live = [g for g in ctx.catalog.generations.live(ctx.ref.id) if g.state != "REMOVING"]
    present = wanted_build(live, ctx.tenant, ctx.embedder.embedder_id)
    if present is not None:
        require_index(ctx, present)
        present = _with_recipe(ctx, present)
    else:
        present = _open(ctx)
        if not live:
            publish(ctx, present)
            present = replace(present, state="SERVING")
    wanted = _wanted_build(ctx, present)
    serving = next((g for g in live if g.state == "SERVING"), None)
    if serving is None or serving.number == present.number:
        return ActiveBuilds(wanted)
    try:
        beside = ActiveBuild(ctx.for_build(serving), serving, beside=True)
    except BuildNotWritable as error:
        return ActiveBuilds(wanted, not_writable=error.message)
    require_index(ctx, serving)
    return ActiveBuilds(wanted, beside)


def found_builds(ctx: TenantContext, live: Sequence[Generation]) -> dict[int, ActiveBuild]:
    """Those of these builds that runs bring up to date, by number; opens none."""
    found: dict[int, ActiveBuild] = {}
    wanted = wanted_build(live, ctx.tenant, ctx.embedder.embedder_id)
    if wanted is not None:
        with suppress(BuildNotWritable):
            found[wanted.number] = _wanted_build(ctx, wanted)
    serving = next((g for g in live if g.state == "SERVING"), None)
    if serving is not None and serving != wanted:
        with suppress(BuildNotWritable):
            found[serving.number] = ActiveBuild(ctx.for_build(serving), serving, beside=True)
    return found


def fill_in_recipes(catalog: Catalog, record: TenantRecord) -> None:
    """Record how builds of a tenant were made, before its configuration is replaced.

    Builds of earlier versions have no recipe. It is known for those that the present
    configuration leads to.

    Args:
        catalog: holds the tenant.
        record: with the configuration that will be replaced.
    """
    unknown = [g for g in catalog.generations.live(record.id) if g.recipe is None]
    if not unknown or record.state == "REMOVING":
        return
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        return
    for generation in unknown:
        recipe = known_recipe(generation, tenant)
        if recipe is not None:
            catalog.generations.set_recipe(record.ref, generation, recipe.as_row())


def require_index(ctx: TenantContext, generation: Generation) -> None:
    """Verify that a build's index is the one that was written to.

    Raises:
        IndexInconsistent: it is missing, or was replaced by another of the same name.
    """
    require_same_index(ctx.store, ctx.ref.id, generation)


def require_same_index(store: VectorStore, tenant_id: str, generation: Generation) -> None:
    """As require_index, for callers without a stage context."""
    presence = store.indexes.presence(index_of(generation))
    if presence != "present":
        what = "is gone" if presence == "missing" else "was replaced by another"
        raise IndexInconsistent(
            f"index {generation.index_name!r} of tenant {tenant_id!r} {what}",
            hint=f"restore it without embedding anything: rag-assets sync {tenant_id} --repair",
        )


def publish(
    ctx: TenantContext,
    generation: Generation,
    *,
    findings: Sequence[Finding] | None = None,
    pin: Pin | None = None,
    notes: Mapping[str, object] | None = None,
) -> None:
    """Make a build serve: one transaction, then the alias that is derived from it.

    Args:
        ctx: of the tenant.
        generation: the build.
        findings: of the checks that judged it.
        pin: set with it.
        notes: more for the event.
    """
    ctx.guard()
    checks = None if findings is None else [finding.as_row() for finding in findings]
    ctx.catalog.generations.publish(ctx.ref, generation, checks=checks, pin=pin)
    ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))
    event = {"generation": generation.number, "embedder": generation.embedder_id, **(notes or {})}
    ctx.catalog.events.write(ctx.ref, "generation_published", [event])


def publish_when_complete(
    ctx: TenantContext, generation: Generation, judge: Judge | None = None
) -> bool:
    """Publish a build that is not serving once nothing is pending and its entries are complete.

    A pinned build is published without being judged: it answered before.

    Args:
        ctx: the context of stages that work on it.
        generation: the build that is wanted.
        judge: evaluates the checks that decide whether it is published; None: none do.

    Returns:
        whether it serves now.

    Raises:
        IndexInconsistent: it holds a wrong number of entries.
    """
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is not None and serving.number == generation.number:
        _repair_alias(ctx, generation)
        return True
    if unfinished_count(ctx, generation):
        return False
    require_entries(ctx, generation)
    if generation.state in {"BUILDING", "RETIRED"} and not generation.pinned:
        ctx.guard()
        generation = ctx.catalog.generations.mark_complete(ctx.ref, generation)
    if generation.pinned:
        publish(ctx, generation, notes={"pinned": True})
        return True
    if generation.state == "HELD" or ctx.tenant.publish == "manual":
        return False
    return publish_if_passed(ctx, generation, judge)


def publish_if_passed(ctx: TenantContext, generation: Generation, judge: Judge | None) -> bool:
    """Publish a complete build if it passes every check, else hold it with the reason.

    Returns:
        whether it serves now.
    """
    findings = [] if judge is None else judge(ctx, generation)
    blocking = [finding for finding in findings if finding.blocks]
    ctx.guard()
    if not blocking:
        publish(ctx, generation, findings=findings)
        return True
    reason = "; ".join(f"{finding.check}: {finding.description}" for finding in blocking)
    checks = [finding.as_row() for finding in findings]
    ctx.catalog.generations.hold(ctx.ref, generation, reason, checks)
    event = {"generation": generation.number, "reason": reason}
    ctx.catalog.events.write(ctx.ref, "generation_held", [event])
    ctx.log(f"generation {generation.number} is held: {reason}")
    return False


def unfinished_count(ctx: TenantContext, generation: Generation) -> int:
    """The number of documents that a build lacks, those included that are tried again later."""
    return ctx.catalog.index.unfinished_count(ctx.ref.id, generation.number, ctx.config_key)


def require_entries(ctx: TenantContext, generation: Generation) -> None:
    """Require that a build holds as many entries as it should.

    Raises:
        IndexInconsistent: it holds another number.
    """
    expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
    live = ctx.store.entries.count(generation.index_name, ctx.owner(generation))
    if live != expected:
        raise IndexInconsistent(
            f"generation {generation.number} of tenant {ctx.ref.id!r} holds {live} entries,"
            f" expected {expected}: it is not published",
            hint=f"rag-assets sync {ctx.ref.id} --repair",
        )


def drop_generation(ctx: TenantContext, generation: Generation) -> None:
    """Delete a build's entries, then its row; an interrupted removal is continued later."""
    ctx.guard()
    generation = ctx.catalog.generations.begin_removal(ctx.ref, generation)
    ids = [
        entry.id
        for entry in ctx.store.entries.scan(generation.index_name, ctx.ref.id)
        if (entry.tenant, entry.incarnation, entry.generation)
        == (ctx.ref.id, ctx.ref.incarnation, generation.number)
    ]
    if ids:
        ctx.guard()
        ctx.store.entries.delete(generation.index_name, ctx.ref.id, ids)
    ctx.catalog.generations.delete(ctx.ref, generation)
    alone = generation.index_name in ctx.store.indexes.dedicated(ctx.ref.id)
    if alone and not ctx.catalog.generations.in_index(generation.index_name):
        ctx.store.indexes.drop(generation.index_name)


def _repair_alias(ctx: TenantContext, generation: Generation) -> None:
    """Point the alias again where a run was killed right after it had published."""
    if not alias_is_right(ctx, generation):
        ctx.guard()
        ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))


def alias_is_right(ctx: TenantContext, generation: Generation) -> bool:
    """Whether the tenant's alias shows this build only."""
    return ctx.store.indexes.is_published(generation.index_name, ctx.owner(generation))


def _open(ctx: TenantContext) -> Generation:
    ctx.guard()
    key, spec = ctx.new_build
    index = ctx.store.indexes.place(spec, ctx.ref.id, ctx.tenant.index.placement)
    return ctx.catalog.generations.create(
        ctx.ref,
        key=key,
        index_name=index.name,
        index_identity=index.identity,
        embedder_id=ctx.embedder.embedder_id,
        embedder=ctx.tenant.embedder.model_dump(mode="json", exclude_none=True),
        dimensions=ctx.embedder.dimensions,
        recipe=Recipe.of(ctx.tenant, spec.vector_index).as_row(),
    )


def _wanted_build(ctx: TenantContext, generation: Generation) -> ActiveBuild:
    ctx = ctx.for_build(generation)
    if generation.state == "SERVING":
        return ActiveBuild(ctx, generation)
    # Shorter slices: an edit waits for the end of one before it reaches the build that answers.
    return ActiveBuild(replace(ctx, limits=ctx.limits.halved), generation)


def _with_recipe(ctx: TenantContext, generation: Generation) -> Generation:
    """A build of the configuration, its recipe recorded as the configuration has it now."""
    recipe = known_recipe(generation, ctx.tenant)
    if recipe is None or recipe == recipe_of(generation):
        return generation
    ctx.guard()
    return ctx.catalog.generations.set_recipe(ctx.ref, generation, recipe.as_row())
