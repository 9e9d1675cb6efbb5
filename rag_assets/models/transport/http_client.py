"""HTTP clients of models: the permitted servers, the headers sent, and limits of responses.

A tenant names a server, and this process connects to it. Without these rules, a tenant could reach
any server that this machine can reach, such as a cloud's metadata service or another tenant's
database (SSRF).

The SDKs of providers receive their HTTP client from this module. If an SDK requires a client of
httpx or aiohttp, or a blocking client, a bridge here passes its requests on. The SDK receives only
successful responses: any other response is raised as HttpRefusal. So no parser, logger or error of
an SDK sees the content of a refusal. Importing this module loads httpx2.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.request import getproxies, proxy_bypass

import httpx2

from rag_assets.common.errors import MalformedResponse, ProviderUnavailable
from rag_assets.common.private_endpoints import Address, PrivateEndpoints
from rag_assets.models.transport.failures import HttpRefusal, build_unsent_refusal
from rag_assets.models.transport.settings import KEY_HEADERS

if TYPE_CHECKING:
    import httpx


Resolve: TypeAlias = Callable[[str, int], Awaitable[list[str]]]
"""A function that resolves a server's name and port to addresses; it raises OSError if there are
none."""

MAX_RESPONSE_BYTES = 32 * 1024 * 1024
"""Twice the size of 100 vectors of 4,096 dimensions as JSON, which leaves room for verbose
servers."""

_MAX_REFUSAL_BYTES = 64 * 1024
_TIMEOUTS = {"connect": 10.0, "read": 60.0, "write": 60.0, "pool": 60.0}
_CONNECTIONS = httpx2.Limits(max_connections=256, max_keepalive_connections=64)
_DEFAULT_PORTS = {"http": 80, "https": 443}
# No other header is sent: SDKs add headers from the environment (an operator's account) and about
# this machine.
_HEADERS_SENT = frozenset(
    {"host", "accept", "content-type", "content-length", "connection", "user-agent"}
    # AWS signs these headers.
    | {"x-amz-date", "x-amz-content-sha256"}
    | {"amz-sdk-invocation-id", "amz-sdk-request"}
)
# No other header is kept: a server may repeat its request, and even the key, in any header of its
# response.
_HEADERS_TAKEN = frozenset(
    {"content-type", "retry-after", "retry-after-ms"}
    | {"x-amzn-errortype", "x-amzn-bedrock-input-token-count"}
)


async def resolve(host: str, port: int) -> list[str]:
    """Return the IP addresses of a host by the system's resolver, without duplicates."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


def build_tenant_client(
    base_url: str,
    allowed: PrivateEndpoints,
    *,
    resolver: Resolve = resolve,
    most_bytes: int = MAX_RESPONSE_BYTES,
    read_seconds: float | None = None,
    key_headers: frozenset[str] = KEY_HEADERS,
) -> httpx2.AsyncClient:
    """Return a client that connects only to one server, named by a tenant.

    The server's name is resolved once, all its addresses are validated, and connections use exactly
    these addresses; TLS still verifies the name. Redirects are not followed. Proxies, certificates
    and passwords from the environment are not used.

    Args:
        read_seconds: maximum seconds without data, if it is not a minute.
        key_headers: headers, in lower case, that carry the tenant's key; other providers' key
            headers are removed.
    """
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        raise build_unsent_refusal("base_url is not a URL") from None
    transport = _PinnedTransport(url, allowed, resolver)
    return _build_client(
        transport, most_bytes, key_headers, trust_env=False, read_seconds=read_seconds
    )


def build_provider_client(
    base_url: str,
    *,
    most_bytes: int = MAX_RESPONSE_BYTES,
    key_headers: frozenset[str] = KEY_HEADERS,
) -> httpx2.AsyncClient:
    """Return a client for a provider's own server, which uses the environment's proxy, if any."""
    url = httpx2.URL(base_url)
    proxy = None if proxy_bypass(url.host) else getproxies().get(url.scheme)
    return _build_client(
        httpx2.AsyncHTTPTransport(proxy=proxy, limits=_CONNECTIONS),
        most_bytes,
        key_headers,
        trust_env=True,
    )


def _build_client(
    transport: httpx2.AsyncBaseTransport,
    most_bytes: int,
    key_headers: frozenset[str],
    *,
    trust_env: bool,
    read_seconds: float | None = None,
) -> httpx2.AsyncClient:
    # At DEBUG level, the library logs the headers of responses before this module removes any.
    wire = logging.getLogger("httpcore2")
    wire.setLevel(max(wire.level, logging.INFO))
    return httpx2.AsyncClient(
        transport=_BoundedTransport(transport, most_bytes, key_headers, read_seconds),
        follow_redirects=False,
        trust_env=trust_env,
    )


class _BoundedTransport(httpx2.AsyncBaseTransport):
    """A transport with limits on headers, responses and timeouts, whatever the SDK sets."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        most_bytes: int,
        key_headers: frozenset[str],
        read_seconds: float | None = None,
    ) -> None:
        self._inner = inner
        self._headers_sent = _HEADERS_SENT | key_headers
        self._most_bytes = most_bytes
        self._timeouts = _TIMEOUTS | ({"read": read_seconds} if read_seconds else {})

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name.decode("ascii").lower() in self._headers_sent
        ]
        # Ask for an uncompressed response, so that the bytes counted are the bytes held in memory.
        bounded = httpx2.Request(
            request.method,
            request.url,
            headers=[*headers, (b"accept-encoding", b"identity")],
            stream=request.stream,
            extensions={**request.extensions, "timeout": self._timeouts},
        )
        response = await self._inner.handle_async_request(bounded)
        headers_taken = [(k, v) for k, v in response.headers.items() if k.lower() in _HEADERS_TAKEN]
        is_success = response.is_success
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            if is_success:
                raise MalformedResponse(
                    "a provider compressed its response, although the request excluded this"
                )
            return httpx2.Response(response.status_code, headers=headers_taken)
        stream = _BoundedStream(response, self._most_bytes if is_success else _MAX_REFUSAL_BYTES)
        return httpx2.Response(response.status_code, headers=headers_taken, stream=stream)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    """A response body with a size limit: a longer error body is cut, a longer success fails."""

    def __init__(self, response: httpx2.Response, most_bytes: int) -> None:
        self._response = response
        self._most_bytes = most_bytes

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._response.aiter_raw():
            size += len(part)
            if size > self._most_bytes:
                if not self._response.is_success:
                    return
                raise MalformedResponse(
                    f"a provider's response is longer than {self._most_bytes:,} bytes"
                )
            yield part

    async def aclose(self) -> None:
        await self._response.aclose()


class _PinnedTransport(httpx2.AsyncBaseTransport):
    """A transport that connects only to the permitted addresses of a server's name."""

    def __init__(self, base_url: httpx2.URL, allowed: PrivateEndpoints, resolver: Resolve) -> None:
        self._origin = _parse_origin(base_url)
        self._allowed = allowed
        self._resolver = resolver
        self._addresses: list[str] = []
        self._resolving = asyncio.Lock()
        self._inner = httpx2.AsyncHTTPTransport(trust_env=False, limits=_CONNECTIONS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if _parse_origin(request.url) != self._origin:
            raise build_unsent_refusal(
                "a request was blocked: its server is not the server of base_url"
            )
        for address in await self._resolve_permitted():
            try:
                return await self._inner.handle_async_request(
                    self._build_pinned_request(address, request)
                )
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                failure = error
        # The server may have moved, so the next request resolves and validates the addresses again.
        self._addresses = []
        raise failure

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _resolve_permitted(self) -> list[str]:
        scheme, host, port = self._origin
        async with self._resolving:
            if not self._addresses:
                try:
                    addresses = await self._resolver(host, port)
                except OSError:
                    addresses = []
                if not addresses:
                    raise ProviderUnavailable(
                        f"the host of base_url has no address: {host}",
                        hint="check the spelling of the host, and this machine's name resolution",
                    )
                self._addresses = require_permitted(
                    addresses, scheme=scheme, host=host, port=port, allowed=self._allowed
                )
        return self._addresses

    def _build_pinned_request(self, address: str, request: httpx2.Request) -> httpx2.Request:
        """Return the request, addressed to an IP address; the Host header and TLS keep the name."""
        return httpx2.Request(
            request.method,
            request.url.copy_with(host=address),
            headers=request.headers,
            stream=request.stream,
            extensions={**request.extensions, "sni_hostname": self._origin[1]},
        )


def _parse_origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or _DEFAULT_PORTS.get(url.scheme, 0)


_UNICAST = IPv6Network("2000::/3")  # all global unicast addresses that IANA has assigned
_NAT64 = IPv6Network("64:ff9b::/96")
# Networks that ipaddress, in this or an earlier Python, calls global although they have no public
# servers.
_NON_PUBLIC_NETWORKS = (
    IPv4Network("192.0.0.0/24"),  # protocol assignments
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv6Network("2001::/23"),  # protocol assignments, including Teredo and ORCHID
    IPv6Network("2001:db8::/32"),  # documentation
    IPv6Network("3fff::/20"),  # documentation
    IPv6Network("5f00::/16"),  # segment routing
)


def is_public(address: Address) -> bool:
    """Return whether an address, or the IPv4 address embedded in it, is on the public internet."""
    embedded = _extract_ipv4(address)
    if embedded is not None:
        return is_public(embedded)
    if address.is_multicast or not address.is_global:
        return False
    if isinstance(address, IPv6Address) and address not in _UNICAST:
        return False
    return not any(address in network for network in _NON_PUBLIC_NETWORKS)


def _extract_ipv4(address: Address) -> IPv4Address | None:
    if isinstance(address, IPv4Address):
        return None
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour


def require_permitted(
    resolved: list[str], *, scheme: str, host: str, port: int, allowed: PrivateEndpoints
) -> list[str]:
    """Return the addresses of a server, after checking that all of them are permitted.

    An address must be public and its connection encrypted, unless the operator allows the server.
    """
    if allowed.allows_name(host, port):
        return resolved
    addresses = [ip_address(text) for text in resolved]
    if all(allowed.allows_address(address) for address in addresses):
        return resolved
    if scheme != "https":
        raise build_unsent_refusal(
            f"base_url is not encrypted: {host}:{port}",
            hint="use https://, or the operator can add it to RAG_ASSETS_PRIVATE_ENDPOINTS",
        )
    if not all(is_public(address) or allowed.allows_address(address) for address in addresses):
        raise build_unsent_refusal(
            f"base_url leads to an address that is not public: {host}:{port}",
            hint="if this is intended, the operator can add it to RAG_ASSETS_PRIVATE_ENDPOINTS",
        )
    return resolved


async def send(
    http: httpx2.AsyncClient,
    method: str,
    url: str,
    headers: Mapping[str, Any],
    content: bytes | None,
) -> httpx2.Response:
    """Send a request through the guarded client; raise HttpRefusal unless it succeeds."""
    pairs = {str(name): str(value) for name, value in headers.items()}
    response = await http.request(method, url, headers=pairs, content=content)
    if not response.is_success:
        raise HttpRefusal(response.status_code, response.headers)
    return response


def build_httpx_client(http: httpx2.AsyncClient) -> httpx.AsyncClient:
    """Return an httpx client that sends its requests through the guarded client."""
    import httpx

    class Transport(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            content = await request.aread()
            response = await send(http, request.method, str(request.url), request.headers, content)
            return httpx.Response(
                response.status_code, headers=dict(response.headers), content=response.content
            )

    return httpx.AsyncClient(transport=Transport(), trust_env=False, follow_redirects=False)


class AiohttpSession:
    """The methods of aiohttp's session that an SDK calls; they send through the guarded client."""

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None, **_: object
    ) -> AiohttpResponse:
        """Send a request; the SDK's own proxy and time limit are ignored."""
        return AiohttpResponse(await send(self._http, method.upper(), url, headers, data))


class AiohttpResponse:
    """The attributes and methods of aiohttp's response that an SDK uses."""

    def __init__(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        # Names are case-insensitive, as in aiohttp's own headers.
        self.headers = response.headers
        self.content = response.content

    async def read(self) -> bytes:
        """Return the body."""
        return self.content

    def release(self) -> None:
        """Do nothing: the body has been read."""
