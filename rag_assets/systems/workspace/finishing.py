"""The end of a workspace's sync: copy vectors to the back end that the settings choose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_assets.common.clock import Clock
from rag_assets.common.errors import NoVectorBackend, VectorsUnavailable
from rag_assets.pipeline.context import VECTORS_PAUSE, TenantContext
from rag_assets.pipeline.separate_vectors import drop_vectors, fill_vectors
from rag_assets.storage.catalog.builds.generations import Generation, VectorsBeside
from rag_assets.storage.catalog.catalog import Catalog


class WorkspaceFollowUp:
    """Copies vectors from the serving index to pgvector, or deletes them there (see FollowUp)."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed."""
        serving = catalog.generations.serving(tenant_id)
        if serving is None:
            return None
        record = catalog.tenants.get(tenant_id)
        backend = record.config.get("workspace", {}).get("vector_backend")
        left = _describe_remaining_work(serving, wanted=backend == "pgvector")
        pause = serving.vectors_retry_at
        return None if pause is not None and Clock().now() < pause else left

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return an empty set, because no texts other than those of passages are kept."""
        return frozenset()

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Copy or delete vectors if the server answers; return the result."""
        wanted = ctx.tenant.workspace.vector_backend == "pgvector"
        if ctx.store.vectors is None or _describe_remaining_work(serving, wanted=wanted) is None:
            return {}
        try:
            work = fill_vectors if wanted else drop_vectors
            done = work(ctx, serving, ctx.store.vectors)
        except (VectorsUnavailable, NoVectorBackend) as error:
            table = ctx.catalog.generations
            # A copy that is unfinished or that missed a write must not answer searches.
            state: VectorsBeside | None = "filling" if serving.vectors_beside else None
            retry_at = ctx.clock.now() + VECTORS_PAUSE
            table.set_vectors_beside(ctx.ref, serving, state, retry_at=retry_at)
            return {"pgvector": error.message}
        return {"pgvector": done.vectors_beside or "no vectors"}


FOLLOW_UP = WorkspaceFollowUp()


def _describe_remaining_work(serving: Generation, *, wanted: bool) -> str | None:
    if wanted and serving.vectors_beside != "answering":
        return "vectors wait to be copied to pgvector"
    if not wanted and serving.vectors_beside is not None:
        return "vectors in pgvector are not wanted any more"
    return None
