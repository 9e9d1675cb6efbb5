"""Upkeep: old generations, compaction."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from rag_assets.pipeline.context import TenantContext, build_of
from rag_assets.pipeline.generations import drop_generation
from rag_assets.pipeline.live_keys import needed_keys
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.lake.model import Compaction

GRACE_PERIOD = timedelta(days=7)
"""How long a retired build is kept, so that returning to it changes one row only."""


def drop_old_generations(ctx: TenantContext) -> int:
    """Delete builds retired or abandoned before the grace period; returns how many."""
    before = ctx.clock.now() - GRACE_PERIOD
    generations = ctx.catalog.generations.live(ctx.ref.id)
    wanted = build_of(generations, ctx.tenant, ctx.embedder.embedder_id)
    old = [
        generation
        for generation in generations
        if (retired := _retired_at(generation, wanted)) is not None and retired < before
    ]
    for generation in old:
        drop_generation(ctx, generation)
    return len(old)


def _retired_at(generation: Generation, wanted: Generation | None) -> datetime | None:
    # A build whose configuration was replaced before completion never retires.
    abandoned = generation.state == "BUILDING" and generation != wanted
    return generation.created_at if abandoned else generation.retired_at


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
