"""Endpoints for organizations and projects, and for the provider keys of both."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from rag_assets.api.guard import Guarded
from rag_assets.api.guideline_responses import camel
from rag_assets.api.problems import documented
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.models.transport.settings import ModelName
from rag_assets.storage.catalog.tenants.organizations import OrganizationRef
from rag_assets.systems.team_guidelines.keys import Keys, KeyTested
from rag_assets.systems.team_guidelines.projects import OrganizationView, ProjectView
from rag_assets.systems.team_guidelines.routes.access import (
    AdminDependency,
    OrganizationDependency,
    ProjectDependency,
    ProjectId,
)
from rag_assets.tenants.model import CapsConfig
from rag_assets.tenants.projects import MAX_NAME, AutoProvider, ProjectSettings

_LINE = r"^[^\x00-\x1f\x7f-\x9f]+$"
_KEY = "^[!-#%-~][!-~]*$"
"""The same as in require_key."""

_CAMEL = ConfigDict(alias_generator=camel, extra="forbid", frozen=True)
_REFUSED = documented(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_CREATED = 201

if TYPE_CHECKING:
    ProviderName: TypeAlias = str
else:
    ProviderName = Literal[WITH_KEYS]

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
    show = request.guidelines.projects.show_organization
    return await request.run(partial(show, request.organization_id))


@projects.put("/organizations/{organization_id}")
async def put_organization(
    request: OrganizationDependency, body: OrganizationBody
) -> OrganizationView:
    """Change an organization's settings and those of its projects. For its admins."""
    put = request.guidelines.projects.put_organization
    settings = body.model_dump(exclude_unset=True)
    return await request.run(partial(put, request.organization_id, **settings))


@projects.get("/projects/{project_id}")
async def project(request: ProjectDependency) -> ProjectView:
    """Return a project's settings, its embedder, and the state of its key. For admins."""

    def show() -> ProjectView:
        key = request.guidelines.keys.state(request.project)
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
        return guidelines.projects.show(stored, guidelines.keys.state(stored)), outcome.created

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

    def put() -> Keys:
        request.guidelines.keys.put(request.project.ref, provider, body.key)
        return request.guidelines.keys.list_for_project(request.project)

    return await request.write(put)


@keys.delete("/projects/{project_id}/keys/{provider}")
async def delete_project_key(request: ProjectDependency, provider: ProviderName) -> Keys:
    """Delete a project's own key, if it is set. For admins."""

    def delete() -> Keys:
        request.guidelines.keys.delete(request.project.ref, provider)
        return request.guidelines.keys.list_for_project(request.project)

    return await request.write(delete)


@keys.post("/projects/{project_id}/keys/{provider}/test", responses=documented(402))
async def test_project_key(request: ProjectDependency, provider: ProviderName) -> KeyTested:
    """Make one small call with the key that a project uses for a provider. For admins."""
    return await request.read(partial(request.guidelines.keys.test, request.project.ref, provider))


@keys.get("/organizations/{organization_id}/keys")
async def keys_of_organization(request: OrganizationDependency) -> Keys:
    """List an organization's keys, for its projects that lack their own. For its admins."""
    keys_of = request.guidelines.keys.list_for_organization
    return await request.run(partial(keys_of, request.organization_id))


@keys.put("/organizations/{organization_id}/keys/{provider}")
async def put_organization_key(
    request: OrganizationDependency, provider: ProviderName, body: KeyBody
) -> Keys:
    """Set an organization's key. For admins of the organization."""
    id_ = request.organization_id

    def put() -> Keys:
        request.guidelines.keys.put(OrganizationRef(id_), provider, body.key)
        return request.guidelines.keys.list_for_organization(id_)

    return await request.run(put)


@keys.delete("/organizations/{organization_id}/keys/{provider}")
async def delete_organization_key(request: OrganizationDependency, provider: ProviderName) -> Keys:
    """Delete an organization's key, if it is set. For its admins."""
    id_ = request.organization_id

    def delete() -> Keys:
        request.guidelines.keys.delete(OrganizationRef(id_), provider)
        return request.guidelines.keys.list_for_organization(id_)

    return await request.run(delete)


@keys.post("/organizations/{organization_id}/keys/{provider}/test", responses=documented(402))
async def test_organization_key(
    request: OrganizationDependency, provider: ProviderName
) -> KeyTested:
    """Make one small call with an organization's key. For admins of the organization."""
    owner = OrganizationRef(request.organization_id)
    return await request.run(partial(request.guidelines.keys.test, owner, provider))
