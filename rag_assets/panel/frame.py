"""The frame of the panel: declarations of a system's pages, and the visits that they receive.

Each request is checked before the endpoint of its page is called (see `guarding`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from jinja2 import BaseLoader, ChoiceLoader, PackageLoader, PrefixLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from rag_assets.panel.settings import PATH
from rag_assets.search.model import Caller
from rag_assets.web.renderer import build_environment

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
_CACHE_FOREVER = "public, max-age=31536000, immutable"
_DIGEST_DIGITS = 16
_NOT_FOUND = 404
_T = TypeVar("_T")


def get_asset_path(name: str) -> str:
    """Return the path of a static file in the panel."""
    return f"{PATH}/assets/{_hash_asset(name)}/{name}"


async def serve_asset(request: Request) -> Response:
    """Return a static file, without authentication."""
    name = request.path_params["name"]
    if name not in _TYPES or request.path_params["digest"] != _hash_asset(name):
        return PlainTextResponse("This file does not exist.\n", _NOT_FOUND)
    return Response(
        _read_asset(name), headers={"Cache-Control": _CACHE_FOREVER}, media_type=_TYPES[name]
    )


@cache
def _read_asset(name: str) -> bytes:
    return files("rag_assets.panel").joinpath("static", *name.split("/")).read_bytes()


@cache
def _hash_asset(name: str) -> str:
    return hashlib.sha256(_read_asset(name)).hexdigest()[:_DIGEST_DIGITS]


class Renderer:
    """A renderer of pages.

    Args:
        systems: systems with templates, which are found below the name of the system.
    """

    def __init__(self, systems: Iterable[SystemPanel]) -> None:
        of_systems: dict[str, BaseLoader] = {
            system.name: PackageLoader(system.package) for system in systems
        }
        loader = ChoiceLoader([PackageLoader("rag_assets.panel"), PrefixLoader(of_systems)])
        self._environment = build_environment(loader)
        self._environment.filters |= {
            "moment": format_minute,
            "person": get_person_name,
            "embedder": get_embedder_name,
        }
        self._environment.globals |= {"asset": get_asset_path, "panel": PATH}

    def page(self, template: str, **values: Any) -> str:
        """Render a template, which is a whole page or a part of a page."""
        return self._environment.get_template(template).render(**values)


def format_minute(at: datetime | None) -> str:
    """Format a time in UTC to the minute; "never" for None."""
    return "never" if at is None else f"{at:%Y-%m-%d %H:%M} UTC"


def get_person_name(name: str) -> str:
    """Return the name of a caller without the prefix for the kind of token."""
    return name.removeprefix("jwt:")


def get_embedder_name(embedder_id: str) -> str:
    """Return the name of an embedder without the digest of its settings."""
    return embedder_id.partition("+")[0]


Method: TypeAlias = Literal["GET", "POST"]
_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of a signed-in person.

    Attributes:
        request: the request; only a streamed page may read the body.
        session: the person's session, for one tenant.
        token: value of the field `token` in every form of the response.
        form: values of the submitted fields; empty if the page is streamed.
        home: path of the system's first page.
        held: deletions that are held back; set only for whole pages.
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

    @property
    def user(self) -> str:
        """Return the name of the session's user, who is the author of changes."""
        return self.session.name

    @property
    def caller(self) -> Caller:
        """Return the caller for reading documents; admins read only documents granted to them."""
        return Caller(principals=self.session.principals, name=self.session.name)

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.backend.run(self.tenant_id, self.user, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.backend.write(self.tenant_id, work)

    def field(self, name: str) -> str:
        """Return a field of the form; "" if it is missing."""
        return next(iter(self.form.get(name, ())), "")

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """Return a page, or a part of a page.

        Args:
            template: path below the system's folder of templates.
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
        method: HTTP method; requests with an unsafe method must contain the session's token.
        streamed: whether the endpoint itself reads the body and checks the token in it.
        is_use: whether a request counts as use of the session; False for automatic requests.
        is_sensitive: whether the page changes a credential, which requires a session that started
            only minutes ago.
        most_bytes: size limit of a form.
        texts: names of fields with texts that people write. If the form is refused, the error page
            shows these texts for copying. Never name a field with a credential.
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
        path: one segment below the panel's path.
        package: package with the folder `templates`.
        tabs: labels of the navigation by path; the first is the system's first page.
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
