"""Generations: which build a tenant's runs write to, and when it begins to serve."""

from __future__ import annotations

from rag_assets.common.errors import IndexInconsistent
from rag_assets.pipeline.context import TenantContext, build_of, config_key, index_of
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.index.store import VectorStore


def target_generation(ctx: TenantContext) -> Generation:
    """Get the build of the tenant's configuration; open one if none exists.

    A tenant's first build serves from the start; a later one when it is complete.

    Raises:
        IndexInconsistent: the index of that build was lost or replaced.
    """
    live = [g for g in ctx.catalog.generations.live(ctx.ref.id) if g.state != "REMOVING"]
    present = build_of(live, ctx.tenant, ctx.embedder.embedder_id)
    if present is not None:
        require_index(ctx, present)
        return present
    generation = _open(ctx)
    if not live:
        publish(ctx, generation)
    return generation


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


def publish(ctx: TenantContext, generation: Generation) -> None:
    """Make a build serve: one row in the catalog, then the alias that is derived from it."""
    ctx.guard()
    ctx.catalog.generations.publish(ctx.ref, generation)
    ctx.store.indexes.publish(generation.index_name, ctx.owner(generation))
    payload = {"generation": generation.number, "embedder": generation.embedder_id}
    ctx.catalog.events.write(ctx.ref, "generation_published", [payload])


def publish_when_complete(ctx: TenantContext, generation: Generation) -> None:
    """Publish a build that is not serving once nothing is pending and its entries are complete.

    Raises:
        IndexInconsistent: it holds a wrong number of entries.
    """
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is not None and serving.number == generation.number:
        _repair_alias(ctx, generation)
        return
    key = config_key(ctx.tenant, ctx.embedder.embedder_id)
    if ctx.catalog.index.unfinished_count(ctx.ref.id, generation.number, key):
        return
    expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
    live = ctx.store.entries.count(generation.index_name, ctx.owner(generation))
    if live != expected:
        raise IndexInconsistent(
            f"generation {generation.number} of tenant {ctx.ref.id!r} holds {live} entries,"
            f" expected {expected}: it is not published",
            hint=f"rag-assets sync {ctx.ref.id} --repair",
        )
    publish(ctx, generation)


def drop_generation(ctx: TenantContext, generation: Generation) -> None:
    """Delete a build's entries, then its row."""
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
    )
