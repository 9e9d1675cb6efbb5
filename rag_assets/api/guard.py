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
from collections.abc import Callable, Collection, Coroutine
from hashlib import blake2b
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect

from rag_assets.api.admission import ClientGone
from rag_assets.api.authentication import Authenticator
from rag_assets.api.client_addresses import client_of
from rag_assets.api.identity import Identity, Unauthenticated
from rag_assets.api.middleware import replayed
from rag_assets.api.problems import Refused
from rag_assets.api.rate_limits import TooManyAttempts
from rag_assets.api.settings import Network
from rag_assets.api.shared_limits import SharedLimits

MAX_BODY = 1_048_576
"""Bytes of a request: several times the longest question with all its filters."""

MAX_VALUES = 10_000
"""Values in a body, all levels together: of a record there are at most 50 tags, and 50 lists."""

_BODY_SECONDS = 10.0
_KNOWN_SECONDS = 600.0
_TOO_SLOW = 408
_TOO_LARGE = 413
_ENCODED = 415


class Guard:
    """Authenticates requests, and limits attempts without a valid token.

    Args:
        authenticator: validates tokens.
        limits: what all workers count together.
        proxies: trusted for X-Forwarded-For.
        clock: in seconds, the same in all workers.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        limits: SharedLimits,
        proxies: Collection[Network] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.authenticator = authenticator
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
        shown = blake2b((header or "").encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if self._is_known(shown):
            return await self._authenticated(header, shown)
        address = client_of(request.scope, self._proxies).encode()
        wait = self._attempts.wait(address)
        if not wait:
            return await self._counted(header, shown, address)
        if address in self._tried:
            raise TooManyAttempts(math.ceil(wait))
        self._tried.add(address)
        try:
            return await self._authenticated(header, shown)
        except Unauthenticated:
            raise TooManyAttempts(math.ceil(wait)) from None
        finally:
            self._tried.discard(address)

    async def _counted(self, header: str | None, shown: bytes, address: bytes) -> Identity:
        try:
            return await self._authenticated(header, shown)
        except Unauthenticated:
            self._attempts.count(address)
            raise

    async def _authenticated(self, header: str | None, shown: bytes) -> Identity:
        try:
            identity = await self.authenticator.identity(header)
        except Unauthenticated:
            with self._known.locked(shown, self._clock()) as record:
                record.remove()
            raise
        now = self._clock()
        with self._known.locked(shown, now) as record:
            record.write(b"", now + _KNOWN_SECONDS)
        return identity

    def _is_known(self, shown: bytes) -> bool:
        with self._known.locked(shown, self._clock()) as record:
            return record.is_there


class Guarded(APIRoute):
    """A route for requests with a valid token."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The route's handler, behind the guard."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            backend = request.app.state.backend
            identity: Identity = await backend.guard.identity(request)
            request.state.identity = identity
            request.state.caller = identity.name
            backend.rates.take(identity.name)
            body = await whole_body(request)
            require_few_values(body)
            return await handler(Request(request.scope, replayed(body, request.receive)))

        return guarded


async def whole_body(request: Request, seconds: float = _BODY_SECONDS) -> bytes:
    """The whole body.

    Raises:
        Refused: it is larger than is read, comes too slowly, or is compressed.
    """
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(_ENCODED, "send the body as it is, without Content-Encoding")
    promised = request.headers.get("content-length", "")
    if promised.isdecimal() and int(promised[:20]) > MAX_BODY:
        raise _too_large()
    try:
        async with asyncio.timeout(seconds):
            return await _received(request)
    except TimeoutError:
        late = f"its body must come within {seconds:g} seconds"
        raise Refused(_TOO_SLOW, late, {"Connection": "close"}) from None


def require_few_values(body: bytes) -> None:
    """Require that a body holds no more values than a request can need.

    Each wrong one makes an error: a million bytes of them delay all requests by a second.

    Raises:
        Refused: it holds more.
    """
    # Texts may hold many commas: these only select the bodies to parse.
    if body.count(b",") < MAX_VALUES:
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
            if seen > MAX_VALUES:
                raise Refused(_TOO_LARGE, f"at most {MAX_VALUES} values are read")
            values += value.values() if isinstance(value, dict) else value


async def _received(request: Request) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > MAX_BODY:
                raise _too_large()
    except ClientDisconnect:
        raise ClientGone from None
    return b"".join(parts)


def _too_large() -> Refused:
    return Refused(_TOO_LARGE, f"at most {MAX_BODY} bytes are read")
