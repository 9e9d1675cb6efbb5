"""Endpoints for organizations and projects, and for the provider keys of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

from fastapi import APIRouter, Depends, Path, Request, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.guideline_responses import to_camel_case
from rag_assets.api.identity import Identity
from rag_assets.api.problems import document_problems
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.models.transport.settings import ModelName
from rag_assets.storage.catalog.tenants.settings import OrganizationRef
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.team_guidelines.projects import (
    GuidelineProjects,
    Keys,
    KeyTested,
    OpenProject,
    OrganizationView,
    ProjectScope,
    ProjectView,
)
from rag_assets.systems.team_guidelines.service import Guidelines
from rag_assets.tenants.model import CapsConfig
from rag_assets.tenants.projects import MAX_NAME, AutoProvider, ProjectSettings

if TYPE_CHECKING:
    ProviderName: TypeAlias = str
else:
    ProviderName = Literal[WITH_KEYS]

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
        scope: the projects that the caller may access.
    """

    http: Request
    identity: Identity
    backend: Backend
    guidelines: Guidelines
    scope: ProjectScope

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run blocking work of a request whose tenant is not known yet; see Backend.run."""
        return await self.backend.run(self.scope.queue_name, self.identity.name, work)


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
    def owner(self) -> OrganizationRef:
        """Return the organization as the owner of keys."""
        return OrganizationRef(self.organization_id)


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """A request of a project's member for the guidelines of a prompt."""

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
    return OrganizationRequest(admin, admin.identity.require_admin_organization(organization_id))


async def _require_member(
    request: Request,
    project_id: ProjectId,
    identity: IdentityDependency,
    backend: BackendDependency,
) -> PromptRequest:
    scope = _determine_scope(identity)
    projects = GuidelineProjects(backend.catalog, backend.embedders)
    find = partial(projects.open, scope, project_id)
    project = await backend.run(scope.queue_name, identity.name, find)
    request.state.tenant = project.record.id
    return PromptRequest(identity, backend, project.record)


ProjectDependency = Annotated[ProjectRequest, Depends(_require_project)]
PromptDependency = Annotated[PromptRequest, Depends(_require_member)]
OrganizationDependency = Annotated[OrganizationRequest, Depends(_require_organization)]


_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_KEY = "^[!-#%-~][!-~]*$"
"""Pattern of a key; the same as in billing's require_key()."""

_CAMEL = ConfigDict(alias_generator=to_camel_case, extra="forbid", frozen=True)
_REFUSED = document_problems(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_CREATED = 201


projects = APIRouter(prefix="/api", tags=["projects"], responses=_REFUSED, route_class=Guarded)
keys = APIRouter(prefix="/api", tags=["keys"], responses=_REFUSED, route_class=Guarded)


class CapsBody(CapsConfig):
    """Spending caps of a project, in dollars; the cost of searches and answers is also counted."""

    model_config = _CAMEL


class ProjectBody(ProjectSettings):
    """Settings of a project; null resets a setting to the default of new projects."""

    model_config = _CAMEL

    name: Annotated[str, Field(pattern=_LINE, max_length=MAX_NAME)] | None = None
    provider: AutoProvider | None = None
    min_score: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] | None = None
    caps: CapsBody | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """Return the settings in the request, named as in ProjectSettings."""
        return self.model_dump(exclude_unset=True)


class OrganizationBody(BaseModel):
    """Settings of an organization; a setting that is left out keeps its value.

    Attributes:
        rag_guidelines: whether documents of the organization's projects are embedded and searched.
        chat_model: default chat model of the organization's projects; null means no default.
    """

    model_config = _CAMEL

    rag_guidelines: Annotated[bool, Field(strict=True)] = False
    chat_model: ModelName | None = None


class KeyBody(BaseModel):
    """A provider's key."""

    model_config = _CAMEL

    key: Annotated[
        SecretStr, Field(min_length=1, max_length=4_096, json_schema_extra={"pattern": _KEY})
    ]


@projects.get("/organizations/{organization_id}")
async def organization(request: OrganizationDependency) -> OrganizationView:
    """Return an organization's settings and projects. For admins of the organization."""
    show = request.admin.guidelines.projects.show_organization
    return await request.admin.run(partial(show, request.organization_id))


@projects.put("/organizations/{organization_id}")
async def put_organization(
    request: OrganizationDependency, body: OrganizationBody
) -> OrganizationView:
    """Change the settings of an organization and of all its projects. For its admins."""
    put = request.admin.guidelines.projects.put_organization
    settings = body.model_dump(exclude_unset=True)
    return await request.admin.run(partial(put, request.organization_id, **settings))


@projects.get("/projects/{project_id}")
async def project(request: ProjectDependency) -> ProjectView:
    """Return a project's settings, its embedder, and the state of its key. For admins."""

    def show() -> ProjectView:
        key = request.guidelines.keys.get_state(request.project)
        return request.guidelines.projects.show(request.project, key)

    return await request.read(show)


@projects.put("/projects/{project_id}", responses={_CREATED: {"model": ProjectView}})
async def put_project(
    project_id: ProjectId, admin: AdminDependency, body: ProjectBody, response: Response
) -> ProjectView:
    """Create a project (201), or change its settings. For admins.

    Creating requires a token that names its organization. Repeating a request has no effect.
    """

    def put() -> tuple[ProjectView, bool]:
        guidelines = admin.guidelines
        stored, outcome = guidelines.projects.put(admin.scope, project_id, body.changes)
        return guidelines.projects.show(stored, guidelines.keys.get_state(stored)), outcome.created

    view, is_created = await admin.run(put)
    admin.http.state.tenant = view.tenant
    if is_created:
        response.status_code = _CREATED
    return view


@keys.get("/projects/{project_id}/keys")
async def project_keys(request: ProjectDependency) -> Keys:
    """List the keys that a project may use: its own, and its organization's. For admins."""
    return await request.read(partial(request.guidelines.keys.list_for_project, request.project))


@keys.put("/projects/{project_id}/keys/{provider}")
async def put_project_key(
    request: ProjectDependency, provider: ProviderName, body: KeyBody
) -> Keys:
    """Set a project's own key, which takes precedence over its organization's. For admins.

    The key is stored encrypted and never shown again. Documents that lack a key are retried.
    """
    keys_of = request.guidelines.keys
    await request.write(partial(keys_of.put, request.project.ref, provider, body.key))
    return await project_keys(request)


@keys.delete("/projects/{project_id}/keys/{provider}")
async def delete_project_key(request: ProjectDependency, provider: ProviderName) -> Keys:
    """Delete a project's own key, if it is set. For admins."""
    await request.write(partial(request.guidelines.keys.delete, request.project.ref, provider))
    return await project_keys(request)


@keys.post("/projects/{project_id}/keys/{provider}/test", responses=document_problems(402))
async def test_project_key(request: ProjectDependency, provider: ProviderName) -> KeyTested:
    """Make one small call with the key that a project uses for a provider. For admins."""
    return await request.read(partial(request.guidelines.keys.test, request.project.ref, provider))


@keys.get("/organizations/{organization_id}/keys")
async def keys_of_organization(request: OrganizationDependency) -> Keys:
    """List an organization's keys, which projects without their own key use. For its admins."""
    keys_of = request.admin.guidelines.keys.list_for_organization
    return await request.admin.run(partial(keys_of, request.organization_id))


@keys.put("/organizations/{organization_id}/keys/{provider}")
async def put_organization_key(
    request: OrganizationDependency, provider: ProviderName, body: KeyBody
) -> Keys:
    """Set an organization's key. For admins of the organization."""
    put = request.admin.guidelines.keys.put
    await request.admin.run(partial(put, request.owner, provider, body.key))
    return await keys_of_organization(request)


@keys.delete("/organizations/{organization_id}/keys/{provider}")
async def delete_organization_key(request: OrganizationDependency, provider: ProviderName) -> Keys:
    """Delete an organization's key, if it is set. For its admins."""
    delete = request.admin.guidelines.keys.delete
    await request.admin.run(partial(delete, request.owner, provider))
    return await keys_of_organization(request)


@keys.post(
    "/organizations/{organization_id}/keys/{provider}/test", responses=document_problems(402)
)
async def test_organization_key(
    request: OrganizationDependency, provider: ProviderName
) -> KeyTested:
    """Make one small call with an organization's key. For admins of the organization."""
    test = request.admin.guidelines.keys.test
    return await request.admin.run(partial(test, request.owner, provider))
