"""Decide whether a tenant's data may be deleted: not while the catalog lacks changes.

In a catalog restored from an older dump, data that seem unreferenced may be the last copy of the
newest documents; see mark_keeper.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_assets.common.formatting import counted
from rag_assets.storage.catalog.builds.syncs import Sync

if TYPE_CHECKING:
    from rag_assets.common.errors import CatalogSetBack
    from rag_assets.pipeline.context import TenantContext


def may_delete(ctx: TenantContext) -> bool:
    """Return whether the tenant's data may be deleted."""
    return refusal(ctx) is None


def refusal(ctx: TenantContext) -> CatalogSetBack | None:
    """Return why the tenant's data must not be deleted; None if they may be."""
    return ctx.keeper.refusal(ctx.ref)


def require_current(ctx: TenantContext) -> None:
    """Require that the catalog lacks no change of the tenant.

    Raises:
        CatalogSetBack: the catalog lacks changes, or possibly lacks some.
    """
    if (error := refusal(ctx)) is not None:
        raise error


def held_warning(tenant_id: str, syncs: Sequence[Sync], refused: CatalogSetBack | None) -> str:
    """Return the warning about documents that disappeared from their source and are kept.

    Args:
        syncs: the last syncs of those of its sources whose deletions are held.
        refused: why the tenant's data must not be deleted; None if a person only has to confirm the
            deletions.
    """
    held = counted(sum(sync.held_deletions for sync in syncs), "document")
    if refused is None:
        reasons = "; ".join(f"source {sync.source}: {sync.held_reason}" for sync in syncs)
        return (
            f"{held} of {tenant_id} disappeared, and the deletion is held back: {reasons}. To"
            f" delete them, run: rag-assets sync {tenant_id} --allow-deletes"
        )
    return (
        f"{held} of {tenant_id} disappeared, and the deletion is held back: {refused.message}."
        f" {refused.hint}"
    )


def accept_catalog(ctx: TenantContext) -> bool:
    """Accept a catalog that lacks changes of the tenant; return whether it was accepted.

    The next sync compares every source with the catalog again.

    Raises:
        RestorePending: the catalog also lacks security changes, which must be resolved first.
        ServiceUnavailable: a store does not answer.
    """
    if (pending := ctx.keeper.pending_restore()) is not None:
        raise pending
    if not ctx.keeper.accept(ctx.ref):
        return False
    ctx.catalog.events.write(ctx.ref, "catalog_accepted", [{}])
    ctx.catalog.syncs.reset(ctx.ref)
    return True
