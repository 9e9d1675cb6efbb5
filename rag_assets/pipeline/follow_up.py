"""Follow-ups: work that a system does for its tenants after their documents were published.

A system names a `FollowUp` in its description. The follow-up runs at the end of each run over a
slice, under the tenant's lock, no matter who requested the run. A tenant is due for a run while its
follow-up is unfinished.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from rag_assets.pipeline.context import TenantContext
from rag_assets.plugins.registry import installed_systems, load_reference
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog


class FollowUp(Protocol):
    """Work that a system does after documents were published."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""
        ...

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return hashes of texts with vectors that the lake must keep, besides the chunks."""
        ...

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Do as much of the remaining work as is possible now.

        Args:
            serving: the generation that answers the tenant's questions.

        Returns:
            The results, for the run's page.
        """
        ...


def unfinished(profile: str, catalog: Catalog, tenant_id: str) -> str | None:
    """Return why a tenant of this profile needs a run although no source changed, or None."""
    found = _follow_up(profile)
    return None if found is None else found.unfinished(catalog, tenant_id)


def kept_texts(ctx: TenantContext) -> frozenset[str]:
    """Return hashes of texts with vectors that the tenant's system keeps, besides the chunks."""
    found = _follow_up(ctx.tenant.profile)
    return frozenset() if found is None else found.kept_texts(ctx.catalog, ctx.ref.id)


def finish(ctx: TenantContext) -> Mapping[str, Any]:
    """Do the remaining work of the tenant's system; return the results, for the run's page."""
    found = _follow_up(ctx.tenant.profile)
    serving = None if found is None else ctx.catalog.generations.serving(ctx.ref.id)
    if found is None or serving is None:
        return {}
    return found.finish(ctx, serving)


@lru_cache
def _follow_up(profile: str) -> FollowUp | None:
    system = next((one.system for one in installed_systems() if one.name == profile), None)
    if system is None or system.follow_up is None:
        return None
    follow_up: FollowUp = load_reference(system.follow_up)
    return follow_up
