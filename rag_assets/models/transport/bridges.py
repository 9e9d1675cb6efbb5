"""Bridges to the guarded HTTP client (http_client) for SDKs with another kind of client.

An SDK with an httpx, aiohttp or blocking client passes each request to these bridges. The SDK
receives only successful responses: any other response is raised as HttpRefusal. So no parser,
logger or error of an SDK sees the content of a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import httpx2

from rag_assets.models.transport.sdk_connection import HttpRefusal

if TYPE_CHECKING:
    import httpx


class HeadersLike(Protocol):
    """Headers of any HTTP library."""

    def items(self) -> Any:
        """Return pairs of names and values."""
        ...


async def send(
    http: httpx2.AsyncClient, method: str, url: str, headers: HeadersLike, content: bytes | None
) -> httpx2.Response:
    """Send a request through the guarded client, and read its response.

    Raises:
        HttpRefusal: the response is not a success.
    """
    pairs = {str(name): str(value) for name, value in headers.items()}
    response = await http.request(method, url, headers=pairs, content=content)
    if not response.is_success:
        raise HttpRefusal(response.status_code, response.headers, response.content)
    return response


def httpx_client(http: httpx2.AsyncClient) -> httpx.AsyncClient:
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
    """The part of aiohttp's session that an SDK needs; it sends through the guarded client.

    Args:
        http: the guarded client.
    """

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self._http = http

    async def request(
        self, method: str, url: str, *, headers: Mapping[str, str], data: bytes | None, **_: object
    ) -> AiohttpResponse:
        """Send a request; the SDK's own proxy and time limit are ignored."""
        return AiohttpResponse(await send(self._http, method.upper(), url, headers, data))


class AiohttpResponse:
    """The part of aiohttp's response that an SDK reads."""

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
