"""The catalog's mark beside the lake: tells whether the catalog was set back to an earlier dump.

Each commit of versions counts the tenant's mark up in the catalog, and a file beside the lake keeps
it. A catalog whose mark is below the file's has forgotten what it knew: data that seem to belong to
nobody may be all that is left of the newest documents. So nothing is deleted until a person accepts
that catalog.
"""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.common.errors import CatalogSetBack
from rag_assets.common.formatting import counted
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.syncs import Sync
from rag_assets.storage.lake.model import LakeMark
from rag_assets.storage.lake.store import Lake, TenantLake


def may_delete(ctx: TenantContext) -> bool:
    """Whether the tenant's data may be deleted: False while a catalog that was set back is used."""
    return is_current(ctx.catalog, ctx.lake, ctx.ref.id)


def is_current(catalog: Catalog, lake: TenantLake, tenant_id: str) -> bool:
    """Whether a catalog was not set back, for callers without a stage context."""
    # The file first: in between, the catalog's mark can only grow.
    kept = lake.mark.read()
    return kept is None or (not kept.set_back and kept.mark <= catalog.marks.of(tenant_id))


def held_warning(tenant_id: str, syncs: Sequence[Sync], *, current: bool) -> str:
    """Return the warning about documents that disappeared and are kept.

    Args:
        tenant_id: the tenant.
        syncs: of its sources whose deletions are held back.
        current: whether the catalog was not set back.
    """
    held = counted(sum(sync.held_deletions for sync in syncs), "document")
    if current:
        reasons = "; ".join(f"source {sync.source}: {sync.held_reason}" for sync in syncs)
        return (
            f"{held} of {tenant_id} disappeared, and the deletion is held back: {reasons}. To"
            f" delete: rag-assets sync {tenant_id} --allow-deletes"
        )
    error = set_back_error(tenant_id)
    return (
        f"{held} of {tenant_id} disappeared, and the deletion is held back: {error.message}."
        f" {error.hint}"
    )


def require_current(ctx: TenantContext) -> None:
    """Require that the catalog was not set back.

    Raises:
        CatalogSetBack: it was.
    """
    if not may_delete(ctx):
        raise set_back_error(ctx.ref.id)


def set_back_error(tenant_id: str) -> CatalogSetBack:
    """The error for what would delete data of a tenant by a catalog that was set back."""
    return CatalogSetBack(
        f"the catalog of tenant {tenant_id!r} was set back to an earlier state",
        hint=f"{SET_BACK}. To go on with this catalog: rag-assets sync {tenant_id}"
        " --accept-catalog",
    )


SET_BACK = "nothing of the tenant is deleted, swept or pruned until it is accepted"


def keep_mark(ctx: TenantContext, mark: int | None) -> bool:
    """Keep the mark of a commit beside the lake; returns whether data may be deleted.

    A catalog that was set back is noticed here, too, before its mark counts up beyond the one that
    is kept.

    Args:
        ctx: of the tenant, under its lock.
        mark: of the commit; None: nothing was committed.
    """
    if mark is None:
        return may_delete(ctx)
    kept = ctx.lake.mark.read()
    set_back = kept is not None and (kept.set_back or kept.mark >= mark)
    highest = mark if kept is None else max(kept.mark, mark)
    new = LakeMark(highest, set_back=set_back)
    if new != kept:
        ctx.lake.mark.write(new)
    return not set_back


def accept_catalog(ctx: TenantContext) -> bool:
    """Go on with a catalog that was set back; returns whether it was.

    The next sync compares every source with it again.
    """
    if may_delete(ctx):
        return False
    mark = ctx.catalog.marks.of(ctx.ref.id)
    ctx.catalog.events.write(ctx.ref, "catalog_accepted", [{"mark": mark}])
    ctx.catalog.syncs.reset(ctx.ref)
    ctx.lake.mark.write(LakeMark(mark))
    return True


def is_forgotten(catalog: Catalog, lake: Lake, tenant_id: str, incarnation: int) -> bool:
    """Whether data of a tenant that the catalog lacks are those of one that it has forgotten.

    Such a tenant had versions, and no receipt tells of its removal.
    """
    if lake.tenant(tenant_id, incarnation).mark.read() is None:
        return False
    return not any(
        receipt.kind == "removal" and receipt.incarnation == incarnation
        for receipt in catalog.receipts.all(tenant_id)
    )


def forget_strays(catalog: Catalog, lake: Lake) -> list[str]:
    """Let data of tenants that the catalog has forgotten be swept; returns their names."""
    found = []
    for tenant_id, incarnation in list(lake.incarnations()):
        record = catalog.tenants.find(tenant_id)
        known = record is not None and record.incarnation == incarnation
        if not known and lake.tenant(tenant_id, incarnation).mark.read() is not None:
            lake.tenant(tenant_id, incarnation).mark.delete()
            found.append(tenant_id)
    return found
