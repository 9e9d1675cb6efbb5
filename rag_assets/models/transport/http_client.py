"""HTTP clients of models: permitted servers, headers sent, limits of responses.

Providers' SDKs get their HTTP client from here. Importing this loads httpx2.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias
from urllib.request import getproxies, proxy_bypass

import httpx2

from rag_assets.common.errors import BadVectors, EmbedderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.addresses import permitted, refused

Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""From a server's name and port to its addresses; raises OSError where there are none."""

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Twice what 100 vectors of 4,096 dimensions take as JSON, with room for verbose servers."""

_MOST_REFUSAL_BYTES = 64 * 1024
_TIMEOUTS = {"connect": 10.0, "read": 60.0, "write": 60.0, "pool": 60.0}
_CONNECTIONS = httpx2.Limits(max_connections=256, max_keepalive_connections=64)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# SDKs add headers from the environment (an operator's account) and about this machine.
_HEADERS_SENT = frozenset(
    {"host", "accept", "authorization", "x-goog-api-key", "content-type", "content-length"}
    | {"connection", "user-agent"}
)
# A server may put what it was sent, the key too, into any header of its answer.
_HEADERS_TAKEN = frozenset({"content-type", "retry-after", "retry-after-ms"})


async def resolve(host: str, port: int) -> list[str]:
    """Resolve a name by the system's resolver, which also takes literal addresses."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def tenants_client(
    base_url: str,
    allowed: PrivateEndpoints,
    *,
    resolver: Resolve = resolve,
    most_bytes: int = MAX_RESPONSE_BYTES,
) -> httpx2.AsyncClient:
    """A client that reaches one server, which a tenant has named, and nothing else.

    Its name is resolved once, all its addresses are judged, and connections go to these very
    addresses; TLS still verifies the name. Redirects are not followed, proxies, certificates and
    passwords of the environment are not used.

    Args:
        base_url: of the server.
        allowed: servers beyond the public internet that the operator allows.
        resolver: finds its addresses.
        most_bytes: of an answer.

    Raises:
        EmbedderRefused: it is not a URL.
    """
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        raise refused("base_url is not a URL") from None
    transport = _PinnedTransport(url, allowed, resolver)
    return _client(transport, most_bytes, trust_env=False)


def providers_client(base_url: str, *, most_bytes: int = MAX_RESPONSE_BYTES) -> httpx2.AsyncClient:
    """A client for a provider's own server: by the proxy of the environment, if there is one.

    Args:
        base_url: of the provider, as its SDK knows it.
        most_bytes: of an answer.
    """
    url = httpx2.URL(base_url)
    proxy = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
    return _client(
        httpx2.AsyncHTTPTransport(proxy=proxy, limits=_CONNECTIONS),
        most_bytes,
        trust_env=True,
    )


def _client(
    transport: httpx2.AsyncBaseTransport, most_bytes: int, *, trust_env: bool
) -> httpx2.AsyncClient:
    # On DEBUG it writes down the headers of answers as they come, before any of this sees them.
    wire = logging.getLogger("httpcore2")
    wire.setLevel(max(wire.level, logging.INFO))
    return httpx2.AsyncClient(
        transport=_BoundedTransport(transport, most_bytes),
        follow_redirects=False,
        trust_env=trust_env,
    )


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """Limits headers sent, responses and timeouts, whatever an SDK sets."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, most_bytes: int) -> None:
        self._inner = inner
        self._most_bytes = most_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name.decode("ascii").lower() in _HEADERS_SENT
        ]
        # Not compressed, so that what is counted is what will be held in memory.
        bounded = httpx2.Request(
            request.method,
            request.url,
            headers=[*headers, (b"accept-encoding", b"identity")],
            stream=request.stream,
            extensions={**request.extensions, "timeout": _TIMEOUTS},
        )
        response = await self._inner.handle_async_request(bounded)
        taken = [(k, v) for k, v in response.headers.items() if k.lower() in _HEADERS_TAKEN]
        good = response.is_success
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            if good:
                raise BadVectors("a provider's response is compressed, against the request")
            return httpx2.Response(response.status_code, headers=taken)
        stream = _BoundedStream(response, self._most_bytes if good else _MOST_REFUSAL_BYTES)
        return httpx2.Response(response.status_code, headers=taken, stream=stream)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """The body of a response up to a limit; a longer error is cut, a longer success fails."""

    def __init__(self, response: httpx2.Response, most_bytes: int) -> None:
        self._response = response
        self._most_bytes = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        taken = 0
        async for part in self._response.aiter_raw():
            taken += len(part)
            if taken > self._most_bytes:
                if not self._response.is_success:
                    return
                raise BadVectors(f"a provider's response is longer than {self._most_bytes:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class _PinnedTransport(httpx2.AsyncBaseTransport):
    """Connects to the addresses of a server's name that were permitted."""

    def __init__(self, base_url: httpx2.URL, allowed: PrivateEndpoints, resolver: Resolve) -> None:
        self._origin = _origin(base_url)
        self._allowed = allowed
        self._resolver = resolver
        self._addresses: list[str] = []
        self._resolving = asyncio.Lock()
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, limits=_CONNECTIONS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _origin(request.url) != self._origin:
            raise refused("a request to another server than base_url's was blocked")
        for address in await self._pinned():
            try:
                return await self._inner.handle_async_request(self._to(address, request))
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        # The server may have moved: the next request asks for its addresses, and judges them.
        self._addresses = []
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _pinned(self) -> list[str]:
        scheme, host, port = self._origin
        async with self._resolving:
            if not self._addresses:
                try:
                    found = await self._resolver(host, port)
                except OSError:
                    found = []
                if not found:
                    raise EmbedderUnavailable(
                        f"base_url has no address: {host}",
                        hint="check its spelling and this machine's name resolution",
                    )
                self._addresses = permitted(
                    found, scheme=scheme, host=host, port=port, allowed=self._allowed
                )
        return self._addresses

    def _to(self, address: str, request: httpx2.Request) -> httpx2.Request:
        """The same request to an address; the name stays in its Host, and in its certificate."""
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": self._origin[1]},
        )


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _DEFAULT_PORTS.get(url.scheme, 0)
