"""Upkeep: old generations, compaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import drop_generation
from rag_assets.pipeline.live_keys import needed_keys
from rag_assets.pipeline.recipes import wanted_build
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.lake.model import Compaction

GRACE_PERIOD = timedelta(days=7)
"""How long rows of deleted documents and closed batches are kept."""


def drop_old_generations(ctx: TenantContext) -> int:
    """Delete builds retired or abandoned for longer than the grace period; returns how many."""
    before = ctx.clock.now() - timedelta(days=ctx.tenant.grace_days)
    generations = ctx.catalog.generations.live(ctx.ref.id)
    wanted = wanted_build(generations, ctx.tenant, ctx.embedder.embedder_id)
    kept = {g.number for g in (wanted,) if g is not None}
    old = [g for g in generations if g.number not in kept and _is_over(g, before)]
    for generation in old:
        drop_generation(ctx, generation)
    return len(old)


def _is_over(generation: Generation, before: datetime) -> bool:
    """Whether a build that is not wanted is to go."""
    if generation.state == "REMOVING":
        return True
    if generation.state == "SERVING":
        return False
    # A build whose configuration was replaced before its completion never retires.
    last = generation.retired_at or generation.completed_at or generation.created_at
    return last < before


def compact(ctx: TenantContext) -> Mapping[str, Compaction]:
    """Merge the lake's small files, and delete data that no document or build needs."""
    drop_old_generations(ctx)
    ctx.guard()
    before = ctx.clock.now() - GRACE_PERIOD
    ctx.catalog.documents.purge_deleted(ctx.ref, before)
    ctx.catalog.batches.delete_closed(ctx.ref, before)
    live = needed_keys(ctx).kept
    compacted = ctx.lake.compact(live)
    if live.embedders is not None:
        ctx.catalog.probes.keep_only(ctx.ref, live.embedders)
        ctx.catalog.question_vectors.keep_only(ctx.ref, live.embedders)
    return compacted


def compact_if_due(ctx: TenantContext) -> bool:
    """Merge the lake's small files if a large import left so many that reads slow down.

    Returns:
        whether it merged them.
    """
    if not ctx.lake.needs_compaction():
        return False
    ctx.guard()
    ctx.lake.compact()
    return True
