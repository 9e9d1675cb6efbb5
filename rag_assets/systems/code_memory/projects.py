"""The tenant of a project with code memory."""

from __future__ import annotations

from collections.abc import Collection

from rag_assets.common.errors import InvalidRequest, UnknownProject
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.errors import NoCodeMemory

PROFILE = "code-memory"


def tenant_of(catalog: Catalog, tenant_ids: Collection[str], project: str) -> str:
    """Return the caller's tenant that is the code memory of a project.

    Args:
        tenant_ids: tenants that the caller may search.
        project: the application's id of the project.

    Raises:
        UnknownProject: none of the tenants is a project with this id.
        NoCodeMemory: the project only has tenants with other profiles.
        InvalidRequest: projects of several organizations have this id.
    """
    found = catalog.projects.list_covered(tenant_ids, PROFILE, project)
    if len(found) > 1:
        raise InvalidRequest(
            "the token covers projects of this id of several organizations",
            hint="use a token for one organization",
        )
    if found:
        return found[0].id
    others = (name for name in installed_systems().profiles if name != PROFILE)
    if any(catalog.projects.list_covered(tenant_ids, name, project) for name in others):
        raise NoCodeMemory(
            "this project has no code memory",
            hint=f"add a tenant with the profile {PROFILE} and the project's two ids",
        )
    raise UnknownProject(
        "there is no such project, or the token is not for it",
        hint="name a project that the token covers",
    )
