"""Access scopes: apply changes to every kept build immediately, without embedding."""

from __future__ import annotations

from collections.abc import Collection

from rag_assets.common.batches import batched
from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.slices import Work

_PAGES = 5_000


def move_scopes(ctx: TenantContext, work: Work, published: Collection[str]) -> int:
    """Set the access scope of the slice's entries to the scope in the catalog.

    Args:
        published: documents that will be written to the slice's own build in any case.

    Returns:
        The number of changed entries.
    """
    moved = 0
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        own = generation.number == work.generation.number
        scopes = {
            document.document_id: document.access_scope
            for document in work.documents
            if not (own and document.document_id in published)
        }
        if not scopes or ctx.store.indexes.presence(index_of(generation)) != "present":
            continue
        moved += ctx.writer(generation).set_scopes(
            generation.index_name, ctx.owner(generation), scopes, guard=ctx.guard
        )
    return moved


def follow_moved_pages(ctx: TenantContext) -> int:
    """Update the access scope of the entries of documents whose page was moved.

    This runs after entries were written, because a document that was read before its page was moved
    has entries with the former scope. A page that is moved again in the meantime is left for the
    next run.

    Returns:
        The number of changed entries.
    """
    moved = ctx.catalog.pages.find_moved(ctx.ref.id)
    if moved is None:
        return 0
    generations = [
        generation
        for generation in ctx.catalog.generations.live(ctx.ref.id)
        if ctx.store.indexes.presence(index_of(generation)) == "present"
    ]
    changed = 0
    for uuids in batched(moved.uuids, _PAGES):
        scopes = ctx.catalog.pages.find_document_scopes(ctx.ref.id, uuids)
        for generation in generations:
            changed += ctx.writer(generation).set_scopes(
                generation.index_name, ctx.owner(generation), scopes, guard=ctx.guard
            )
    ctx.guard()
    ctx.catalog.pages.mark_followed(ctx.ref, moved)
    return changed
