"""The guard: a request is authenticated before its body is read.

A body is read only with a valid token, up to a maximum size, and within a time limit. Requests
without a valid token are counted by address. An address above the allowed rate gets 429. Many
clients behind a proxy may share an address, so even then, tokens that were valid recently are
accepted, and other tokens are checked one at a time. This allows some guesses, but guessing 256
random bits is hopeless.

A sender below the minimum rate is refused, because a sender of only a byte now and then would
occupy a turn forever. The time that the service needs to store the bytes does not count.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from hashlib import blake2b
from typing import Any, ClassVar, Protocol, TypeVar

import anyio
from anyio import CapacityLimiter
from anyio.to_thread import run_sync
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect
from starlette.types import Scope

from rag_assets.api.admission import CLIENT_GONE, Admission, ClientGone
from rag_assets.api.authentication import Authenticator, get_client_address
from rag_assets.api.identity import Identity, Unauthenticated
from rag_assets.api.middleware import replay_body
from rag_assets.api.problems import Refused
from rag_assets.api.rate_limits import SharedLimits, TooManyAttempts
from rag_assets.api.settings import Network
from rag_assets.common.errors import RagAssetsError, UploadTooLarge
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.uploads import require_size
from rag_assets.storage.blobs.store import ReceivedFile

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
            return await self._validate_and_remember(validate, shown)
        address = get_client_address(scope, self._proxies).encode()
        wait = self._attempts.wait(address)
        if not wait:
            return await self._count_failed_attempt(validate, shown, address)
        if address in self._tried:
            raise TooManyAttempts(math.ceil(wait))
        self._tried.add(address)
        try:
            return await self._validate_and_remember(validate, shown)
        except Unauthenticated:
            raise TooManyAttempts(math.ceil(wait)) from None
        finally:
            self._tried.discard(address)

    async def _count_failed_attempt(
        self, validate: Callable[[], Awaitable[_T]], shown: bytes, address: bytes
    ) -> _T:
        try:
            return await self._validate_and_remember(validate, shown)
        except Unauthenticated:
            self._attempts.count(address)
            raise

    async def _validate_and_remember(
        self, validate: Callable[[], Awaitable[_T]], shown: bytes
    ) -> _T:
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
            return await handler(await self.admit_request(request))

        return guarded

    async def admit_request(self, request: Request) -> Request:
        """Return the request for the handler, after reading its body within the limits."""
        body = await whole_body(request, most=self.most_bytes)
        require_few_values(body, most=self.most_values)
        return Request(request.scope, replay_body(body, request.receive))


class Streamed(Guarded):
    """A guarded route with a handler that reads the body in pieces, or refuses it unread."""

    async def admit_request(self, request: Request) -> Request:
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


LEAST_RATE = 16 * 1024
"""Minimum rate of a sender, in bytes per second."""

PATIENCE = 10.0
"""Seconds by which a sender may be slower than the minimum rate."""

_AROUND_BYTES = 64 * 1024
"""Maximum bytes of a form in addition to its file."""

_WRITE_BYTES = 256 * 1024
_LINGER_SECONDS = 5.0
_THREADS = 4


class Content(Protocol):
    """A parser of a body that contains a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return the pieces of the file that the next bytes of the body contain."""
        ...


class RawContent:
    """A body that is a file."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return all bytes."""
        return (data,)


class Receiving:
    """The receiving of files, with a limit on concurrent files.

    Args:
        turns: limits on the number of files that are received at once.
        patience: see PATIENCE.
    """

    def __init__(self, turns: Admission, patience: float = PATIENCE) -> None:
        self._turns = turns
        self._patience = patience
        self._threads = CapacityLimiter(_THREADS)

    @asynccontextmanager
    async def file(
        self,
        request: Request,
        form: Content,
        source: UploadsConfig,
        *,
        tenant_id: str,
        caller: str,
        receive: Callable[[], ReceivedFile],
    ) -> AsyncIterator[ReceivedFile]:
        """Receive the whole file of a form; it is discarded at the end unless it was stored.

        Args:
            request: the request with the form.
            form: parses the body.
            source: limits the size of the file.
            tenant_id, caller: tenant and caller for whom a turn is taken.
            receive: creates the file to write to.

        Raises:
            Overloaded: too many other files are being received.
            UploadTooLarge, UploadRefused: see UploadForm and require_size.
            Refused: the body arrives too slowly.
            ClientGone: the client has disconnected.
            ServiceUnavailable: the file cannot be stored now.
        """
        if promised_bytes(request) > source.max_bytes + _AROUND_BYTES:
            require_size(promised_bytes(request), source)
        async with self._turns.turn(tenant_id, caller):
            received = await run_sync(receive, limiter=self._threads)
            try:
                await self._take(request, form, source, received)
                yield received
            finally:
                with anyio.CancelScope(shield=True):
                    await run_sync(received.discard, limiter=self._threads)

    async def _take(
        self, request: Request, form: Content, source: UploadsConfig, received: ReceivedFile
    ) -> None:
        stream = self._data(request)
        try:
            await self._write_all(stream, form, source, received)
        except RagAssetsError:
            await _read_away(stream)
            raise

    async def _write_all(
        self,
        stream: AsyncIterator[bytes],
        form: Content,
        source: UploadsConfig,
        received: ReceivedFile,
    ) -> None:
        gathered = bytearray()
        around = 0
        async for data in stream:
            size = len(gathered)
            for piece in form.feed(data):
                gathered += piece
            around += len(data) - (len(gathered) - size)
            if around > _AROUND_BYTES:
                raise UploadTooLarge(
                    "the parts of the form other than the file are too large",
                    hint="send only the file and the documented fields",
                )
            require_size(received.size + len(gathered), source)
            if len(gathered) >= _WRITE_BYTES:
                await self._write(received, gathered)
        await self._write(received, gathered)

    async def _write(self, received: ReceivedFile, gathered: bytearray) -> None:
        piece = bytes(gathered)
        gathered.clear()
        if piece:
            await run_sync(partial(received.write, piece), limiter=self._threads)

    async def _data(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the body as it arrives."""
        stream = aiter(request.stream())
        waited, size = 0.0, 0
        while True:
            began = time.monotonic()
            left = self._patience + size / LEAST_RATE - waited
            try:
                async with asyncio.timeout(max(left, 0.0)):
                    data = await anext(stream)
            except StopAsyncIteration:
                return
            except ClientDisconnect:
                raise ClientGone from None
            except TimeoutError:
                slow = f"a file must arrive with at least {LEAST_RATE // 1024} KiB per second"
                raise Refused(_TOO_SLOW, slow, {"Connection": "close"}) from None
            waited += time.monotonic() - began
            size += len(data)
            yield data


async def _read_away(stream: AsyncIterator[bytes]) -> None:
    """Read and drop the rest of a body: otherwise a reset connection would lose the answer."""
    with anyio.move_on_after(_LINGER_SECONDS), suppress(Refused, ClientGone):
        async for _ in stream:
            pass
