"""Access of API requests to a project's code memory: find its tenant, and run work on it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Request

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.identity import Identity
from rag_assets.common.errors import InvalidRequest, UnknownProject
from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.code_memory.errors import NoCodeMemory

PROFILE = "code-memory"


def find_project_tenant(catalog: Catalog, tenant_ids: Collection[str], project: str) -> str:
    """Return the caller's tenant that contains a project's code memory.

    Args:
        tenant_ids: tenants that the caller may search.

    Raises:
        UnknownProject: none of the tenants is a project with this id.
        NoCodeMemory: the project only has tenants with other profiles.
        InvalidRequest: projects of several organizations have this id.
    """
    tenants = catalog.projects.list_covered(tenant_ids, PROFILE, project)
    if len(tenants) > 1:
        raise InvalidRequest(
            "several organizations have a project with this id, and the token covers more than one",
            hint="use a token that covers only one organization",
        )
    if tenants:
        return tenants[0].id
    others = (name for name in installed_systems().profiles if name != PROFILE)
    if any(catalog.projects.list_covered(tenant_ids, name, project) for name in others):
        raise NoCodeMemory(
            "the project has no tenant with code memory",
            hint=f"create a tenant with the profile {PROFILE}, and set its `organization` and"
            " `project`",
        )
    raise UnknownProject(
        "the project does not exist, or the token does not cover it",
        hint="use the id of a project that the token covers",
    )


_T = TypeVar("_T")

# Invalid UTF-8 in a URL arrives here as U+FFFD, whatever the original bytes were.
ProjectId = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f\uFFFD]+$", max_length=256)]
RunId = Annotated[str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@-]*$", max_length=128)]


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """A caller's request about a project, and the tenant with the project's code memory."""

    identity: Identity
    backend: Backend
    project: str
    tenant_id: str

    def record(self) -> TenantRecord:
        """Return the tenant's record; this method blocks."""
        return self.backend.catalog.tenants.get(self.tenant_id)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.backend.run(self.tenant_id, self.identity.name, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant, or raise Forbidden for a guest; see Backend.write."""
        self.identity.require_member()
        return await self.backend.write(self.tenant_id, work)


async def _resolve_project(
    request: Request,
    project_id: ProjectId,
    identity: IdentityDependency,
    backend: BackendDependency,
) -> ProjectRequest:
    turn = identity.organization or min(identity.tenants, default="")
    find = partial(find_project_tenant, backend.catalog, identity.tenants, project_id)
    tenant_id = await backend.run(turn, identity.name, find)
    request.state.tenant = tenant_id
    return ProjectRequest(identity, backend, project_id, tenant_id)


async def _require_admin(
    project: Annotated[ProjectRequest, Depends(_resolve_project)],
) -> ProjectRequest:
    project.identity.require_admin()
    return project


ProjectDependency = Annotated[ProjectRequest, Depends(_resolve_project)]
AdministeredDependency = Annotated[ProjectRequest, Depends(_require_admin)]
