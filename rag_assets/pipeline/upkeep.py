"""Upkeep: drop old generations, compact the lake, and delete unneeded data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta

from rag_assets.common.formatting import format_count
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import drop_generation
from rag_assets.pipeline.mark_keeper import find_deletion_refusal, may_delete
from rag_assets.pipeline.recipes import find_wanted_build
from rag_assets.pipeline.removal import delete_strays
from rag_assets.pipeline.uploads import sweep_blobs
from rag_assets.pipeline.versions import find_needed_keys
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.lake.model import Compaction
from rag_assets.storage.lake.store import Lake

GRACE_PERIOD = timedelta(days=7)
"""How long rows of deleted documents and closed batches are kept."""


def drop_old_generations(ctx: TenantContext) -> int:
    """Delete builds retired or abandoned for longer than the grace period; return how many.

    No build is deleted while the catalog may have been restored from an older dump. While the clock
    is not trusted, only interrupted removals are continued.
    """
    now = get_deletion_time(ctx.catalog, ctx.clock)
    grace = timedelta(days=ctx.tenant.grace_days)
    before = None if isinstance(now, ClockDoubt) else now - grace
    generations = ctx.catalog.generations.live(ctx.ref.id)
    wanted = find_wanted_build(generations, ctx.tenant, ctx.embedder.embedder_id)
    kept_numbers = {g.number for g in (wanted,) if g is not None}
    old = [
        g for g in generations if g.number not in kept_numbers and _is_due_for_deletion(g, before)
    ]
    if old and not may_delete(ctx):
        return 0
    for generation in old:
        drop_generation(ctx, generation)
    return len(old)


def _is_due_for_deletion(generation: Generation, before: datetime | None) -> bool:
    """Return whether an unwanted build is to be deleted.

    Args:
        before: a build is deleted if it was retired, completed or created before this time; None:
            only interrupted removals are continued.
    """
    if generation.state == "REMOVING":
        return True
    if generation.state == "SERVING" or before is None:
        return False
    # A build whose configuration was replaced before it was complete is never retired.
    last = generation.retired_at or generation.completed_at or generation.created_at
    return last < before


def compact_lake(ctx: TenantContext) -> Mapping[str, Compaction]:
    """Merge the lake's small files, and delete data that no document or build needs.

    Nothing is changed while the catalog may have been restored from an older dump, because it may
    not know which data is needed. While the clock is not trusted, no data is deleted because of its
    age.
    """
    if not may_delete(ctx):
        return {}
    drop_old_generations(ctx)
    ctx.guard()
    now = get_deletion_time(ctx.catalog, ctx.clock)
    if not isinstance(now, ClockDoubt):
        before = now - GRACE_PERIOD
        ctx.catalog.documents.purge_deleted(ctx.ref, before)
        ctx.catalog.batches.delete_closed(ctx.ref, before)
    ctx.catalog.uploads.forget_texts(ctx.ref)
    live = find_needed_keys(ctx).keys_to_keep
    compacted = ctx.lake.compact(live)
    if live.embedders is not None:
        ctx.catalog.probes.keep_only(ctx.ref, live.embedders)
        ctx.catalog.question_vectors.keep_only(ctx.ref, live.embedders)
    return compacted


def compact_tenant(ctx: TenantContext) -> list[str]:
    """Compact a tenant's lake, and delete unneeded files; return lines about the results."""
    if (refused := find_deletion_refusal(ctx)) is not None:
        return [f"nothing is deleted: {refused.message}; {refused.hint}"]
    compacted = compact_lake(ctx)
    lines = describe_compactions(compacted)
    if swept := sweep_blobs(ctx.catalog, ctx.blobs, ctx.ref, ctx.clock):
        lines = [*lines, f"{swept} unneeded uploaded files deleted"]
    dead = sum(result.dead for result in compacted.values())
    ctx.catalog.events.write(ctx.ref, "compacted", [{"rows": dead, "files": swept}])
    return lines or ["the lake is empty"]


def delete_leftovers(
    catalog: Catalog, lake: Lake, store: VectorStore, blobs: BlobStore, log: Callable[[str], None]
) -> int:
    """Delete data that late writers left for removed tenants, and expunge deleted entries."""
    swept = delete_strays(catalog, lake, store, blobs)
    expunge_indexes(store, store.indexes.names(), log)
    return swept


def expunge_indexes(
    store: VectorStore, index_names: Iterable[str], log: Callable[[str], None]
) -> None:
    """Remove deleted entries from the files of indexes; log a line about each."""
    for index_name in index_names:
        remaining = store.indexes.expunge(index_name)
        if remaining is None:
            log(f"{index_name}: Elastic Serverless rewrites its files by itself")
        else:
            log(f"{index_name}: {remaining} deleted entries left in its files")


def expunge_pruned(
    catalog: Catalog, store: VectorStore, tenant: TenantRef, log: Callable[[str], None]
) -> None:
    """Remove pruned entries from index files, once after each pruning; needs no lock."""
    pruned = catalog.events.latest(tenant.id, kind="pruned", limit=1)
    expunged = catalog.events.latest(tenant.id, kind="pruned_expunged", limit=1)
    if not pruned or (expunged and expunged[0].id > pruned[0].id):
        return
    names = sorted({build.index_name for build in catalog.generations.live(tenant.id)})
    expunge_indexes(store, names, log)
    catalog.events.write(tenant, "pruned_expunged", [{"indexes": len(names)}])


def describe_compactions(compacted: Mapping[str, Compaction]) -> list[str]:
    """Return the result of compaction for each table, with the rows it deleted, for logs."""
    return [
        f"{name}: {format_count(result.before.files, 'file')} of"
        f" {result.before.bytes / 1e6:,.1f} MB"
        f" became {result.after.files:,} of {result.after.bytes / 1e6:,.1f} MB;"
        f" {format_count(result.dead, 'unneeded row')} and"
        f" {format_count(result.duplicates, 'duplicate')} deleted"
        for name, result in sorted(compacted.items())
    ]
