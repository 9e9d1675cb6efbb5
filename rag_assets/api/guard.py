"""The guard: authenticate a request before reading its body, and receive bodies within limits.

Requests without a valid token are counted by address, and an address above the allowed rate gets
429. Clients behind a proxy may share an address, so tokens that were valid recently are still
accepted, and other tokens are checked one at a time.

A sender below the minimum rate is refused, because it would occupy a turn for too long. The time
that the service takes to store the bytes does not count.
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
from rag_assets.api.problems import HttpRefusal
from rag_assets.api.rate_limits import SharedLimits, TooManyAttempts
from rag_assets.api.settings import Network
from rag_assets.common.errors import RagAssetsError, UploadTooLarge
from rag_assets.ingest.sources.uploads import UploadsConfig
from rag_assets.pipeline.uploads import require_size
from rag_assets.storage.blobs.store import ReceivedFile

_T = TypeVar("_T")
_E = TypeVar("_E", bound=Callable[..., Any])

MAX_BODY_BYTES = 1_048_576
"""Maximum bytes of a request body, several times the longest question with all filters."""

MAX_VALUES = 20_000
"""Maximum number of JSON values in a body, on all levels; a search may name 10,000 pages."""

_BODY_SECONDS = 10.0
_TRUST_SECONDS = 600.0
_TIMEOUT_STATUS = 408
_TOO_LARGE_STATUS = 413
_UNSUPPORTED_STATUS = 415


WRITERS_ENDPOINTS: set[Callable[..., Any]] = set()
"""The endpoints that accept tokens with the role `writer`; all others refuse them."""


def open_to_writers(endpoint: _E) -> _E:
    """Mark an endpoint that accepts tokens with the role `writer`."""
    WRITERS_ENDPOINTS.add(endpoint)
    return endpoint


class Guard:
    """The authentication of requests, with a limit on attempts without a valid token.

    Args:
        authenticator: validates tokens.
        proxies: networks of proxies that are trusted for X-Forwarded-For.
        clock: returns the current time in seconds, the same for all workers.
        require_trust: called for each request; raises an error if no credential may be accepted.
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
        self._checking: set[bytes] = set()

    async def authenticate(self, request: Request) -> Identity:
        """Return the identity of a request's token."""
        header = request.headers.get("authorization")
        return await self.validate(
            request.scope, header or "", lambda: self.authenticator.authenticate(header)
        )

    async def validate(
        self, scope: Scope, credential: str, validate: Callable[[], Awaitable[_T]]
    ) -> _T:
        """Return the result of `validate` for a credential, with a limit on failed attempts.

        Args:
            credential: the token or code; a digest of it is remembered if it is valid.
            validate: returns the result for a valid credential; otherwise raises Unauthenticated.

        Raises:
            RestorePending: the catalog was restored, and the operator has not accepted it yet.
        """
        if self._require_trust is not None:
            self._require_trust()
        digest = blake2b(credential.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if self._was_valid_recently(digest):
            return await self._validate_and_remember(validate, digest)
        address = get_client_address(scope, self._proxies).encode()
        wait = self._attempts.get_wait_seconds(address)
        if not wait:
            try:
                return await self._validate_and_remember(validate, digest)
            except Unauthenticated:
                self._attempts.count(address)
                raise
        if address in self._checking:
            raise TooManyAttempts(math.ceil(wait))
        self._checking.add(address)
        try:
            return await self._validate_and_remember(validate, digest)
        except Unauthenticated:
            raise TooManyAttempts(math.ceil(wait)) from None
        finally:
            self._checking.discard(address)

    async def _validate_and_remember(
        self, validate: Callable[[], Awaitable[_T]], digest: bytes
    ) -> _T:
        try:
            result = await validate()
        except Unauthenticated:
            with self._known.lock(digest, self._clock()) as record:
                record.remove()
            raise
        now = self._clock()
        with self._known.lock(digest, now) as record:
            record.write(b"", now + _TRUST_SECONDS)
        return result

    def _was_valid_recently(self, digest: bytes) -> bool:
        with self._known.lock(digest, self._clock()) as record:
            return record.is_live


class Guarded(APIRoute):
    """A route for requests with a valid token.

    Attributes:
        most_bytes: maximum bytes of a request's body.
        most_values: maximum number of JSON values in the body; see require_few_values.
    """

    most_bytes: ClassVar[int] = MAX_BODY_BYTES
    most_values: ClassVar[int] = MAX_VALUES

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's handler, behind the guard."""
        handler = super().get_route_handler()

        async def guarded(request: Request) -> Response:
            backend = request.app.state.backend
            identity: Identity = await backend.guard.authenticate(request)
            request.state.identity = identity
            request.state.caller = identity.name
            backend.rates.take(identity.name)
            if self.endpoint not in WRITERS_ENDPOINTS:
                identity.require_no_writer()
            return await handler(await self.admit_request(request))

        return guarded

    async def admit_request(self, request: Request) -> Request:
        """Return the request for the handler, after reading its body within the limits."""
        body = await read_body(request, most=self.most_bytes)
        require_few_values(body, most=self.most_values)
        return Request(request.scope, replay_body(body, request.receive))


class Streamed(Guarded):
    """A guarded route whose handler reads the body itself, in pieces, or leaves it unread."""

    async def admit_request(self, request: Request) -> Request:
        """Return the request without reading its body."""
        require_uncompressed(request)
        # Waiting for a disconnect would consume the messages with the body.
        CLIENT_GONE.set(anyio.sleep_forever)
        return request


async def read_body(
    request: Request, seconds: float = _BODY_SECONDS, most: int = MAX_BODY_BYTES
) -> bytes:
    """Read the whole body."""
    require_uncompressed(request)
    if get_content_length(request) > most:
        raise _build_too_large(most)
    try:
        async with asyncio.timeout(seconds):
            return await _receive_body(request, most)
    except TimeoutError:
        message = f"the whole body must arrive within {seconds:g} seconds"
        raise HttpRefusal(_TIMEOUT_STATUS, message, {"Connection": "close"}) from None


def require_uncompressed(request: Request) -> None:
    """Require that the body of a request is not compressed."""
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise HttpRefusal(
            _UNSUPPORTED_STATUS, "send the body uncompressed, without Content-Encoding"
        )


def get_content_length(request: Request) -> int:
    """Return the Content-Length in bytes; 0 if the header is missing or invalid."""
    promised = request.headers.get("content-length", "")
    return int(promised[:20]) if promised.isdecimal() else 0


def require_few_values(body: bytes, most: int = MAX_VALUES) -> None:
    """Require that a body contains at most `most` JSON values.

    Validation creates an error for each invalid value, so one megabyte of them would delay all
    other requests by a second.
    """
    # Strings may contain many commas too, so their number only decides whether to parse the body.
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
                raise HttpRefusal(
                    _TOO_LARGE_STATUS, f"the body may contain at most {most} JSON values"
                )
            values += value.values() if isinstance(value, dict) else value


async def _receive_body(request: Request, most: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise _build_too_large(most)
    except ClientDisconnect:
        raise ClientGone from None
    return b"".join(parts)


def _build_too_large(most: int) -> HttpRefusal:
    return HttpRefusal(_TOO_LARGE_STATUS, f"the body may have at most {most} bytes")


MIN_BYTES_PER_SECOND = 16 * 1024
"""Minimum rate of a sender."""

SLACK_SECONDS = 10.0
"""Seconds by which a sender may be slower than the minimum rate."""

_MAX_OTHER_BYTES = 64 * 1024
"""Maximum bytes of a form besides its file."""

_WRITE_BYTES = 256 * 1024
_LINGER_SECONDS = 5.0
_MAX_WRITE_THREADS = 4


class BodyParser(Protocol):
    """A parser that extracts the uploaded file from the body of a request."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Parse the next bytes of the body; return the pieces of the file in them."""
        ...


class RawBodyParser:
    """A parser of a body that is the file itself."""

    def feed(self, data: bytes) -> Iterable[bytes]:
        """Return the bytes as one piece, because the whole body is the file."""
        return (data,)


class FileReceiver:
    """Receives uploaded files, with limits on their number, size and speed."""

    def __init__(self, turns: Admission, slack_seconds: float = SLACK_SECONDS) -> None:
        self._turns = turns
        self._slack_seconds = slack_seconds
        self._threads = CapacityLimiter(_MAX_WRITE_THREADS)

    @asynccontextmanager
    async def receive(
        self,
        request: Request,
        form: BodyParser,
        source: UploadsConfig,
        *,
        tenant_id: str,
        caller: str,
        create: Callable[[], ReceivedFile],
    ) -> AsyncIterator[ReceivedFile]:
        """Yield the received file of a request; afterwards, discard the file unless it was stored.

        Args:
            form: parses the body.
            source: limits the size of the file.
            tenant_id, caller: the tenant and the caller for whom the request waits for a turn.
            create: creates the file to write to.

        Raises:
            Overloaded: too many other files are being received.
            UploadTooLarge, UploadRefused: see UploadForm and require_size.
            HttpRefusal: the body arrives too slowly.
            ClientGone: the client has disconnected.
            ServiceUnavailable: the file cannot be stored now.
        """
        if get_content_length(request) > source.max_bytes + _MAX_OTHER_BYTES:
            require_size(get_content_length(request), source)
        async with self._turns.turn(tenant_id, caller):
            received = await run_sync(create, limiter=self._threads)
            try:
                await self._receive_all(request, form, source, received)
                yield received
            finally:
                with anyio.CancelScope(shield=True):
                    await run_sync(received.discard, limiter=self._threads)

    async def _receive_all(
        self, request: Request, form: BodyParser, source: UploadsConfig, received: ReceivedFile
    ) -> None:
        stream = self._iter_body(request)
        try:
            await self._write_all(stream, form, source, received)
        except RagAssetsError:
            # Otherwise a reset connection would lose the answer.
            with anyio.move_on_after(_LINGER_SECONDS), suppress(HttpRefusal, ClientGone):
                async for _ in stream:
                    pass
            raise

    async def _write_all(
        self,
        stream: AsyncIterator[bytes],
        form: BodyParser,
        source: UploadsConfig,
        received: ReceivedFile,
    ) -> None:
        buffer = bytearray()
        other_bytes = 0
        async for data in stream:
            size = len(buffer)
            for piece in form.feed(data):
                buffer += piece
            other_bytes += len(data) - (len(buffer) - size)
            if other_bytes > _MAX_OTHER_BYTES:
                raise UploadTooLarge(
                    "the form is too large even without its file",
                    hint="send only the file and the documented fields",
                )
            require_size(received.size + len(buffer), source)
            if len(buffer) >= _WRITE_BYTES:
                await self._write(received, buffer)
        await self._write(received, buffer)

    async def _write(self, received: ReceivedFile, buffer: bytearray) -> None:
        piece = bytes(buffer)
        buffer.clear()
        if piece:
            await run_sync(partial(received.write, piece), limiter=self._threads)

    async def _iter_body(self, request: Request) -> AsyncIterator[bytes]:
        """Yield the chunks of the body as they arrive."""
        stream = aiter(request.stream())
        waited, size = 0.0, 0
        while True:
            started = time.monotonic()
            remaining_seconds = self._slack_seconds + size / MIN_BYTES_PER_SECOND - waited
            try:
                async with asyncio.timeout(max(remaining_seconds, 0.0)):
                    data = await anext(stream)
            except StopAsyncIteration:
                return
            except ClientDisconnect:
                raise ClientGone from None
            except TimeoutError:
                slow = f"send a file with at least {MIN_BYTES_PER_SECOND // 1024} KiB per second"
                raise HttpRefusal(_TIMEOUT_STATUS, slow, {"Connection": "close"}) from None
            waited += time.monotonic() - started
            size += len(data)
            yield data
