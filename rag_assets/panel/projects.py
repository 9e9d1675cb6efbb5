"""The project that a token opens the panel of."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.api.identity import Identity
from rag_assets.common.errors import InvalidRequest, UnknownProject, UnknownTenant
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord


def panel_tenant(
    catalog: Catalog, identity: Identity, project: str | None, profiles: Sequence[str]
) -> TenantRecord:
    """The tenant that somebody administers.

    Args:
        catalog: knows the projects.
        identity: of the token.
        project: the application's id of it; None: the only tenant of the token.
        profiles: of tenants that have a panel.

    Raises:
        Forbidden: the token is a member's, or is not for exactly one tenant.
        UnknownProject: no project of this id is the token's, whoever else has one.
        InvalidRequest: several are.
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
