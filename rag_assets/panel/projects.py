"""The project of the panel that a token opens."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.api.identity import Identity
from rag_assets.common.errors import InvalidRequest, UnknownProject, UnknownTenant
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord


def panel_tenant(
    catalog: Catalog, identity: Identity, project: str | None, profiles: Sequence[str]
) -> TenantRecord:
    """Return the tenant that a token administers.

    Args:
        catalog: has the projects.
        identity: of the token.
        project: the application's id of it; None for the only tenant of the token.
        profiles: of tenants that have a panel.

    Raises:
        Forbidden: the token is a member's, or is not for exactly one tenant.
        UnknownProject: the token covers no project with this id, even if others have one.
        InvalidRequest: the token covers several projects with this id.
    """
    if project is None:
        tenant_id = identity.administered(None)
        try:
            found = [catalog.tenants.get(tenant_id)]
        except UnknownTenant:
            found = []
    else:
        identity.require_admin()
        found = [
            record
            for profile in profiles
            for record in catalog.projects.covered(identity.tenants, profile, project)
        ]
    found = [record for record in found if record.config["profile"] in profiles]
    if not found:
        raise UnknownProject(
            "none of the token's tenants is this project",
            hint="make it, or use a token that covers it",
        )
    if len(found) > 1:
        raise InvalidRequest(
            "the token covers several projects of this id", hint="use a token for one of them"
        )
    return found[0]
