"""The guard: a request is authenticated before its body is read.

A body is read only with a valid token, up to a maximum size, and within a time limit. Requests
without a valid token are counted by address. An address above the allowed rate gets 429. Many
clients behind a proxy may share an address, so even then, tokens that were valid recently are
accepted, and other tokens are checked one at a time. This allows some guesses, but guessing 256
random bits is hopeless.
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
"""Maximum bytes of a request body: several times the longest question with all its filters."""

MAX_VALUES = 20_000
"""Maximum number of JSON values in a body, on all levels: a search may name 10,000 pages."""

_BODY_SECONDS = 10.0
_KNOWN_SECONDS = 600.0
_TOO_SLOW = 408
_TOO_LARGE = 413
_ENCODED = 415


WRITERS_ENDPOINTS: set[Callable[..., Any]] = set()
"""The endpoints that accept tokens with the role `writer`; all others refuse them."""


def open_to_writers(endpoint: _E) -> _E:
    """Let tokens of the role `writer` use an endpoint."""
    WRITERS_ENDPOINTS.add(endpoint)
    return endpoint


class Guard:
    """The authentication of requests, with a limit on attempts without a valid token.

    Args:
        authenticator: validates tokens.
        limits: the counts that all workers share.
        proxies: networks of proxies that are trusted for X-Forwarded-For.
        clock: returns the current time in seconds; all workers must see the same time.
        require_trust: called for each request; raises an error while no credential may be accepted.
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
        """Return the identity of a request's token.

        Raises:
            Unauthenticated: the request lacks a valid token.
            TooManyAttempts: too many requests from the same address lacked a valid token.
            ServiceUnavailable: Postgres or the key server does not answer.
        """
        header = request.headers.get("authorization")
        return await self.checked(
            request.scope, header or "", lambda: self.authenticator.identity(header)
        )

    async def checked(
        self, scope: Scope, credential: str, validate: Callable[[], Awaitable[_T]]
    ) -> _T:
        """Validate a credential, with a limit on attempts without a valid credential.

        Args:
            scope: the request's ASGI scope.
            credential: the credential of the request; if valid, it is remembered.
            validate: returns the result for a valid credential; raises Unauthenticated for any
                other.

        Raises:
            Unauthenticated, TooManyAttempts, ServiceUnavailable: see identity().
            RestorePending: a catalog was restored, and the operator has not accepted it yet.
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
        most_bytes: maximum bytes of a request's body.
        most_values: maximum number of JSON values in the body; see require_few_values.
    """

    most_bytes: ClassVar[int] = MAX_BODY
    most_values: ClassVar[int] = MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, behind the guard."""
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
        """Return the request for the handler, after reading its body within the limits."""
        body = await whole_body(request, most=self.most_bytes)
        require_few_values(body, most=self.most_values)
        return Request(request.scope, replayed(body, request.receive))


class Streamed(Guarded):
    """A guarded route with a handler that reads the body in pieces, or refuses it unread."""

    async def admitted(self, request: Request) -> Request:
        """Return the request without reading its body."""
        require_plain(request)
        # Waiting for a disconnect would consume the messages that contain the body.
        CLIENT_GONE.set(_never)
        return request


async def _never() -> None:
    await asyncio.get_running_loop().create_future()


async def whole_body(
    request: Request, seconds: float = _BODY_SECONDS, most: int = MAX_BODY
) -> bytes:
    """Read and return the whole body.

    Args:
        seconds: time limit for the body.
        most: maximum size in bytes.

    Raises:
        Refused: the body is too large, arrives too slowly, or is compressed.
    """
    require_plain(request)
    if promised_bytes(request) > most:
        raise _too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _receive_body(request, most)
    except TimeoutError:
        late = f"the whole body must arrive within {seconds:g} seconds"
        raise Refused(_TOO_SLOW, late, {"Connection": "close"}) from None


def require_plain(request: Request) -> None:
    """Require that a body is not compressed.

    Raises:
        Refused: the body is compressed.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(_ENCODED, "send the body uncompressed, without Content-Encoding")


def promised_bytes(request: Request) -> int:
    """Return the size of the body in bytes according to its headers; 0 if they do not state it."""
    promised = request.headers.get("content-length", "")
    return int(promised[:20]) if promised.isdecimal() else 0


def require_few_values(body: bytes, most: int = MAX_VALUES) -> None:
    """Require that a body contains at most a given number of JSON values.

    Validation creates an error for each invalid value: one megabyte of invalid values would delay
    all other requests by a second.

    Raises:
        Refused: the body contains more than `most` values.
    """
    # Texts may contain many commas, so the number of commas only decides whether the body is parsed
    # and its values are counted.
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
                raise Refused(_TOO_LARGE, f"the body must contain at most {most} JSON values")
            values += value.values() if isinstance(value, dict) else value


async def _receive_body(request: Request, most: int) -> bytes:
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
    return Refused(_TOO_LARGE, f"the body must have at most {most} bytes")
