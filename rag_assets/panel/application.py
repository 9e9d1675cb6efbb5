"""The panel of a service: all of its routes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from starlette.routing import BaseRoute

from rag_assets.api.backend import Backend, BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import ForeignOrigin
from rag_assets.api.problems import document_problems
from rag_assets.common.errors import ConfigurationError
from rag_assets.panel.frame import Renderer, SystemPanel, serve_asset
from rag_assets.panel.guarding import PanelGuard, PanelRoute
from rag_assets.panel.sessions import Link, build_holder, create_link, get_panel_tenant
from rag_assets.panel.settings import PATH, PanelSettings
from rag_assets.panel.signing_in import SignInPages

ProjectName = Annotated[
    str, StringConstraints(min_length=1, max_length=1_000, pattern=r"^[^\x00]*$")
]


class LinkRequest(BaseModel):
    """A request for a link to a panel.

    Attributes:
        project: id of the project in the application; may be left out if the token covers a single
            tenant.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    project: ProjectName | None = None


class LinkResponse(BaseModel):
    """A link that signs in once.

    Attributes:
        url: address to which the application redirects the browser of its user.
        expires_at: when the link expires.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    url: str
    expires_at: datetime = Field(serialization_alias="expiresAt")


def build_link_router(settings: PanelSettings, profiles: tuple[str, ...]) -> APIRouter:
    """Return the router of the endpoint that creates links."""
    router = APIRouter(
        prefix=PATH,
        tags=["panel"],
        responses=document_problems(400, 401, 403, 404, 408, 413, 422, 429, 500, 503),
        route_class=Guarded,
    )

    @router.post("/links", status_code=201)
    async def link(
        request: Request,
        body: LinkRequest,
        identity: IdentityDependency,
        backend: BackendDependency,
    ) -> LinkResponse:
        """Create a link to a project's panel. For admins.

        The link signs in once, within a minute. The session ends when the token expires.
        """
        identity.require_admin()
        # Without the setting, the panel is available only on loopback.
        if settings.find_own_origin(request.scope) is None:
            raise ForeignOrigin(
                "the panel is not at this address", hint="send the request to 127.0.0.1"
            )
        origin = settings.create_session_origin(request.scope["server"][1])

        def make() -> Link:
            record = get_panel_tenant(backend.catalog, identity, body.project, profiles)
            request.state.tenant = record.id
            return create_link(backend.catalog, record.ref, build_holder(identity), origin)

        new = await backend.run("", identity.name, make)
        return LinkResponse(url=new.url, expires_at=new.expires_at)

    return router


_RESERVED_PATHS = frozenset({"sign-in", "sign-out", "enter", "assets", "links", "session"})


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel of a service."""

    routes: tuple[BaseRoute, ...]
    router: APIRouter


def build_panel(backend: Backend, settings: PanelSettings, systems: Iterable[SystemPanel]) -> Panel:
    """Build the panel of a service.

    Args:
        systems: pages of the systems; a system's name is the profile of its tenants.

    Raises:
        ConfigurationError: two systems share a path, or a system uses a path of the panel itself.
    """
    by_profile = {system.name: system for system in systems}
    paths = [system.path for system in by_profile.values()]
    for path in paths:
        if path in _RESERVED_PATHS or paths.count(path) > 1:
            raise ConfigurationError(
                f"two parts of the panel use the path {PATH}/{path}",
                hint="choose a different path for the system",
            )
    guard = PanelGuard(backend, settings, Renderer(by_profile.values()), by_profile)
    pages = [
        guard.build_page_route(system, page)
        for system in by_profile.values()
        for page in system.pages
    ]
    routes: list[BaseRoute] = [
        *SignInPages(guard).routes(),
        PanelRoute(f"{PATH}/assets/{{digest}}/{{name:path}}", serve_asset),
        *pages,
    ]
    return Panel(tuple(routes), build_link_router(settings, tuple(by_profile)))
