"""Endpoints for keys of projects and of organizations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from fastapi import APIRouter

from rag_assets.api.guard import Guarded
from rag_assets.api.problems import documented
from rag_assets.models.providers.registry import WITH_KEYS
from rag_assets.systems.team_guidelines.keys import Keys, KeyTested, organization_keys
from rag_assets.systems.team_guidelines.routes.access import (
    OrganizationDependency,
    ProjectDependency,
)
from rag_assets.systems.team_guidelines.routes.bodies import KeyBody

_REFUSED = documented(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)

if TYPE_CHECKING:
    ProviderName: TypeAlias = str
else:
    ProviderName = Literal[WITH_KEYS]

keys = APIRouter(prefix="/api", tags=["keys"], responses=_REFUSED, route_class=Guarded)


@keys.get("/projects/{project_id}/keys")
async def project_keys(asked: ProjectDependency) -> Keys:
    """The keys that a project may use: its own, and its organization's. For admins."""
    return await asked.read(partial(asked.guidelines.keys.of_project, asked.project))


@keys.put("/projects/{project_id}/keys/{provider}")
async def put_project_key(asked: ProjectDependency, provider: ProviderName, body: KeyBody) -> Keys:
    """Set a project's own key, which goes before its organization's. For admins.

    It is stored encrypted and never shown again; what waited for a key is tried again.
    """

    def put() -> Keys:
        asked.guidelines.keys.put(asked.project.ref, provider, body.key)
        return asked.guidelines.keys.of_project(asked.project)

    return await asked.write(put)


@keys.delete("/projects/{project_id}/keys/{provider}")
async def delete_project_key(asked: ProjectDependency, provider: ProviderName) -> Keys:
    """Delete a project's own key; one that is not there stays so. For admins."""

    def delete() -> Keys:
        asked.guidelines.keys.delete(asked.project.ref, provider)
        return asked.guidelines.keys.of_project(asked.project)

    return await asked.write(delete)


@keys.post("/projects/{project_id}/keys/{provider}/test", responses=documented(402))
async def test_project_key(asked: ProjectDependency, provider: ProviderName) -> KeyTested:
    """Make one small call with the key that a project uses for a provider. For admins."""
    return await asked.read(partial(asked.guidelines.keys.test, asked.project.ref, provider))


@keys.get("/organizations/{organization_id}/keys")
async def keys_of_organization(asked: OrganizationDependency) -> Keys:
    """An organization's keys, for its projects without one of their own. For its admins."""
    return await asked.run(partial(asked.guidelines.keys.of_organization, asked.organization_id))


@keys.put("/organizations/{organization_id}/keys/{provider}")
async def put_organization_key(
    asked: OrganizationDependency, provider: ProviderName, body: KeyBody
) -> Keys:
    """Set an organization's key. For admins of the organization."""

    def put() -> Keys:
        asked.guidelines.keys.put(organization_keys(asked.organization_id), provider, body.key)
        return asked.guidelines.keys.of_organization(asked.organization_id)

    return await asked.run(put)


@keys.delete("/organizations/{organization_id}/keys/{provider}")
async def delete_organization_key(asked: OrganizationDependency, provider: ProviderName) -> Keys:
    """Delete an organization's key; one that is not there stays so. For its admins."""

    def delete() -> Keys:
        asked.guidelines.keys.delete(organization_keys(asked.organization_id), provider)
        return asked.guidelines.keys.of_organization(asked.organization_id)

    return await asked.run(delete)


@keys.post("/organizations/{organization_id}/keys/{provider}/test", responses=documented(402))
async def test_organization_key(asked: OrganizationDependency, provider: ProviderName) -> KeyTested:
    """Make one small call with an organization's key. For admins of the organization."""
    owner = organization_keys(asked.organization_id)
    return await asked.run(partial(asked.guidelines.keys.test, owner, provider))
