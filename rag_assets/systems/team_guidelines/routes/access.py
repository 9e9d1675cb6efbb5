"""Who asks for a project or an organization, and what answers: for every endpoint below /api."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, TypeVar

from fastapi import Depends, Path, Request

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.identity import Identity
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.team_guidelines.projects import (
    GuidelineProjects,
    OpenProject,
    ProjectScope,
)
from rag_assets.systems.team_guidelines.service import Guidelines

_T = TypeVar("_T")

# What is no UTF-8 in an address arrives as U+FFFD, whatever it was.
_NAME = Path(pattern=r"^[^\x00-\x1f\x7f\uFFFD]+$", max_length=256)
ProjectId = Annotated[str, _NAME]
OrganizationId = Annotated[str, _NAME]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of an admin, with what answers it.

    Attributes:
        scope: the projects that the caller may name.
    """

    request: Request
    identity: Identity
    backend: Backend
    guidelines: Guidelines
    scope: ProjectScope

    @classmethod
    def of(cls, request: Request, identity: Identity, backend: Backend) -> Asked:
        """A request, if an admin makes it.

        Raises:
            Forbidden: the token is a member's.
        """
        identity.require_admin()
        scope = ProjectScope(identity.organization, identity.tenants)
        guidelines = Guidelines(backend.catalog, backend.embedders, backend.blobs, backend.uploads)
        return cls(request, identity, backend, guidelines, scope)

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work before it is known which tenant it is about; see Backend.run."""
        turn = self.scope.organization or min(self.scope.tenants, default="")
        return await self.backend.run(turn, self.identity.name, work)


@dataclass(frozen=True, slots=True)
class AskedProject:
    """A request of an admin of a project."""

    asked: Asked
    project: OpenProject

    @property
    def guidelines(self) -> Guidelines:
        """What answers."""
        return self.asked.guidelines

    @property
    def caller(self) -> str:
        """The name of the caller."""
        return self.asked.identity.name

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.asked.backend.run(self.project.record.id, self.caller, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the project; see Backend.write."""
        return await self.asked.backend.write(self.project.record.id, work)


@dataclass(frozen=True, slots=True)
class AskedOrganization:
    """A request of an admin of an organization."""

    asked: Asked
    organization_id: str

    @property
    def guidelines(self) -> Guidelines:
        """What answers."""
        return self.asked.guidelines

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.asked.run(work)


async def _asked(
    request: Request, identity: IdentityDependency, backend: BackendDependency
) -> Asked:
    return Asked.of(request, identity, backend)


AskedDependency = Annotated[Asked, Depends(_asked)]


async def _project(project_id: ProjectId, asked: AskedDependency) -> AskedProject:
    found = await asked.run(partial(asked.guidelines.projects.open, asked.scope, project_id))
    asked.request.state.tenant = found.record.id
    return AskedProject(asked, found)


async def _organization(
    organization_id: OrganizationId, asked: AskedDependency
) -> AskedOrganization:
    named = asked.identity.administered_organization(organization_id)
    return AskedOrganization(asked, named)


@dataclass(frozen=True, slots=True)
class PromptedProject:
    """A request of a member of a project, for a prompt.

    Attributes:
        record: of the project's tenant.
    """

    identity: Identity
    backend: Backend
    record: TenantRecord


async def _prompted(
    request: Request,
    project_id: ProjectId,
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PromptedProject:
    scope = ProjectScope(identity.organization, identity.tenants)
    projects = GuidelineProjects(backend.catalog, backend.embedders)
    turn = scope.organization or min(scope.tenants, default="")
    found = await backend.run(turn, identity.name, partial(projects.open, scope, project_id))
    request.state.tenant = found.record.id
    return PromptedProject(identity, backend, found.record)


ProjectDependency = Annotated[AskedProject, Depends(_project)]
PromptedProjectDependency = Annotated[PromptedProject, Depends(_prompted)]
OrganizationDependency = Annotated[AskedOrganization, Depends(_organization)]
