"""The frame: what a system gives for its pages of the panel, and what each of them gets.

Everything that protects a page is done before its endpoint is called (see `guarding`): whoever
writes a page can forget nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rag_assets.panel.settings import PATH

if TYPE_CHECKING:
    from rag_assets.api.backend import Backend
    from rag_assets.panel.renderer import Renderer
    from rag_assets.storage.catalog.departures import HeldDeletions
    from rag_assets.storage.catalog.panel_sessions import PanelSession

Method: TypeAlias = Literal["GET", "POST"]
_SEE_OTHER = 303


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of somebody who is signed in, and what answers it.

    Attributes:
        request: its body is read only where the page reads it itself.
        session: whose it is, and of which tenant.
        token: that every form of the answer must hold, as `token`.
        form: fields that were sent, with their values; none where the page reads the body itself.
        backend: the servers.
        home: the system's first page.
        held: deletions that wait for a person; only where a whole page is shown.
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
        """The tenant of the session."""
        return self.session.tenant.id

    def field(self, name: str) -> str:
        """A field of the form; empty if it was not sent."""
        return next(iter(self.form.get(name, ())), "")

    def html(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page, or a part of one.

        Args:
            template: of the system, below its folder of templates.
            status: of the response.
            values: what it shows.
        """
        return HTMLResponse(
            self.renderer.page(f"{self.system.name}/{template}", visit=self, **values), status
        )

    def redirect(self, path: str) -> Response:
        """See another page of the system; the path is below its own."""
        return RedirectResponse(f"{PATH}/{self.system.path}{path}", _SEE_OTHER)


Endpoint: TypeAlias = Callable[[Visit], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class PanelPage:
    """A page, or what one of its forms calls.

    Attributes:
        path: below the system's; parameters as Starlette has them.
        endpoint: answers.
        method: unsafe ones need the session's token.
        streamed: the endpoint reads the body, and requires the token in it itself.
        is_use: whether a request means that somebody is there; false for what pages do by
            themselves.
        is_sensitive: whether it changes a credential, which takes a session that began only
            minutes ago: one that was left open, or stolen, changes none.
        most_bytes: of a form.
        texts: fields with a text that somebody wrote. A page that refuses the form shows them, so
            that they can be copied. Never a credential.
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
    """What a system adds to the panel, for the tenants of its profile.

    Attributes:
        name: of the system.
        path: of one segment, below the panel's.
        package: that has a folder `templates`.
        tabs: of the navigation: labels by path, the first page first.
        pages: all of them.
    """

    name: str
    path: str
    package: str
    tabs: Mapping[str, str]
    pages: tuple[PanelPage, ...] = field(default_factory=tuple)

    @property
    def home(self) -> str:
        """The address of its first page."""
        return f"{PATH}/{self.path}{next(iter(self.tabs))}"
