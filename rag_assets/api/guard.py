"""The guard: a request is authenticated before anything of it is read.

Bodies are read only of requests with a valid token, within a limit and in time. Requests without
one are counted by address: beyond a rate they are answered 429. An address may be that of a proxy
with many clients, so a token that was valid lately is still accepted, and others are tried one at
a time: guessing 256 random bits is hopeless however often one tries.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from hashlib import blake2b
from typing import Any, ClassVar, TypeVar

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from rag_assets.api.admission import CLIENT_GONE, ClientGone
from rag_assets.api.authentication import Authenticator
from rag_assets.api.client_addresses import client_of
from rag_assets.api.identity import Identity, Unauthenticated
from rag_assets.api.middleware import replayed
from rag_assets.api.problems import Refused
from rag_assets.api.rate_limits import TooManyAttempts
from rag_assets.api.settings import Network
from rag_assets.api.shared_limits import SharedLimits

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Callable[..., Any])

MAX_BODY = 1_048_576
"""Bytes of a request: several times the longest question with all its filters."""

MAX_VALUES = 20_000
"""Values in a body, all levels together: a search may name 10,000 pages."""

_BODY_SECONDS = 10.0
_KNOWN_SECONDS = 600.0
_TOO_SLOW = 408
_TOO_LARGE = 413
_ENCODED = 415


WRITERS_ENDPOINTS: set[Callable[..., Any]] = set()
"""The endpoints that tokens of the role `writer` may use; all others refuse them."""


def open_to_writers(endpoint: _E) -> _E:
    """Let tokens of the role `writer` use an endpoint."""
    WRITERS_ENDPOINTS.add(endpoint)
    return endpoint


class Guard:
    """Authenticates requests, and limits attempts without a valid token.

    Args:
        authenticator: validates tokens.
        limits: what all workers count together.
        proxies: trusted for X-Forwarded-For.
        clock: in seconds, the same in all workers.
        require_trust: raises while no credential is accepted; called for each request.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        limits: SharedLimits,
        proxies: Collection[Network] = (),
        clock: Callable[[], float] = time.monotonic,
        *,
        require_trust: Callable[[], None] | None = None,
    ) -> None:
        self.authenticator = authenticator
        self._require_trust = require_trust
        self._proxies = proxies
        self._attempts, self._known = limits.attempts, limits.known
        self._clock = clock
        self._tried: set[bytes] = set()

    async def identity(self, request: Request) -> Identity:
        """The identity of a request's token.

        Raises:
            Unauthenticated: it has no valid token.
            TooManyAttempts: nor had many before, from the same address.
            ServiceUnavailable: Postgres, or the key server, does not answer.
        """
        header = request.headers.get("authorization")
        return await self.checked(
            request.scope, header or "", lambda: self.authenticator.identity(header)
        )

    async def checked(
        self, scope: Scope, credential: str, validate: Callable[[], Awaitable[_T]]
    ) -> _T:
        """What a credential proves, with attempts without a valid one limited.

        Args:
            scope: of the request.
            credential: that the request holds; each of its own.
            validate: raises Unauthenticated for one that is not valid.

        Raises:
            Unauthenticated, TooManyAttempts, ServiceUnavailable: see identity().
            RestorePending: a catalog was restored, and no operator has accepted it yet.
        """
        if self._require_trust is not None:
            self._require_trust()
        shown = blake2b(credential.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if self._is_known(shown):
            return await self._validated(validate, shown)
        address = client_of(scope, self._proxies).encode()
        wait = self._attempts.wait(address)
        if not wait:
            return await self._counted(validate, shown, address)
        if address in self._tried:
            raise TooManyAttempts(math.ceil(wait))
        self._tried.add(address)
        try:
            return await self._validated(validate, shown)
        except Unauthenticated:
            raise TooManyAttempts(math.ceil(wait)) from None
        finally:
            self._tried.discard(address)

    async def _counted(
        self, validate: Callable[[], Awaitable[_T]], shown: bytes, address: bytes
    ) -> _T:
        try:
            return await self._validated(validate, shown)
        except Unauthenticated:
            self._attempts.count(address)
            raise

    async def _validated(self, validate: Callable[[], Awaitable[_T]], shown: bytes) -> _T:
        try:
            proved = await validate()
        except Unauthenticated:
            with self._known.locked(shown, self._clock()) as record:
                record.remove()
            raise
        now = self._clock()
        with self._known.locked(shown, now) as record:
            record.write(b"", now + _KNOWN_SECONDS)
        return proved

    def _is_known(self, shown: bytes) -> bool:
        with self._known.locked(shown, self._clock()) as record:
            return record.is_there


class Guarded(APIRoute):
    """A route for requests with a valid token.

    Attributes:
        most_bytes: of a request's body.
        most_values: in it; see require_few_values.
    """

    most_bytes: ClassVar[int] = MAX_BODY
    most_values: ClassVar[int] = MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, behind the guard."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            backend = request.app.state.backend
            identity: Identity = await backend.guard.identity(request)
            request.state.identity = identity
            request.state.caller = identity.name
            backend.rates.take(identity.name)
            if self.endpoint not in WRITERS_ENDPOINTS:
                identity.require_no_writer()
            return await handler(await self.admitted(request))

        return guarded

    async def admitted(self, request: Request) -> Request:
        """The request as its handler gets it: its body was read, and is small."""
        body = await whole_body(request, most=self.most_bytes)
        require_few_values(body, most=self.most_values)
        return Request(request.scope, replayed(body, request.receive))


class Streamed(Guarded):
    """A guarded route whose handler reads the body itself, piece by piece, or refuses it unread."""

    async def admitted(self, request: Request) -> Request:
        """The request with nothing of its body read."""
        require_plain(request)
        # To watch for the end of a connection takes what comes: that is the body here.
        CLIENT_GONE.set(_never)
        return request


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def whole_body(
    request: Request, seconds: float = _BODY_SECONDS, most: int = MAX_BODY
) -> bytes:
    """The whole body.

    Args:
        request: holds it.
        seconds: within which it must come.
        most: bytes that are read.

    Raises:
        Refused: it is larger than is read, comes too slowly, or is compressed.
    """
    require_plain(request)
    if promised_bytes(request) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _received(request, most)
    except TimeoutError:
        late = f"its body must come within {seconds:g} seconds"
        raise Refused(_TOO_SLOW, late, {"Connection": "close"}) from None


def require_plain(request: Request) -> None:
    """Require that a body is not compressed.

    Raises:
        Refused: it is.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(_ENCODED, "send the body as it is, without Content-Encoding")


def promised_bytes(request: Request) -> int:
    """Bytes of the body, as its headers say; 0 if they do not."""
    promised = request.headers.get("content-length", "")
    return int(promised[:20]) if promised.isdecimal() else 0


def require_few_values(body: bytes, most: int = MAX_VALUES) -> None:
    """Require that a body holds no more values than a request can need.

    Each wrong one makes an error: a million bytes of them delay all requests by a second.

    Args:
        body: of the request.
        most: values that it may hold.

    Raises:
        Refused: it holds more.
    """
    # Texts may hold many commas: these only select the bodies to parse.
    if body.count(b",") < most:
        return
    try:
        values = [json.loads(body)]
    except (ValueError, RecursionError):
        return
    seen = 0
    while values:
        value = values.pop()
        if isinstance(value, dict | list):
            seen += len(value)
            if seen > most:
                raise Refused(_TOO_LARGE, f"at most {most} values are read")
            values += value.values() if isinstance(value, dict) else value


async def _received(request: Request, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise _too_large(most)
    except ClientDisconnect:
        raise ClientGone from None
    return b"".join(parts)


def _too_large(most: int) -> Refused:
    return Refused(_TOO_LARGE, f"at most {most} bytes are read")
