"""The guard of the panel: checks of session, origin and form before every page, and error pages."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar
from urllib.parse import parse_qsl

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Match, Route
from starlette.types import Scope

from rag_assets.api.admission import CLIENT_GONE
from rag_assets.api.backend import Backend
from rag_assets.api.guard import read_body, require_uncompressed
from rag_assets.api.identity import Forbidden, ForeignOrigin, Unauthenticated
from rag_assets.api.problems import HttpRefusal, classify_error, get_http_kind
from rag_assets.api.upload_routes import UploadForm
from rag_assets.common.errors import RagAssetsError, ServiceUnavailable
from rag_assets.panel.frame import PanelPage, Renderer, SystemPanel, Visit
from rag_assets.panel.sessions import derive_request_token, hash_secret
from rag_assets.panel.settings import PATH, URL_VARIABLE, PanelSettings
from rag_assets.storage.catalog.accounts.panel_sessions import RECENT_TIME, PanelSession
from rag_assets.storage.catalog.builds.syncs import HeldDeletions

_T = TypeVar("_T")

SIGN_IN = f"{PATH}/sign-in"
SESSION_HEADER = "X-Panel-Session"
"""Header of refusals: `ended`, or `other` if the page belongs to a different session."""
TOKEN_FIELD = "token"  # noqa: S105
TOKEN_HEADER = "x-panel-token"  # noqa: S105
_POLICY_HEADER = "Content-Security-Policy"
_POLICY = "; ".join(
    (
        "default-src 'none'",
        *(f"{kind} 'self'" for kind in ("script-src", "style-src", "img-src", "connect-src")),
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
_HEADERS: Mapping[str, str] = {
    _POLICY_HEADER: _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without any referrer, browsers would also hide the origin of forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_SAFE_METHODS = frozenset({"GET", "HEAD"})
_OWN_FETCHES = frozenset({"same-origin", "none"})
SIGN_IN_AGAIN = (
    f"This can be changed for {round(RECENT_TIME.total_seconds() / 60)} minutes after signing in."
    " Nothing was changed: sign in again."
)
_MAX_FIELDS = 2_000
_MAX_SECRET_LENGTH = 200
_MAX_THREADS = 2
_SECONDS = 10.0
_FORBIDDEN = 403
_SEE_OTHER = 303

Handler = Callable[[Request], Awaitable[Response]]


class SessionEnded(Forbidden):
    """The form was sent after its session had ended."""


class OtherSession(Forbidden):
    """The form does not contain the token of the current session."""


class PanelRoute(Route):
    """A route that passes itself to the metrics, which count its requests under its path."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """See Route."""
        match, child = super().matches(scope)
        return match, {**child, "route": self}


@dataclass(frozen=True, slots=True)
class PanelGuard:
    """Creates the panel's routes, which check session, origin and form before they call a page.

    Attributes:
        systems: systems with pages, by the profile of their tenants.
    """

    backend: Backend
    settings: PanelSettings
    renderer: Renderer
    systems: Mapping[str, SystemPanel]
    _threads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_MAX_THREADS))

    def build_open_route(self, path: str, method: str, handler: Handler) -> PanelRoute:
        """Return a route for people who need not be signed in."""

        async def endpoint(request: Request) -> Response:
            async def answer() -> Response:
                self._require_own_page(request)
                return await handler(request)

            return await self._respond(request, answer)

        return PanelRoute(path, endpoint, methods=[method])

    def build_page_route(self, system: SystemPanel, page: PanelPage) -> PanelRoute:
        """Return a route for people who are signed in to a tenant of the system."""

        async def endpoint(request: Request) -> Response:
            async def answer() -> Response:
                self._require_own_page(request)
                visit = await self._build_visit(request, system, page)
                if page.is_sensitive and not visit.session.is_recent:
                    return self._sign_in_again(visit)
                self.backend.rates.take(visit.session.name)
                return await page.endpoint(visit)

            return await self._respond(request, answer)

        return PanelRoute(f"{PATH}/{system.path}{page.path}", endpoint, methods=[page.method])

    async def find_session(self, request: Request, *, use: bool = True) -> tuple[PanelSession, str]:
        """Return the session of a request, and the secret of the session.

        Args:
            use: whether the request counts as use of the session, so that the session stays open.

        Raises:
            Unauthenticated: the request has no session, or the session has ended.
            TooManyAttempts: the address sent too many requests without a valid session.
            ServiceUnavailable: Postgres does not answer.
        """
        secret = request.cookies.get(self.settings.cookie_name, "")
        origin = self.require_origin(request)
        if not 0 < len(secret) <= _MAX_SECRET_LENGTH:
            raise Unauthenticated("you are not signed in", hint="sign in")

        async def validate() -> PanelSession:
            table = self.backend.catalog.panel_sessions
            session = await self.run_in_thread(
                partial(table.find, hash_secret(secret, origin), use=use)
            )
            if session is None:
                raise Unauthenticated("the session has ended", hint="sign in again")
            return session

        session = await self.backend.guard.validate(request.scope, f"panel {secret}", validate)
        request.state.caller, request.state.tenant = session.name, session.tenant.id
        return session, secret

    async def read_form(
        self, request: Request, most: int = 1_048_576
    ) -> Mapping[str, tuple[str, ...]]:
        """Read the fields of a form.

        Raises:
            HttpRefusal: the body is too large, or is not a form.
        """
        body = await read_body(request, most=most)
        try:
            pairs = parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"
            )
        except ValueError:
            raise HttpRefusal(400, "the form cannot be read") from None
        fields: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            fields[name] = (*fields.get(name, ()), value)
        return fields

    async def run_in_thread(self, work: Callable[[], _T]) -> _T:
        """Run a short SQL statement in a thread, and return its result."""
        try:
            with anyio.fail_after(_SECONDS):
                return await run_sync(work, limiter=self._threads, abandon_on_cancel=True)
        except TimeoutError:
            raise ServiceUnavailable(
                "a server does not answer in time", hint="try again in a moment"
            ) from None

    def require_origin(self, request: Request) -> str:
        """Return the origin of the panel according to the Host header."""
        own = self.settings.find_own_origin(request.scope)
        if own is None:
            raise ForeignOrigin(
                "the panel is not at this address",
                hint=(
                    "open it at 127.0.0.1 and the port of `rag-assets serve`; for a tunnel "
                    f"with a different port, set {URL_VARIABLE}, for example to "
                    "http://localhost:9000"
                ),
            )
        return own

    def _require_own_page(self, request: Request) -> None:
        """Require our host and, for an unsafe method, one of our pages as origin."""
        own = self.require_origin(request)
        if request.method in _SAFE_METHODS:
            return
        fetched = request.headers.get("sec-fetch-site", "same-origin")
        if request.headers.get("origin") != own or fetched not in _OWN_FETCHES:
            raise ForeignOrigin(
                "the request was not sent by a page of the panel", hint=f"open {own}{PATH} directly"
            )

    async def _build_visit(self, request: Request, system: SystemPanel, page: PanelPage) -> Visit:
        try:
            session, secret = await self.find_session(request, use=page.is_use)
        except Unauthenticated:
            if request.method in _SAFE_METHODS:
                raise
            if page.texts:
                _keep_texts(request, page, await self.read_form(request, page.most_bytes))
            # The sender of a form must see why it was refused.
            raise SessionEnded(
                "Sessions end after 30 minutes without use, and after 8 hours. Nothing was saved",
                hint="sign in again",
            ) from None
        if self.systems.get(session.profile) is not system:
            raise HTTPException(404)
        form: Mapping[str, tuple[str, ...]] = {}
        token = derive_request_token(secret)
        if page.streamed:
            require_uncompressed(request)
            CLIENT_GONE.set(anyio.sleep_forever)
        elif request.method not in _SAFE_METHODS:
            sent_token = request.headers.get(TOKEN_HEADER)
            if sent_token is not None:
                require_token(sent_token, token)
            form = await self.read_form(request, page.most_bytes)
            _keep_texts(request, page, form)
            if sent_token is None:
                require_token(next(iter(form.get(TOKEN_FIELD, ())), ""), token)
        held_deletions: tuple[HeldDeletions, ...] = ()
        if page.is_use and request.method in _SAFE_METHODS and "hx-request" not in request.headers:
            departures = self.backend.catalog.departures
            held_deletions = tuple(
                await self.run_in_thread(partial(departures.list_held, session.tenant.id))
            )
        return Visit(
            request,
            session,
            token,
            form,
            self.backend,
            self.renderer,
            system,
            system.home,
            held_deletions,
        )

    async def _respond(
        self, request: Request, answer: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Return the response of `answer`, or an error page if it fails, with security headers."""
        try:
            response = await answer()
        except Unauthenticated:
            response = _redirect_to_login(request)
            response.headers[SESSION_HEADER] = "ended"
        except HTTPException as error:
            kind = get_http_kind(error.status_code)
            detail = error.detail if isinstance(error, HttpRefusal) else None
            response = self.build_error_page(request, kind.status, kind.title, detail)
        except RagAssetsError as error:
            kind, detail = classify_error(request.state.request_id, error)
            title = "Your session has ended" if isinstance(error, SessionEnded) else kind.title
            response = self.build_error_page(request, kind.status, title, detail)
            if isinstance(error, SessionEnded | OtherSession):
                is_ended = isinstance(error, SessionEnded)
                response.headers[SESSION_HEADER] = "ended" if is_ended else "other"
            retry_after = getattr(error, "retry_after", None)
            if retry_after is not None:
                response.headers["Retry-After"] = str(round(retry_after))
        except Exception as error:
            kind, detail = classify_error(request.state.request_id, error)
            response = self.build_error_page(request, kind.status, kind.title, detail)
        for name, value in _HEADERS.items():
            response.headers.setdefault(name, value)
        return response

    def build_sign_in_page(
        self, status: int = 200, problem: str = "", project: str = ""
    ) -> Response:
        """Return the sign-in page.

        Its form redirects to the origin of the new session.
        """
        page = self.renderer.page("sign_in.html", problem=problem, project=project)
        response = HTMLResponse(page, status)
        if not self.settings.is_secure:
            # Browsers also apply form-action to a redirect after a form.
            allowed = "form-action 'self' http://*.localhost:*"
            response.headers[_POLICY_HEADER] = _POLICY.replace("form-action 'self'", allowed)
        return response

    def _sign_in_again(self, visit: Visit) -> Response:
        if "hx-request" in visit.request.headers:
            return Response(headers={"HX-Redirect": SIGN_IN})
        return self.build_sign_in_page(_FORBIDDEN, SIGN_IN_AGAIN, visit.session.project or "")

    def build_error_page(
        self, request: Request, status: int, title: str, detail: str | None
    ) -> Response:
        """Return the page of an error; for a script, only the part to insert into a page."""
        is_partial = "hx-request" in request.headers or "x-panel-upload" in request.headers
        template = "problem.html" if is_partial else "error.html"
        texts = getattr(request.state, "texts", ())
        page = self.renderer.page(template, title=title, detail=detail, status=status, texts=texts)
        return HTMLResponse(page, status)


def require_token(sent_token: str, token: str) -> None:
    """Require the session's token in an unsafe request."""
    if not hmac.compare_digest(sent_token.encode("utf-8", "surrogatepass"), token.encode()):
        raise OtherSession(
            "this page belongs to a different session",
            hint="open the panel again, and repeat the action",
        )


def _keep_texts(request: Request, page: PanelPage, form: Mapping[str, tuple[str, ...]]) -> None:
    """Store the texts that a person wrote, so that an error page can show them for copying."""
    texts = [text for name in page.texts for text in form.get(name, ()) if text]
    if texts:
        request.state.texts = texts


def _redirect_to_login(request: Request) -> Response:
    if "hx-request" in request.headers:
        return Response(headers={"HX-Redirect": SIGN_IN})
    return RedirectResponse(SIGN_IN, _SEE_OTHER)


class SignedForm(UploadForm):
    """A parser of a form in which a field with the request token precedes the file."""

    def __init__(self, content_type: str, fields: frozenset[str], token: str) -> None:
        super().__init__(content_type, fields | {TOKEN_FIELD})
        self._token = token

    def _end_headers(self) -> None:
        super()._end_headers()
        if self._part.is_file:
            require_token(self.values.get(TOKEN_FIELD, ""), self._token)

    def finish(self) -> str:
        """See UploadForm; also require the token in a form without a file."""
        require_token(self.values.get(TOKEN_FIELD, ""), self._token)
        return super().finish()
