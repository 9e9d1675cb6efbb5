"""Selection of the project whose panel a token opens."""

from __future__ import annotations

from collections.abc import Sequence

from rag_assets.api.identity import Identity
from rag_assets.common.errors import InvalidRequest, UnknownProject, UnknownTenant
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord


def panel_tenant(
    catalog: Catalog, identity: Identity, project: str | None, profiles: Sequence[str]
) -> TenantRecord:
    """Return the tenant that a token administers.

    Args:
        catalog: contains the projects.
        identity: identity of the token.
        project: id of the project in the application; None stands for the only tenant of the token.
        profiles: profiles of the tenants that have a panel.

    Raises:
        Forbidden: the token's role is not admin; or no project is named and the token is not for
            exactly one tenant.
        UnknownProject: the token covers no project with this id, although another organization may
            have one.
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
            for record in catalog.projects.list_covered(identity.tenants, profile, project)
        ]
    found = [record for record in found if record.config["profile"] in profiles]
    if not found:
        raise UnknownProject(
            "the token covers no project with this id",
            hint="create the project, or use a token that covers it",
        )
    if len(found) > 1:
        raise InvalidRequest(
            "the token covers several projects with this id",
            hint="use a token that covers only one of them",
        )
    return found[0]
