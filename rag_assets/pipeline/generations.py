"""Generations: which builds a tenant's runs bring up to date."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rag_assets.common.errors import BuildNotWritable, ConfigurationError, IndexInconsistent
from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.publication import publish
from rag_assets.pipeline.recipes import Recipe, known_recipe, recipe_of, wanted_build
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class ActiveBuild:
    """A build that a tenant's runs bring up to date.

    Attributes:
        context: the context of stages that work on it.
        beside: whether the wanted build is a different one.
    """

    context: TenantContext
    generation: Generation
    beside: bool = False


@dataclass(frozen=True, slots=True)
class ActiveBuilds:
    """The builds that a tenant's runs bring up to date.

    Attributes:
        wanted: the build that should answer: the pinned build, otherwise the configuration's.
        beside: the build that answers while `wanted` is not published; None if `wanted` answers
            itself, or the build that answers can no longer be written.
        not_writable: why the serving build cannot be written.
    """

    wanted: ActiveBuild
    beside: ActiveBuild | None = None
    not_writable: str | None = None

    @property
    def all(self) -> tuple[ActiveBuild, ...]:
        """Return the one or two builds."""
        return (self.wanted,) if self.beside is None else (self.wanted, self.beside)


def active_builds(ctx: TenantContext) -> ActiveBuilds:
    """Return the builds to bring up to date; open the configuration's build if it does not exist.

    A tenant's first build serves from the start. A later build serves when it is complete.

    Raises:
        IndexInconsistent: the index of one of the builds was lost or replaced.
        BuildNotWritable: the pinned build can no longer be brought up to date.
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
    """Return those of the given builds that runs bring up to date, by number; open no build."""
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
    """Record how a tenant's builds were made, before its configuration is replaced.

    Builds made by earlier versions of the program have no recipe. The recipe is known only for
    builds of the present configuration.

    Args:
        catalog: holds the tenant.
        record: the tenant, with the configuration that will be replaced.
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
    """Verify that a build's index is the one that was written to, and can be searched.

    The loss of an index is recorded in the catalog; `drift_offenders` repairs it.

    Raises:
        IndexInconsistent: the index is missing, or was replaced by one of the same name.
        IndexUnavailable: the index is closed, blocked or red.
    """
    presence = ctx.store.indexes.presence(index_of(generation))
    if presence != "present":
        what = "is gone" if presence == "missing" else "was replaced by a different index"
        difference = f"index {generation.index_name!r} of tenant {ctx.ref.id!r} {what}"
        if presence == "missing":
            ctx.catalog.events.write(ctx.ref, "drift_found", [{"counts": [difference]}])
        raise IndexInconsistent(
            difference,
            hint="restore the index without embedding any text: rag-assets sync"
            f" {ctx.ref.id} --repair",
        )
    ctx.store.indexes.require_usable(generation.index_name)


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
    # Slices are shorter here, because an edit reaches the serving build only after the present
    # slice.
    return ActiveBuild(replace(ctx, limits=ctx.limits.halved), generation)


def _with_recipe(ctx: TenantContext, generation: Generation) -> Generation:
    """Return a build of the configuration, and record its recipe from the present configuration."""
    recipe = known_recipe(generation, ctx.tenant)
    if recipe is None or recipe == recipe_of(generation):
        return generation
    ctx.guard()
    return ctx.catalog.generations.set_recipe(ctx.ref, generation, recipe.as_row())
