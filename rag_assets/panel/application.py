"""All routes of the panel, for a service's backend."""

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
from rag_assets.panel.frame import Renderer, SystemPanel, asset
from rag_assets.panel.guarding import Guarding, PanelRoute
from rag_assets.panel.sessions import Link, build_holder, make_link, panel_tenant
from rag_assets.panel.settings import PATH, PanelSettings
from rag_assets.panel.signing_in import SigningIn

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
        responses=document_problems(401, 403, 404, 422, 429, 500, 503),
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
            return make_link(backend.catalog, record.ref, build_holder(identity), origin)

        made = await backend.run("", identity.name, make)
        return LinkResponse(url=made.url, expires_at=made.expires_at)

    return router


_TAKEN = frozenset({"sign-in", "sign-out", "enter", "assets", "links", "session"})


@dataclass(frozen=True, slots=True)
class Panel:
    """The panel of a service.

    Attributes:
        routes: routes for browsers, which use sessions.
        router: routes for applications, which use tokens.
    """

    routes: tuple[BaseRoute, ...]
    router: APIRouter


def build_panel(backend: Backend, settings: PanelSettings, systems: Iterable[SystemPanel]) -> Panel:
    """Build the panel of a service.

    Args:
        backend: backend of the service.
        settings: the address of the panel.
        systems: pages of the systems; the name of each is the profile of its tenants.

    Raises:
        ConfigurationError: two systems share a path, or a system uses a path of the panel itself.
    """
    by_profile = {system.name: system for system in systems}
    paths = [system.path for system in by_profile.values()]
    for path in paths:
        if path in _TAKEN or paths.count(path) > 1:
            raise ConfigurationError(
                f"two parts of the panel use the path {PATH}/{path}",
                hint="choose a different path for the system",
            )
    guarding = Guarding(backend, settings, Renderer(by_profile.values()), by_profile)
    pages = [guarding.page(system, page) for system in by_profile.values() for page in system.pages]
    routes: list[BaseRoute] = [
        *SigningIn(guarding).routes(),
        PanelRoute(f"{PATH}/assets/{{digest}}/{{name:path}}", asset),
        *pages,
    ]
    return Panel(tuple(routes), links(settings, tuple(by_profile)))
