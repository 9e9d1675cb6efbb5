"""Access of callers to projects and organizations: dependencies of the endpoints below /api."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Request

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.identity import Identity
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.projects import (
    GuidelineProjects,
    OpenProject,
    ProjectScope,
)
from rag_assets.systems.team_guidelines.service import Guidelines

_T = TypeVar("_T")

# Invalid UTF-8 in a URL arrives as U+FFFD.
_NAME = Path(pattern=r"^[^\x00-\x1f\x7f\uFFFD]+$", max_length=256)
ProjectId = Annotated[str, _NAME]
OrganizationId = Annotated[str, _NAME]


def _determine_scope(identity: Identity) -> ProjectScope:
    return ProjectScope(identity.organization, identity.tenants)


@dataclass(frozen=True, slots=True)
class AdminRequest:
    """A request of an admin, with the services that answer it.

    Attributes:
        http: the request itself.
        scope: the projects that the caller may access.
    """

    http: Request
    identity: Identity
    backend: Backend
    guidelines: Guidelines
    scope: ProjectScope

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work before its tenant is known; see Backend.run."""
        return await self.backend.run(self.scope.turn, self.identity.name, work)


@dataclass(frozen=True, slots=True)
class ProjectRequest:
    """A request of an admin about one project."""

    admin: AdminRequest
    project: OpenProject

    @property
    def guidelines(self) -> Guidelines:
        """Return the services that answer the request."""
        return self.admin.guidelines

    @property
    def caller(self) -> str:
        """Return the name of the caller."""
        return self.admin.identity.name

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.admin.backend.run(self.project.record.id, self.caller, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the project; see Backend.write."""
        return await self.admin.backend.write(self.project.record.id, work)


@dataclass(frozen=True, slots=True)
class OrganizationRequest:
    """A request of an admin about one organization."""

    admin: AdminRequest
    organization_id: str

    @property
    def guidelines(self) -> Guidelines:
        """Return the services that answer the request."""
        return self.admin.guidelines

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.admin.run(work)


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A request of a member of a project, for a prompt.

    Attributes:
        record: record of the project's tenant.
    """

    identity: Identity
    backend: Backend
    record: TenantRecord


async def _require_admin(
    request: Request, identity: IdentityDependency, backend: BackendDependency
) -> AdminRequest:
    identity.require_admin()
    guidelines = Guidelines(backend.catalog, backend.embedders, backend.blobs, backend.uploads)
    return AdminRequest(request, identity, backend, guidelines, _determine_scope(identity))


AdminDependency = Annotated[AdminRequest, Depends(_require_admin)]


async def _require_project(project_id: ProjectId, admin: AdminDependency) -> ProjectRequest:
    project = await admin.run(partial(admin.guidelines.projects.open, admin.scope, project_id))
    admin.http.state.tenant = project.record.id
    return ProjectRequest(admin, project)


async def _require_organization(
    organization_id: OrganizationId, admin: AdminDependency
) -> OrganizationRequest:
    return OrganizationRequest(admin, admin.identity.administered_organization(organization_id))


async def _require_member(
    request: Request,
    project_id: ProjectId,
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PromptRequest:
    scope = _determine_scope(identity)
    projects = GuidelineProjects(backend.catalog, backend.embedders)
    find = partial(projects.open, scope, project_id)
    project = await backend.run(scope.turn, identity.name, find)
    request.state.tenant = project.record.id
    return PromptRequest(identity, backend, project.record)


ProjectDependency = Annotated[ProjectRequest, Depends(_require_project)]
PromptDependency = Annotated[PromptRequest, Depends(_require_member)]
OrganizationDependency = Annotated[OrganizationRequest, Depends(_require_organization)]
