"""Access scopes: applies changes to every kept build immediately, without embedding."""

from __future__ import annotations

from collections.abc import Collection

from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.slices import Work


def move_scopes(ctx: TenantContext, work: Work, published: Collection[str]) -> int:
    """Set the access scope of the slice's entries to the one in the catalog.

    Args:
        ctx: the tenant.
        work: the slice.
        published: documents that are about to be written to the slice's own build in any case.

    Returns:
        the number of changed entries.
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
        moved += ctx.store.entries.set_scopes(
            generation.index_name, ctx.owner(generation), scopes, guard=ctx.guard
        )
    return moved
