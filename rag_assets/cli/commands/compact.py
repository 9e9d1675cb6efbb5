"""compact: do the work of the weekly job without a daemon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_assets.cli.commands.output import print_json, progress, say, warn
from rag_assets.cli.commands.session import Session, with_session
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.formatting import counted


@with_session
def compact(session: Session, tenant_ids: Sequence[str], *, as_json: bool) -> bool:
    """Compact tenants' lakes and indexes, and return whether it succeeded for all of them.

    Args:
        tenant_ids: tenants to compact; if empty, every active tenant, and the remains of removed
            tenants.
    """
    from rag_assets.pipeline.upkeep import delete_leftovers, expunge
    from rag_assets.storage.blobs.store import open_blobs

    for tenant_id in tenant_ids:
        session.active(tenant_id)
    records = session.catalog.tenants.all()
    chosen = list(tenant_ids) or [record.id for record in records if record.state == "ACTIVE"]
    done = [_compact_one(session, tenant_id) for tenant_id in chosen]
    swept = 0
    if tenant_ids:
        live = session.catalog.generations.list_live_by_tenant(chosen)
        index_names = {build.index_name for builds in live.values() for build in builds}
        expunge(session.store, sorted(index_names), progress)
    else:
        blobs = open_blobs(session.settings)
        swept = delete_leftovers(session.catalog, session.lake, session.store, blobs, progress)
    session.warn_of_clock()
    succeeded = all(result["error"] is None for result in done)
    if as_json:
        print_json({"succeeded": succeeded, "tenants": done, "leftovers": swept})
        return succeeded
    for result in done:
        for line in result["lines"]:
            say(f"{result['tenant']}: {line}")
    if swept:
        what = counted(swept, "entry or folder", "entries and folders")
        say(f"{what} of removed tenants deleted")
    return succeeded


def _compact_one(session: Session, tenant_id: str) -> dict[str, Any]:
    """Compact one tenant; its failure does not stop the others."""
    from rag_assets.pipeline.upkeep import compact_tenant

    progress(f"{tenant_id}: compacting")
    try:
        with session.writer(tenant_id, "compaction") as ctx:
            return {"tenant": tenant_id, "lines": compact_tenant(ctx), "error": None}
    except RagAssetsError as error:
        warn(f"{tenant_id}: {error.advice}")
        return {"tenant": tenant_id, "lines": [], "error": error.message}
