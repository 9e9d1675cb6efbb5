"""Generations: choose the builds that a tenant's runs bring up to date, and the build that answers.

A build answers once it is complete and judged. Checks depend on Dagster and the pipeline does not,
so callers pass a function that evaluates them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from rag_assets.common.errors import BuildNotWritable, ConfigurationError, IndexInconsistent
from rag_assets.pipeline.context import TenantContext, build_index_ref
from rag_assets.pipeline.recipes import Recipe, find_recipe, find_wanted_build, read_recipe
from rag_assets.storage.catalog.builds.generations import Generation, Pin
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """The result of one check on a build.

    Attributes:
        check: its full name, such as "search_index.drift".
        blocks: whether the build must not be published.
    """

    check: str
    passed: bool
    description: str
    blocks: bool = False

    def as_row(self) -> dict[str, Any]:
        """Return the finding as stored in the build's row."""
        return {"check": self.check, "passed": self.passed, "description": self.description}


Judge: TypeAlias = Callable[[TenantContext, Generation], Sequence[CheckFinding]]
"""Evaluates the checks that a build must pass; takes the context of stages that work on the
build."""


def publish(
    ctx: TenantContext,
    generation: Generation,
    *,
    findings: Sequence[CheckFinding] | None = None,
    pin: Pin | None = None,
    notes: Mapping[str, object] | None = None,
) -> None:
    """Make a build serve, and pin it if `pin` is given; then point the tenant's alias to it."""
    ctx.guard()
    checks = None if findings is None else [finding.as_row() for finding in findings]
    ctx.catalog.generations.publish(ctx.ref, generation, checks=checks, pin=pin)
    ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))
    event = {"generation": generation.number, "embedder": generation.embedder_id, **(notes or {})}
    ctx.catalog.events.write(ctx.ref, "generation_published", [event])


def publish_when_complete(
    ctx: TenantContext, generation: Generation, judge: Judge | None = None
) -> bool:
    """Publish a wanted build once no document is pending and all entries exist.

    A pinned build is published without being judged, because it has served before. Return whether
    the build serves now.

    Raises:
        IndexInconsistent: the build holds a wrong number of entries.
    """
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is not None and serving.number == generation.number:
        # A run may have been killed right after it published the build.
        if not is_alias_right(ctx, generation):
            ctx.guard()
            ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))
        return True
    if count_unfinished(ctx, generation):
        return False
    if serving is not None:
        # Retry documents whose serving version is missing in the build.
        ctx.guard()
        if ctx.catalog.former_versions.retry(ctx.ref, serving.number, generation.number):
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
    """Publish a complete build if it passes every check, else hold it; return whether it serves."""
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


def count_unfinished(ctx: TenantContext, generation: Generation) -> int:
    """Return how many documents a build lacks; a source that is partly listed counts as one."""
    unfinished = ctx.catalog.index.count_unfinished(ctx.ref.id, generation.number, ctx.config_key)
    return unfinished + ctx.catalog.syncs.count_partly_listed(ctx.ref.id)


def require_entries(ctx: TenantContext, generation: Generation) -> None:
    """Require that a build holds as many entries as it should."""
    expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
    live = ctx.store.entries.count(generation.index_name, ctx.owner(generation))
    if live != expected:
        raise IndexInconsistent(
            f"generation {generation.number} of tenant {ctx.ref.id!r} holds {live} entries,"
            f" expected {expected}: it is not published",
            hint=f"write the missing entries again: rag-assets sync {ctx.ref.id} --repair",
        )


def drop_generation(ctx: TenantContext, generation: Generation) -> None:
    """Delete a build's entries, then its row; delete the whole index if it holds no other build."""
    ctx.guard()
    generation = ctx.catalog.generations.begin_removal(ctx.ref, generation)
    dedicated = generation.index_name in ctx.store.indexes.dedicated(ctx.ref.id)
    ctx.guard()
    if dedicated and ctx.catalog.generations.count_in_index(generation.index_name) == 1:
        ctx.store.indexes.drop(generation.index_name)
    else:
        _delete_entries(ctx, generation)
    if generation.vectors_beside is not None and ctx.store.vectors is not None:
        ctx.store.vectors.drop(ctx.owner(generation))
    ctx.guard()
    ctx.catalog.generations.delete(ctx.ref, generation)


def _delete_entries(ctx: TenantContext, generation: Generation) -> None:
    ids = [
        entry.id
        for entry in ctx.store.entries.scan(generation.index_name, ctx.ref.id)
        if (entry.tenant, entry.incarnation, entry.generation)
        == (ctx.ref.id, ctx.ref.incarnation, generation.number)
    ]
    if ids:
        ctx.guard()
        ctx.store.entries.delete(generation.index_name, ctx.ref.id, ids)


def is_alias_right(ctx: TenantContext, generation: Generation) -> bool:
    """Return whether the tenant's alias points to this build only."""
    return ctx.store.indexes.is_published(generation.index_name, ctx.owner(generation))


@dataclass(frozen=True, slots=True)
class ActiveBuild:
    """A build that a tenant's runs bring up to date.

    It is superseded if the wanted build is a different one.
    """

    context: TenantContext
    generation: Generation
    is_superseded: bool = False


@dataclass(frozen=True, slots=True)
class ActiveBuilds:
    """The builds that a tenant's runs bring up to date.

    Attributes:
        wanted: the build that should answer: the pinned build, otherwise the configuration's.
        superseded: the build that answers while `wanted` is not published; None if `wanted` answers
            itself, or the build that answers can no longer be written.
    """

    wanted: ActiveBuild
    superseded: ActiveBuild | None = None

    @property
    def all(self) -> tuple[ActiveBuild, ...]:
        """Return the wanted build, and the superseded build if there is one."""
        return (self.wanted,) if self.superseded is None else (self.wanted, self.superseded)


def open_active_builds(ctx: TenantContext) -> ActiveBuilds:
    """Return the builds to bring up to date; open the configuration's build if it does not exist.

    A tenant's first build serves from the start. A later build serves when it is complete.

    Raises:
        IndexInconsistent: the index of one of the builds was lost or replaced.
        BuildNotWritable: the pinned build can no longer be brought up to date.
    """
    live = [g for g in ctx.catalog.generations.live(ctx.ref.id) if g.state != "REMOVING"]
    present = find_wanted_build(live, ctx.tenant, ctx.embedder.embedder_id)
    if present is not None:
        require_index(ctx, present)
        present = _record_recipe(ctx, present)
    else:
        present = _open_build(ctx)
        if not live:
            publish(ctx, present)
            present = replace(present, state="SERVING")
    wanted = _create_active_build(ctx, present)
    serving = next((g for g in live if g.state == "SERVING"), None)
    if serving is None or serving.number == present.number:
        return ActiveBuilds(wanted)
    try:
        superseded = ActiveBuild(ctx.for_build(serving), serving, is_superseded=True)
    except BuildNotWritable:
        return ActiveBuilds(wanted)
    require_index(ctx, serving)
    return ActiveBuilds(wanted, superseded)


def find_active_builds(ctx: TenantContext, live: Sequence[Generation]) -> dict[int, ActiveBuild]:
    """Return the live builds that runs bring up to date, by number, without opening a new one."""
    builds: dict[int, ActiveBuild] = {}
    wanted = find_wanted_build(live, ctx.tenant, ctx.embedder.embedder_id)
    if wanted is not None:
        with suppress(BuildNotWritable):
            builds[wanted.number] = _create_active_build(ctx, wanted)
    serving = next((g for g in live if g.state == "SERVING"), None)
    if serving is not None and serving != wanted:
        with suppress(BuildNotWritable):
            builds[serving.number] = ActiveBuild(
                ctx.for_build(serving), serving, is_superseded=True
            )
    return builds


def fill_in_recipes(catalog: Catalog, record: TenantRecord) -> None:
    """Record the recipes of builds that earlier versions of this program made without them.

    This must precede a change of the configuration, because a recipe is known only for builds of
    the current configuration.
    """
    unknown = [g for g in catalog.generations.live(record.id) if g.recipe is None]
    if not unknown or record.state == "REMOVING":
        return
    try:
        tenant = Tenant.from_config(record.config)
    except ConfigurationError:
        return
    for generation in unknown:
        recipe = find_recipe(generation, tenant)
        if recipe is not None:
            catalog.generations.set_recipe(record.ref, generation, recipe.as_row())


def require_index(ctx: TenantContext, generation: Generation) -> None:
    """Require that a build's index can be searched, and is the one that the build was written to.

    The loss of an index is recorded in the catalog; `drift_offenders` repairs it.
    """
    presence = ctx.store.indexes.presence(build_index_ref(generation))
    if presence != "present":
        problem = "is gone" if presence == "missing" else "was replaced by a different index"
        difference = f"index {generation.index_name!r} of tenant {ctx.ref.id!r} {problem}"
        if presence == "missing":
            ctx.catalog.events.write(ctx.ref, "drift_found", [{"counts": [difference]}])
        raise IndexInconsistent(
            difference,
            hint="restore the index without embedding any text: rag-assets sync"
            f" {ctx.ref.id} --repair",
        )
    ctx.store.indexes.require_usable(generation.index_name)


def _open_build(ctx: TenantContext) -> Generation:
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
        recipe=Recipe.from_tenant(ctx.tenant, spec.vector_index).as_row(),
    )


def _create_active_build(ctx: TenantContext, generation: Generation) -> ActiveBuild:
    ctx = ctx.for_build(generation)
    if generation.state == "SERVING":
        return ActiveBuild(ctx, generation)
    # Slices are shorter here, because an edit reaches the serving build only after the present
    # slice.
    return ActiveBuild(replace(ctx, limits=ctx.limits.halved), generation)


def _record_recipe(ctx: TenantContext, generation: Generation) -> Generation:
    """Record the recipe of a build if the current configuration produces it; return the build."""
    recipe = find_recipe(generation, ctx.tenant)
    if recipe is None or recipe == read_recipe(generation):
        return generation
    ctx.guard()
    return ctx.catalog.generations.set_recipe(ctx.ref, generation, recipe.as_row())
