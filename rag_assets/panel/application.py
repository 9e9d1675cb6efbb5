"""All routes of the panel, for a service's backend."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from fastapi import APIRouter
from starlette.routing import BaseRoute

from rag_assets.api.backend import Backend
from rag_assets.common.errors import ConfigurationError
from rag_assets.panel.assets import asset
from rag_assets.panel.frame import SystemPanel
from rag_assets.panel.guarding import Guarding, PanelRoute
from rag_assets.panel.links import links
from rag_assets.panel.renderer import Renderer
from rag_assets.panel.settings import PATH, PanelSettings
from rag_assets.panel.signing_in import SigningIn

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
