"""The stage `search_index`: delete removed documents, then publish the slice's complete documents.

A document is published in an order that is safe to interrupt anywhere:

1. record in the catalog that entries are about to be written,
2. write the new version's entries, and refresh,
3. switch searches to the new version (one transaction),
4. delete the entries of other versions, found by query.

Searches return the previous version until step 3, and then the new version. Because of step 1,
leftover entries of an interrupted run are found again. Changes of access scopes are applied to
every kept build at once, without embedding.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_assets.common.batches import batched
from rag_assets.common.errors import TenantGone, TenantLocked
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import list_fact_stores
from rag_assets.pipeline.generations import (
    ActiveBuild,
    Judge,
    open_active_builds,
    publish_when_complete,
    require_index,
)
from rag_assets.pipeline.listing import forget_former_contents
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.pipeline.slices import SliceWork, StageProgress, count_pending, prefetch_items
from rag_assets.pipeline.versions import Version, build_entries, list_complete_versions
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.documents.versions import RowRecorder
from rag_assets.storage.index.model import Entry

_BATCH_CHUNKS = 4_000
_BATCH_DOCUMENTS = 500
_MANY_DOCUMENTS = 500
_MANY_FILES = 100
"""Number of published source files after which statistics are refreshed; each has many facts."""

_BATCH_PAGES = 5_000


@dataclass(frozen=True, slots=True)
class PublishingReport:
    """Report on publishing the slice's documents, and on removed documents.

    Attributes:
        upserted, deleted: numbers of entries.
        live: number of entries that the build must hold.
    """

    upserted: int = 0
    deleted: int = 0
    documents: int = 0
    unchanged: int = 0
    removed: int = 0
    live: int = 0
    generation: int = 0
    pending: int = 0
    seconds: float = 0.0


def publish_slice(
    ctx: TenantContext, work: SliceWork, judge: Judge | None = None
) -> PublishingReport:
    """Delete removed documents from every live build, then publish complete documents."""
    started = time.monotonic()
    generation = work.generation
    require_index(ctx, generation)
    removed, deleted = delete_removed_documents(ctx)
    deleted += delete_leftover_entries(ctx)
    for store in list_fact_stores(work.context.tenant):
        store.prepare(work.context, work)
    complete = list_complete_versions(work.context, work)
    move_scopes(ctx, work, {version.document.document_id for version in complete})
    intact = ctx.catalog.index.find_up_to_date(
        ctx.ref.id, generation.number, [v.document.document_id for v in complete]
    )
    unchanged = [v for v in complete if intact.get(v.document.document_id) == v.key]
    due = [v for v in complete if intact.get(v.document.document_id) != v.key]
    ctx.guard()
    ctx.catalog.index.commit(
        ctx.ref,
        generation.number,
        [version.to_indexed_version(work.config_key) for version in unchanged],
        clock_skew=ctx.clock.ahead,
        for_superseded_build=work.is_superseded,
        recorders=_list_recorders(ctx, unchanged),
    )
    upserted, replaced = _publish_versions(work.context, work, due)
    if ctx.catalog.moves.end(ctx.ref):
        moved, former_entries = delete_removed_documents(ctx)
        removed, deleted = removed + moved, deleted + former_entries
    follow_moved_pages(ctx)
    forget_former_contents(ctx)
    if len(due) >= (_MANY_FILES if ctx.tenant.reads_facts else _MANY_DOCUMENTS):
        tables = [table for store in list_fact_stores(ctx.tenant) for table in store.tables]
        ctx.catalog.index.refresh_statistics(tables)
    # This run may be the first one after a run that died before it published the build.
    wanted = (
        open_active_builds(ctx).wanted
        if work.is_superseded
        else ActiveBuild(work.context, generation)
    )
    serves = publish_when_complete(wanted.context, wanted.generation, judge)
    pending = count_pending(ctx) if work.is_superseded or not serves else _count_pending(ctx, work)
    if not pending:
        for source in ctx.tenant.sources:
            ctx.catalog.syncs.record_success(ctx.ref, source.name, wanted.context.config_key)
    return PublishingReport(
        upserted=upserted,
        deleted=deleted + replaced,
        documents=len(due),
        unchanged=len(unchanged),
        removed=removed,
        live=ctx.catalog.index.entry_count(ctx.ref.id, generation.number),
        generation=generation.number,
        pending=pending,
        seconds=time.monotonic() - started,
    )


def _list_recorders(ctx: TenantContext, versions: Sequence[Version]) -> list[RowRecorder]:
    """Return the recorders of the tenant's fact stores for versions that are published."""
    media_types = {version.chunk_set_key: version.media_type for version in versions}
    return [store.recorder(ctx, media_types) for store in list_fact_stores(ctx.tenant)]


def _count_pending(ctx: TenantContext, work: SliceWork) -> int:
    pending = ctx.catalog.index.count_pending(ctx.ref.id, work.generation.number, work.config_key)
    return pending + ctx.catalog.syncs.count_partly_listed(ctx.ref.id)


def delete_removed_documents(ctx: TenantContext) -> tuple[int, int]:
    """Delete removed documents' entries from every build; return how many documents and entries."""
    generations = {g.number: g for g in ctx.catalog.generations.live(ctx.ref.id)}
    documents = entries = 0
    removals = ctx.catalog.index.removals(ctx.ref.id)
    if removals and not may_delete(ctx):
        return 0, 0
    for number, document_ids in removals.items():
        keep_nothing = dict.fromkeys(document_ids)
        entries += _delete_other_versions(ctx, generations[number], keep_nothing)
        ctx.guard()
        ctx.catalog.index.delete(ctx.ref, number, document_ids)
        documents += len(document_ids)
    return documents, entries


def delete_leftover_entries(ctx: TenantContext) -> int:
    """Delete leftover entries of interrupted runs in every build; return how many."""
    entries = 0
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        dirty = ctx.catalog.index.find_dirty(ctx.ref.id, generation.number)
        if dirty and may_delete(ctx):
            entries += _delete_other_versions(ctx, generation, dirty)
            ctx.guard()
            ctx.catalog.index.mark_clean(ctx.ref, generation.number, list(dirty))
    return entries


def _delete_other_versions(
    ctx: TenantContext, generation: Generation, kept: Mapping[str, str | None]
) -> int:
    """Delete all entries of documents except the `kept` version; return how many.

    `kept` has the indexed_key to keep by document id; None keeps no version.
    """
    if not ctx.has_index(generation):
        return 0
    return ctx.writer(generation).delete_other_versions(
        generation.index_name, ctx.owner(generation), kept, guard=ctx.guard
    )


def _publish_versions(
    ctx: TenantContext, work: SliceWork, due: Sequence[Version]
) -> tuple[int, int]:
    progress = StageProgress("search_index", len(due), ctx.log)
    started = time.monotonic()
    upserted = deleted = 0
    batches = (
        (batch, build_entries(ctx, work.generation, batch))
        for batch in batched(
            due,
            _BATCH_DOCUMENTS,
            weight=lambda version: version.chunk_count,
            max_weight=_BATCH_CHUNKS,
        )
    )
    for batch, entries in prefetch_items(batches):
        new, old = _publish_batch(ctx, work, batch, entries)
        upserted += new
        deleted += old
        progress.advance(len(batch))
    progress.finish()
    if upserted:
        seconds = time.monotonic() - started
        ctx.catalog.pace.record_writing(ctx.ref, work.generation.number, upserted, seconds)
    return upserted, deleted


def _list_chunk_events(
    batch: Sequence[Version], entries: Sequence[Entry]
) -> list[dict[str, object]]:
    """Return one event per document, with the byte offsets at which its chunks start."""
    starts: dict[str, list[int]] = {}
    for entry in entries:
        starts.setdefault(entry.document.document_id, []).append(entry.chunk.byte_start)
    return [
        {
            "uri": document.uri,
            "source_type": document.source_type,
            "chunks": starts.get(document.document_id, []),
        }
        for document in (version.document for version in batch)
    ]


def _publish_batch(
    ctx: TenantContext, work: SliceWork, batch: Sequence[Version], entries: Sequence[Entry]
) -> tuple[int, int]:
    generation = work.generation
    index_name, writer = generation.index_name, ctx.writer(generation)
    document_ids = [version.document.document_id for version in batch]
    tokens = Counter(dict.fromkeys(document_ids, 0))
    for entry in entries:
        tokens[entry.document.document_id] += entry.chunk.token_count
    ctx.guard()
    before = ctx.catalog.index.mark_writing(ctx.ref, generation.number, document_ids)
    ctx.guard()
    try:
        writer.write(index_name, entries)
        ctx.guard()
        versions = [
            replace(version.to_indexed_version(work.config_key), token_count=tokens[document_id])
            for document_id, version in zip(document_ids, batch, strict=True)
        ]
        ctx.catalog.index.commit(
            *(ctx.ref, generation.number, versions),
            clock_skew=ctx.clock.ahead,
            for_superseded_build=work.is_superseded,
            recorders=_list_recorders(ctx, batch),
        )
    except (TenantGone, TenantLocked):
        # If the tenant was purged in the meantime, nothing else would ever find these entries, so
        # delete them. If only the lock was lost, its next holder may have written the same entries,
        # so keep them.
        if not ctx.catalog.tenants.is_alive(ctx.ref):
            writer.delete(index_name, ctx.ref.id, [entry.id for entry in entries])
        raise
    events = [{"uri": v.document.uri, "chunks": v.chunk_count} for v in batch]
    ctx.catalog.events.write(ctx.ref, "document_indexed", events)
    if ctx.tenant.reads_facts:
        ctx.catalog.events.write(ctx.ref, "rag_chunk_indexed", _list_chunk_events(batch, entries))
    if before and not may_delete(ctx):
        # The documents stay marked, so that their former entries are deleted after the catalog is
        # accepted.
        return len(entries), 0
    deleted = 0
    if before:
        kept = {v.document.document_id: v.key for v in batch}
        old = {document_id: kept[document_id] for document_id in before}
        deleted = writer.delete_other_versions(
            index_name, ctx.owner(generation), old, guard=ctx.guard, refreshed=True
        )
    ctx.catalog.index.mark_clean(ctx.ref, generation.number, document_ids)
    return len(entries), deleted


def move_scopes(ctx: TenantContext, work: SliceWork, published: Collection[str]) -> None:
    """Set the access scope of the slice's entries to the catalog's.

    Documents in `published` are written to the slice's own build in any case.
    """
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        own = generation.number == work.generation.number
        scopes = {
            document.document_id: document.access_scope
            for document in work.documents
            if not (own and document.document_id in published)
        }
        if not scopes or not ctx.has_index(generation):
            continue
        ctx.writer(generation).set_scopes(
            generation.index_name, ctx.owner(generation), scopes, guard=ctx.guard
        )


def follow_moved_pages(ctx: TenantContext) -> None:
    """Update the access scope of the entries of documents whose page was moved.

    This follows writing, because a document that was read before its page moved has entries with
    the former scope. A page that moves again meanwhile is left for the next run.
    """
    moved = ctx.catalog.pages.find_moved(ctx.ref.id)
    if moved is None:
        return
    generations = [g for g in ctx.catalog.generations.live(ctx.ref.id) if ctx.has_index(g)]
    for uuids in batched(moved.uuids, _BATCH_PAGES):
        scopes = ctx.catalog.pages.find_document_scopes(ctx.ref.id, uuids)
        for generation in generations:
            ctx.writer(generation).set_scopes(
                generation.index_name, ctx.owner(generation), scopes, guard=ctx.guard
            )
    ctx.guard()
    ctx.catalog.pages.mark_scopes_updated(ctx.ref, moved)
