"""Signing in, by the code of a link or by a token, and signing out.

A token also creates a link, which leads to the origin of the new session. The page of a link shows
which session the code opens, and opens it only when its form is submitted. So prefetching does not
use the code up, and nobody is signed in to another project by accident.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response

from rag_assets.api.identity import ForeignOrigin, Identity, Unauthenticated
from rag_assets.api.problems import classify_error
from rag_assets.common.errors import RagAssetsError
from rag_assets.common.formatting import format_count
from rag_assets.panel.frame import PanelPage, Visit
from rag_assets.panel.guarding import (
    SIGN_IN,
    TOKEN_FIELD,
    PanelGuard,
    PanelRoute,
    require_token,
)
from rag_assets.panel.sessions import (
    build_holder,
    create_link,
    derive_request_token,
    get_panel_tenant,
    hash_secret,
    redeem_code,
    start_session,
)
from rag_assets.panel.settings import PATH
from rag_assets.storage.catalog.accounts.panel_sessions import PanelSession
from rag_assets.storage.catalog.tenants.table import TenantRecord

ENTER = f"{PATH}/enter"
SESSIONS = "/sessions"
_AGAIN_FIELDS = ("key", "project", "tenant")
_MAX_CODE_LENGTH = 100
_MAX_PROJECT_LENGTH = 1_000
_UNPROCESSABLE = 422
_GONE = 410
_SEE_OTHER = 303
_USED_LINK = (
    "This link was used already, or is older than a minute. Open the panel again from your"
    " application."
)


class SignInPages:
    """Pages that sign in and out."""

    def __init__(self, guarding: PanelGuard) -> None:
        self._guarding = guarding
        self._catalog = guarding.backend.catalog
        self._table = self._catalog.panel_sessions

    def routes(self) -> list[PanelRoute]:
        """Return the routes for signing in and out, and for a person's sessions."""
        open_route = self._guarding.build_open_route
        return [
            open_route(PATH, "GET", self.start),
            open_route(SIGN_IN, "GET", self.show_form),
            open_route(SIGN_IN, "POST", self.sign_in_by_token),
            open_route(f"{SIGN_IN}/again", "POST", self.sign_in_again),
            open_route(f"{PATH}/session", "GET", self.show_current_session),
            open_route(ENTER, "GET", self.show_link),
            open_route(ENTER, "POST", self.sign_in_by_code),
            open_route(f"{PATH}/sign-out", "POST", self.sign_out),
            *(
                self._guarding.build_page_route(system, page)
                for system in self._guarding.systems.values()
                for page in (
                    PanelPage(SESSIONS, self.show_sessions),
                    PanelPage(SESSIONS, self.end_others, "POST"),
                )
            ),
        ]

    async def start(self, request: Request) -> Response:
        """Redirect to the first page of the session's system."""
        session, _ = await self._guarding.find_session(request)
        system = self._guarding.systems.get(session.profile)
        if system is None:
            raise Unauthenticated(
                "the session's tenant no longer has a panel", hint="sign in to another project"
            )
        return RedirectResponse(system.home, _SEE_OTHER)

    async def show_form(self, request: Request) -> Response:
        """Show the form in which a person enters a token."""
        return self._guarding.build_sign_in_page(
            project=request.query_params.get("project", "")[:_MAX_PROJECT_LENGTH]
        )

    async def sign_in_by_token(self, request: Request) -> Response:
        """Check the submitted token, and redirect to a link that opens a session for it.

        If the token is refused, the form is shown again with the reason.
        """
        form = await self._guarding.read_form(request)
        token, project = (next(iter(form.get(name, ())), "").strip() for name in ("key", "project"))
        try:
            identity, record = await self._check_token(request, token, project)
        except RagAssetsError as error:
            problem = self._describe_refusal(request, error)
            return self._guarding.build_sign_in_page(_UNPROCESSABLE, problem, project)
        origin = self._guarding.settings.create_session_origin(request.scope["server"][1])
        make = partial(create_link, self._catalog, record.ref, build_holder(identity), origin)
        return RedirectResponse((await self._guarding.run_in_thread(make)).url, _SEE_OTHER)

    async def sign_in_again(self, request: Request) -> Response:
        """Start a new session for a page with an unsaved text, at the same origin and tenant.

        The response contains the request token with which the page can then send its form.
        """
        origin = self._guarding.require_origin(request)
        if not self._guarding.settings.is_session_origin(origin):
            raise ForeignOrigin("no session can start at this address", hint="open the panel again")
        form = await self._guarding.read_form(request)
        fields = {name: next(iter(form.get(name, ())), "").strip() for name in _AGAIN_FIELDS}
        try:
            identity, record = await self._check_token(request, fields["key"], fields["project"])
        except RagAssetsError as error:
            return JSONResponse({"problem": self._describe_refusal(request, error)}, _UNPROCESSABLE)
        if record.id != fields["tenant"]:
            problem = "This token does not cover the project of this page."
            return JSONResponse({"problem": problem}, _UNPROCESSABLE)
        begin = partial(start_session, self._catalog, record.ref, build_holder(identity), origin)
        secret = await self._guarding.run_in_thread(begin)
        response = JSONResponse({"tenant": record.id, "token": derive_request_token(secret)})
        self._set_cookie(response, secret)
        return response

    async def show_current_session(self, request: Request) -> Response:
        """Return the tenant and the request token of the current session as JSON.

        A page that was loaded in an earlier session can then send its form.
        """
        session, secret = await self._guarding.find_session(request, use=False)
        return JSONResponse({"tenant": session.tenant.id, "token": derive_request_token(secret)})

    async def show_link(self, request: Request) -> Response:
        """Show the page of a link, without using the code up."""
        code = request.query_params.get("code", "")
        session = await self._find_code_session(request, code)
        if session is None:
            return self._build_used_link_page()
        return HTMLResponse(self._guarding.renderer.page("enter.html", session=session, code=code))

    async def sign_in_by_code(self, request: Request) -> Response:
        """Start the session of a code, and use the code up."""
        form = await self._guarding.read_form(request)
        code = next(iter(form.get("code", ())), "")
        if await self._find_code_session(request, code) is None:
            return self._build_used_link_page()
        origin = self._guarding.require_origin(request)
        secret = await self._guarding.run_in_thread(
            partial(redeem_code, self._catalog, code, origin)
        )
        if secret is None:
            return self._build_used_link_page()
        # Only the cookie determines the first page of the system.
        response = RedirectResponse(PATH, _SEE_OTHER)
        self._set_cookie(response, secret)
        return response

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        response = RedirectResponse(f"{SIGN_IN}?out=1", _SEE_OTHER)
        try:
            _, secret = await self._guarding.find_session(request)
        except Unauthenticated:
            return response
        form = await self._guarding.read_form(request)
        require_token(next(iter(form.get(TOKEN_FIELD, ())), ""), derive_request_token(secret))
        await self._guarding.run_in_thread(
            partial(self._table.end, self._hash_secret(request, secret))
        )
        settings = self._guarding.settings
        response.delete_cookie(
            settings.cookie_name,
            path=settings.cookie_path,
            secure=settings.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def show_sessions(self, visit: Visit) -> Response:
        """Show the other sessions of the signed-in person."""
        return await self._render_sessions(visit)

    async def end_others(self, visit: Visit) -> Response:
        """End the other sessions of the signed-in person."""
        ended = partial(self._table.end_others, self._hash_current_secret(visit))
        count = await self._guarding.run_in_thread(ended)
        return await self._render_sessions(visit, f"{format_count(count, 'session')} ended.")

    async def _render_sessions(self, visit: Visit, done: str = "") -> Response:
        find_others = partial(self._table.list_others, self._hash_current_secret(visit))
        others = await self._guarding.run_in_thread(find_others)
        return HTMLResponse(
            self._guarding.renderer.page("sessions.html", visit=visit, others=others, done=done)
        )

    def _hash_current_secret(self, visit: Visit) -> bytes:
        secret = visit.request.cookies[self._guarding.settings.cookie_name]
        return self._hash_secret(visit.request, secret)

    def _hash_secret(self, request: Request, secret: str) -> bytes:
        return hash_secret(secret, self._guarding.require_origin(request))

    async def _find_code_session(self, request: Request, code: str) -> PanelSession | None:
        """Return the session that a code opens; None for an invalid code.

        An invalid code counts as a failed attempt of the client's address.
        """

        async def validate() -> PanelSession:
            session = None
            if 0 < len(code) <= _MAX_CODE_LENGTH:
                find = partial(self._table.find_code, self._hash_secret(request, code))
                session = await self._guarding.run_in_thread(find)
            if session is None:
                raise Unauthenticated(
                    "the link was already used, or has expired", hint="get a new link"
                )
            return session

        try:
            guard = self._guarding.backend.guard
            return await guard.validate(request.scope, f"panel code {code}", validate)
        except Unauthenticated:
            return None

    def _set_cookie(self, response: Response, secret: str) -> None:
        settings = self._guarding.settings
        response.set_cookie(
            settings.cookie_name,
            secret,
            path=settings.cookie_path,
            secure=settings.is_secure,
            httponly=True,
            samesite="lax",
        )

    async def _check_token(
        self, request: Request, token: str, project: str
    ) -> tuple[Identity, TenantRecord]:
        """Return the identity of a token, and the tenant whose panel the token may open."""
        guard = self._guarding.backend.guard
        header = f"Bearer {token}"
        identity: Identity = await guard.validate(
            request.scope, header, partial(guard.authenticator.authenticate, header)
        )
        profiles = tuple(self._guarding.systems)
        record = await self._guarding.run_in_thread(
            partial(get_panel_tenant, self._catalog, identity, project or None, profiles)
        )
        return identity, record

    def _describe_refusal(self, request: Request, error: RagAssetsError) -> str:
        if isinstance(error, Unauthenticated):
            return "This token is not valid here, or has expired."
        kind, detail = classify_error(request.state.request_id, error)
        return f"{kind.title}: {detail}." if detail else f"{kind.title}."

    def _build_used_link_page(self) -> Response:
        return self._guarding.build_sign_in_page(_GONE, _USED_LINK)
