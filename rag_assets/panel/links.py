"""POST /panel/links: an application's server signs its user in with a link that works once."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import ForeignOrigin
from rag_assets.api.problems import documented
from rag_assets.panel.projects import panel_tenant
from rag_assets.panel.sessions import Link, holder_of, make_link
from rag_assets.panel.settings import PATH, PanelSettings

ProjectName = Annotated[
    str, StringConstraints(min_length=1, max_length=1_000, pattern=r"^[^\x00]*$")
]


class LinkRequest(BaseModel):
    """A request for a link, with the project whose panel is to be opened.

    Attributes:
        project: id of the project in the application; may be left out if the token is for one
            tenant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: ProjectName | None = None


class LinkResponse(BaseModel):
    """A link that signs in once.

    Attributes:
        url: address to which the application redirects the user's browser, by GET.
        expires_at: when the link expires.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    url: str
    expires_at: datetime = Field(serialization_alias="expiresAt")


def links(settings: PanelSettings, profiles: tuple[str, ...]) -> APIRouter:
    """Return the router with the endpoint.

    Args:
        settings: the address of the panel.
        profiles: profiles of the tenants that have a panel.
    """
    router = APIRouter(
        prefix=PATH,
        tags=["panel"],
        responses=documented(401, 403, 404, 422, 429, 500, 503),
        route_class=Guarded,
    )

    @router.post("/links", status_code=201)
    async def link(
        request: Request,
        wanted: LinkRequest,
        identity: IdentityDependency,
        backend: BackendDependency,
    ) -> LinkResponse:
        """Create a link that opens a project's panel in the browser of the token's subject.

        The link signs in once, within a minute. The session ends when the token expires. For
        admins.
        """
        identity.require_admin()
        # If the setting is missing, the panel is available on loopback only.
        if settings.own_origin(request.scope) is None:
            raise ForeignOrigin(
                "the panel is not at this address", hint="send the request to 127.0.0.1"
            )
        origin = settings.new_session_origin(request.scope["server"][1])

        def make() -> Link:
            record = panel_tenant(backend.catalog, identity, wanted.project, profiles)
            request.state.tenant = record.id
            return make_link(backend.catalog, record.ref, holder_of(identity), origin)

        made = await backend.run("", identity.name, make)
        return LinkResponse(url=made.url, expires_at=made.expires_at)

    return router
