"""The frame: how a system declares its panel pages, and the request that each page receives.

Each request is checked before the page's endpoint is called (see `guarding`), so the author of a
page cannot forget a protection.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from jinja2 import BaseLoader, ChoiceLoader, PackageLoader, PrefixLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from rag_assets.panel.settings import PATH
from rag_assets.web.renderer import environment

if TYPE_CHECKING:
    from rag_assets.api.backend import Backend
    from rag_assets.storage.catalog.accounts.panel_sessions import PanelSession
    from rag_assets.storage.catalog.builds.syncs import HeldDeletions

_TYPES = {
    "panel.css": "text/css; charset=utf-8",
    "panel.js": "text/javascript; charset=utf-8",
    "unsaved.js": "text/javascript; charset=utf-8",
    "vendor/htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
_FOR_EVER = "public, max-age=31536000, immutable"
_DIGITS = 16
_GONE = 404


def get_asset_path(name: str) -> str:
    """Return the path from which browsers load a file."""
    return f"{PATH}/assets/{_digest(name)}/{name}"


async def asset(request: Request) -> Response:
    """Return a file; anyone may load it."""
    name = request.path_params["name"]
    if name not in _TYPES or request.path_params["digest"] != _digest(name):
        return PlainTextResponse("There is no such file.\n", _GONE)
    return Response(_content(name), headers={"Cache-Control": _FOR_EVER}, media_type=_TYPES[name])


@cache
def _content(name: str) -> bytes:
    return files("rag_assets.panel").joinpath("static", *name.split("/")).read_bytes()


@cache
def _digest(name: str) -> str:
    return hashlib.sha256(_content(name)).hexdigest()[:_DIGITS]


class Renderer:
    """Renders pages.

    Args:
        systems: systems with templates; each template is found below the system's name.
    """

    def __init__(self, systems: Iterable[SystemPanel]) -> None:
        of_systems: dict[str, BaseLoader] = {
            system.name: PackageLoader(system.package) for system in systems
        }
        loader = ChoiceLoader([PackageLoader("rag_assets.panel"), PrefixLoader(of_systems)])
        self._environment = environment(loader)
        self._environment.filters |= {"moment": minute, "person": person, "embedder": embedder}
        self._environment.globals |= {"asset": get_asset_path, "panel": PATH}

    def page(self, template: str, **values: Any) -> str:
        """Render a page, or a part of a page."""
        return self._environment.get_template(template).render(**values)


def minute(at: datetime | None) -> str:
    """Format a time in UTC, to the minute; "never" if there is none."""
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def person(name: str) -> str:
    """Return the name of a caller without the prefix that states the kind of the token."""
    return name.removeprefix("jwt:")


def embedder(embedder_id: str) -> str:
    """Return the name of an embedder without the digest of its settings."""
    return embedder_id.partition("+")[0]


Method: TypeAlias = Literal["GET", "POST"]
_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a signed-in person, with the means to answer it.

    Attributes:
        request: the request; only a streamed page may read the body.
        session: the person's session, which is for one tenant.
        token: the value that every form in the response must contain as its field `token`.
        form: the submitted fields with their values; empty if the page is streamed.
        backend: the servers.
        home: the system's first page.
        held: deletions that wait for a person's decision; set only if a whole page is shown.
    """

    request: Request
    session: PanelSession
    token: str
    form: Mapping[str, tuple[str, ...]]
    backend: Backend
    renderer: Renderer
    system: SystemPanel
    home: str
    held: tuple[HeldDeletions, ...] = ()

    @property
    def tenant_id(self) -> str:
        """Return the tenant of the session."""
        return self.session.tenant.id

    def field(self, name: str) -> str:
        """Return a field of the form; empty if it was not sent."""
        return next(iter(self.form.get(name, ())), "")

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page, or a part of a page.

        Args:
            template: path below the system's folder of templates.
            status: HTTP status of the response.
            values: the variables of the template.
        """
        return HTMLResponse(
            self.renderer.page(f"{self.system.name}/{template}", visit=self, **values), status
        )

    def redirect(self, path: str) -> Response:
        """Redirect to a page of the system; `path` is relative to the system's path."""
        return RedirectResponse(f"{PATH}/{self.system.path}{path}", _SEE_OTHER)


Endpoint: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PanelPage:
    """A page, or an action of one of its forms.

    Attributes:
        path: path below the system's path, with parameters in Starlette's syntax.
        endpoint: answers the request.
        method: HTTP method; requests with an unsafe method must contain the session's token.
        streamed: whether the endpoint itself reads the body and checks the token in it.
        is_use: whether a request counts as use of the session; False for requests that pages make
            automatically.
        is_sensitive: whether the page changes a credential. It then requires a session that started
            only minutes ago, so that an old session, left open or stolen, cannot change the
            credential.
        most_bytes: size limit of a form.
        texts: names of fields with a text that a person wrote. If the form is refused, the error
            page shows these texts, so that they can be copied. Never name a field with a
            credential.
    """

    path: str
    endpoint: Endpoint
    method: Method = "GET"
    streamed: bool = False
    is_use: bool = True
    is_sensitive: bool = False
    most_bytes: int = 1_048_576
    texts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SystemPanel:
    """The pages that a system adds to the panel, for the tenants of its profile.

    Attributes:
        name: name of the system.
        path: one segment, below the panel's path.
        package: the package with the folder `templates`.
        tabs: labels in the navigation, by path; the system's first page comes first.
        pages: all pages of the system.
    """

    name: str
    path: str
    package: str
    tabs: Mapping[str, str]
    pages: tuple[PanelPage, ...] = field(default_factory=tuple)

    @property
    def home(self) -> str:
        """Return the path of the system's first page."""
        return f"{PATH}/{self.path}{next(iter(self.tabs))}"
