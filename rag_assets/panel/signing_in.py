"""Signing in by a link's code or by a token, and signing out.

A link's page shows whose session its code begins, and begins none before its form is sent: what
fetches links ahead uses nothing up, and nobody is signed in to a stranger's project unawares.
"""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rag_assets.api.identity import Identity, Unauthenticated
from rag_assets.common.errors import RagAssetsError
from rag_assets.panel.guarding import (
    SIGN_IN,
    TOKEN_FIELD,
    Guarding,
    PanelRoute,
    require_token,
)
from rag_assets.panel.projects import panel_tenant
from rag_assets.panel.sessions import begun, hashed, holder_of, redeemed, request_token
from rag_assets.panel.settings import PATH
from rag_assets.storage.catalog.panel_sessions import PanelSession

ENTER = f"{PATH}/enter"
_MOST_CODE = 100
_UNPROCESSABLE = 422
_GONE = 410
_SEE_OTHER = 303
_USED_UP = (
    "This link was used already, or is older than a minute. Open the panel again from your"
    " application."
)


class SigningIn:
    """Pages for people who are not signed in.

    Args:
        guarding: of the panel.
    """

    def __init__(self, guarding: Guarding) -> None:
        self._guarding = guarding
        self._catalog = guarding.backend.catalog

    def routes(self) -> list[PanelRoute]:
        """All of them."""
        opened = self._guarding.open
        return [
            opened(PATH, "GET", self.start),
            opened(SIGN_IN, "GET", self.form),
            opened(SIGN_IN, "POST", self.by_token),
            opened(ENTER, "GET", self.link),
            opened(ENTER, "POST", self.by_code),
            opened(f"{PATH}/sign-out", "POST", self.sign_out),
        ]

    async def start(self, request: Request) -> Response:
        """Lead to the first page of the session's system."""
        session, _ = await self._guarding.session(request)
        return RedirectResponse(self._home(session), _SEE_OTHER)

    async def form(self, request: Request) -> Response:
        """The form for a token."""
        return self._form()

    async def by_token(self, request: Request) -> Response:
        """Begin a session by a token."""
        form = await self._guarding.form(request)
        token, project = (next(iter(form.get(name, ())), "").strip() for name in ("key", "project"))
        guard = self._guarding.backend.guard
        header = f"Bearer {token}"
        try:
            identity: Identity = await guard.checked(
                request.scope, header, partial(guard.authenticator.identity, header)
            )
            profiles = tuple(self._guarding.systems)
            record = await self._guarding.in_thread(
                partial(panel_tenant, self._catalog, identity, project or None, profiles)
            )
        except Unauthenticated:
            return self._form("This token is not valid here, or has expired.", project)
        except RagAssetsError as error:
            return self._form(self._words(request, error), project)
        holder = holder_of(identity)
        secret = await self._guarding.in_thread(partial(begun, self._catalog, record.ref, holder))
        return self._signed_in(secret)

    async def link(self, request: Request) -> Response:
        """The page of a link, which uses nothing up."""
        code = request.query_params.get("code", "")
        session = await self._coded(request, code)
        if session is None:
            return self._used_up()
        return HTMLResponse(self._guarding.renderer.page("enter.html", session=session, code=code))

    async def by_code(self, request: Request) -> Response:
        """Begin the session of a code, which is used up."""
        form = await self._guarding.form(request)
        code = next(iter(form.get("code", ())), "")
        if await self._coded(request, code) is None:
            return self._used_up()
        secret = await self._guarding.in_thread(partial(redeemed, self._catalog, code))
        return self._used_up() if secret is None else self._signed_in(secret)

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        response = RedirectResponse(f"{SIGN_IN}?out=1", _SEE_OTHER)
        try:
            _, secret = await self._guarding.session(request)
        except Unauthenticated:
            return response
        form = await self._guarding.form(request)
        require_token(next(iter(form.get(TOKEN_FIELD, ())), ""), request_token(secret))
        table = self._catalog.panel_sessions
        await self._guarding.in_thread(partial(table.end, hashed(secret)))
        settings = self._guarding.settings
        response.delete_cookie(
            settings.cookie_name,
            path=settings.cookie_path,
            secure=settings.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    async def _coded(self, request: Request, code: str) -> PanelSession | None:
        """What a code begins; unknown ones count as attempts of the address."""
        table = self._catalog.panel_sessions

        async def validate() -> PanelSession:
            found = None
            if 0 < len(code) <= _MOST_CODE:
                found = await self._guarding.in_thread(partial(table.find_code, hashed(code)))
            if found is None:
                raise Unauthenticated("the link is used up", hint="open another one")
            return found

        try:
            guard = self._guarding.backend.guard
            return await guard.checked(request.scope, f"panel code {code}", validate)
        except Unauthenticated:
            return None

    def _signed_in(self, secret: str) -> Response:
        settings = self._guarding.settings
        # Not home itself: the cookie decides which that is.
        response = RedirectResponse(PATH, _SEE_OTHER)
        response.set_cookie(
            settings.cookie_name,
            secret,
            path=settings.cookie_path,
            secure=settings.is_secure,
            httponly=True,
            samesite="lax",
        )
        return response

    def _home(self, session: PanelSession) -> str:
        system = self._guarding.systems.get(session.profile)
        if system is None:
            raise Unauthenticated("the session's tenant has no panel", hint="sign in again")
        return system.home

    def _form(self, problem: str | None = None, project: str = "") -> Response:
        status = 200 if problem is None else _UNPROCESSABLE
        page = self._guarding.renderer.page("sign_in.html", problem=problem, project=project)
        return HTMLResponse(page, status)

    def _used_up(self) -> Response:
        page = self._guarding.renderer.page("sign_in.html", problem=_USED_UP, project="")
        return HTMLResponse(page, _GONE)

    def _words(self, request: Request, error: RagAssetsError) -> str:
        from rag_assets.api.problems import classified

        kind, detail = classified(request.state.request_id, error)
        return f"{kind.title}: {detail}." if detail else f"{kind.title}."
