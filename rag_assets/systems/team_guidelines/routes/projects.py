"""Endpoints for organizations and projects."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Response

from rag_assets.api.guard import Guarded
from rag_assets.api.problems import documented
from rag_assets.systems.team_guidelines.projects import OrganizationView, ProjectView
from rag_assets.systems.team_guidelines.routes.access import (
    AskedDependency,
    OrganizationDependency,
    ProjectDependency,
    ProjectId,
)
from rag_assets.systems.team_guidelines.routes.bodies import OrganizationBody, ProjectBody

_REFUSED = documented(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 500, 503)
_MADE = 201

projects = APIRouter(prefix="/api", tags=["projects"], responses=_REFUSED, route_class=Guarded)


@projects.get("/organizations/{organization_id}")
async def organization(asked: OrganizationDependency) -> OrganizationView:
    """An organization's settings and projects. For admins of the organization."""
    return await asked.run(partial(asked.guidelines.projects.organization, asked.organization_id))


@projects.put("/organizations/{organization_id}")
async def put_organization(
    asked: OrganizationDependency, body: OrganizationBody
) -> OrganizationView:
    """Change settings of an organization; its projects follow. For admins of the organization."""
    given = body.model_dump(exclude_unset=True)
    put = asked.guidelines.projects.put_organization
    return await asked.run(partial(put, asked.organization_id, **given))


@projects.get("/projects/{project_id}")
async def project(asked: ProjectDependency) -> ProjectView:
    """A project's settings, its embedder, and the state of the key for that. For admins."""

    def view() -> ProjectView:
        key = asked.guidelines.keys.state(asked.project)
        return asked.guidelines.projects.view(asked.project, key)

    return await asked.read(view)


@projects.put("/projects/{project_id}", responses={_MADE: {"model": ProjectView}})
async def put_project(
    project_id: ProjectId, asked: AskedDependency, body: ProjectBody, response: Response
) -> ProjectView:
    """Make a project, which is answered with 201, or change its settings. For admins.

    A token that names its organization makes projects; the same request again changes nothing.
    """

    def put() -> tuple[ProjectView, bool]:
        guidelines = asked.guidelines
        found, done = guidelines.projects.put(asked.scope, project_id, body.given)
        return guidelines.projects.view(found, guidelines.keys.state(found)), done.created

    view, created = await asked.run(put)
    asked.request.state.tenant = view.tenant
    if created:
        response.status_code = _MADE
    return view
