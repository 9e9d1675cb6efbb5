"""Connections to providers: clients of each event loop, keys, time limits, classified errors."""

from __future__ import annotations

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from rag_assets.common.errors import (
    Fault,
    MalformedResponse,
    NoProviderKey,
    ProviderError,
    ProviderRefused,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.transport.failures import (
    HttpRefusal,
    Refusal,
    build_unsent_refusal,
    classify_interruption,
    classify_refusal,
)
from rag_assets.models.transport.settings import KEY_HEADERS, ConnectionSettings, Credentials

if TYPE_CHECKING:
    import httpx2


REQUEST_SECONDS = 120.0
"""Maximum seconds of one request, since a server may send one byte per minute for ever."""

_MAX_TOKENS = 10_000_000
"""Largest reported number of tokens that is plausible; no model's requests are as long."""

Sdk = TypeVar("Sdk")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Server:
    """A provider's server, the model to use there, and the settings of connections to it."""

    id: str
    base_url: str | None
    """Address of a server other than the provider's own."""
    key_optional: bool
    """Whether the server may accept requests without a key."""
    silent_seconds: float | None = None
    """Maximum seconds without data from a slow server that streams answers; None for answers in one
    piece."""
    settings: ConnectionSettings = field(default_factory=ConnectionSettings)


@dataclass(slots=True, eq=False)
class _OpenClient(Generic[Sdk]):
    sdk: Sdk
    http: httpx2.AsyncClient
    user_count: int = 0
    is_retired: bool = False


class SdkConnection(ABC, Generic[Sdk]):
    """A connection to a provider through its SDK, with the project's HTTP client.

    A connection belongs to one event loop. At the first request, the SDK is imported, the key is
    read and the server's name is resolved. After the provider has refused the key, it is read
    again.
    """

    own_server: str
    """The address of the provider's own server, used if the server has no base_url."""
    most_bytes: int | None = None
    """Maximum bytes of a response, if it is not MAX_RESPONSE_BYTES."""

    def __init__(
        self, server: Server, credentials: Credentials, allowed: PrivateEndpoints, model: str
    ) -> None:
        self.server = server
        self._model = model
        self._credentials = credentials
        self._allowed = allowed
        self._opening = asyncio.Lock()
        self._current: _OpenClient[Sdk] | None = None

    async def exchange(
        self, send: Callable[[Sdk], Awaitable[T]], *, seconds: float | None = None
    ) -> T:
        """Send one request and return its result; raise a classified error if it fails.

        The time limit is REQUEST_SECONDS by default.

        Raises:
            ProviderUnavailable: a transient failure: no response, a broken connection, too many
                requests, or a provider's error. The error has the provider's retry_after.
            ProviderRefused: a failure that lasts until a person changes the key, the model or
                the quota.
            MalformedResponse: the response is malformed, or longer than allowed.
        """
        async with self._use_client() as client:
            try:
                async with asyncio.timeout(seconds or REQUEST_SECONDS):
                    return await send(client.sdk)
            except Exception as error:  # an error of the SDK, its HTTP client or its parsers
                failure = self._classify_error(error)
            client.is_retired |= isinstance(failure, ProviderRefused)
        # Raise it outside the except block, since the context would quote the provider's response.
        raise failure

    async def close(self) -> None:
        """Close the connections as soon as no request uses them; a later request opens new ones.

        Must be called in the event loop of the requests.
        """
        if self._current is not None:
            self._current.is_retired = True
            await self._close_if_done(self._current)

    @abstractmethod
    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> Sdk:
        """Return a new client of the SDK; called in a thread. Only this method unwraps the key."""

    def _convert_error(self, error: Exception) -> ProviderError | None:
        """Return the classified error for a response that the SDK reports; otherwise None."""
        if not isinstance(error, HttpRefusal):
            return None
        refusal = Refusal(error.status, error.headers, fault=self._find_fault(error))
        return classify_refusal(refusal, self.server.id)

    def _find_fault(self, refusal: HttpRefusal) -> Fault | None:
        """Return the fault that the body of a refusal states; None if it states none."""
        return None

    def _close_sdk(self, sdk: Sdk) -> None:
        """Close the SDK's resources other than the HTTP client; by default there are none."""

    @asynccontextmanager
    async def _use_client(self) -> AsyncIterator[_OpenClient[Sdk]]:
        """Yield a client whose key the provider has not refused; it stays open for the block."""
        async with self._opening:
            if self._current is None or self._current.is_retired:
                self._current = await self._open_client(await self._fetch_key())
            client = self._current
            client.user_count += 1
        try:
            yield client
        finally:
            client.user_count -= 1
            await self._close_if_done(client)

    async def _open_client(self, key: SecretStr | None) -> _OpenClient[Sdk]:
        http = self._build_http_client()
        try:
            # Run in a thread: an SDK may read files, or request credentials from the platform.
            return _OpenClient(await asyncio.to_thread(self._open_sdk, key, http), http)
        except ImportError:
            raise
        except Exception as error:  # an error of the SDK may quote a malformed key
            failure = self._classify_error(error)
        await http.aclose()
        raise failure

    async def _close_if_done(self, client: _OpenClient[Sdk]) -> None:
        if client.is_retired and not client.user_count:
            self._close_sdk(client.sdk)
            await client.http.aclose()

    @property
    def key_headers(self) -> frozenset[str]:
        """Return the names of the headers that carry the key, in lower case.

        Other headers that could carry a key are removed from requests.
        """
        return KEY_HEADERS

    def get_address(self) -> str:
        """Return the server's address: the tenant's base_url, or the provider's own."""
        return self.server.base_url or self.own_server

    async def _fetch_key(self) -> SecretStr | None:
        if self.server.settings.uses_identity:
            self._require_identity_host()
            return None
        try:
            return await asyncio.to_thread(self._credentials)
        except NoProviderKey:
            if self.server.key_optional:
                return None
            raise

    def _require_identity_host(self) -> None:
        host = urlsplit(self.get_address()).hostname or ""
        if host.lower() not in self._allowed.identity_hosts:
            raise build_unsent_refusal(
                f"the operator does not allow sending this installation's cloud identity to {host}",
                hint=f"the operator can add {host} to RAG_ASSETS_IDENTITY_HOSTS; or remove"
                " identity from connection, and set a key",
            )

    def _build_http_client(self) -> httpx2.AsyncClient:
        from rag_assets.models.transport import http_client

        max_bytes = self.most_bytes or http_client.MAX_RESPONSE_BYTES
        if self.server.base_url is None:
            return http_client.build_provider_client(
                self.get_address(), most_bytes=max_bytes, key_headers=self.key_headers
            )
        return http_client.build_tenant_client(
            self.server.base_url,
            self._allowed,
            most_bytes=max_bytes,
            read_seconds=self.server.silent_seconds,
            key_headers=self.key_headers,
        )

    def _classify_error(self, error: Exception) -> ProviderError:
        if isinstance(error, ProviderError):
            return error.with_traceback(None)
        refusal = self._convert_error(error)
        if refusal is not None:
            return refusal
        if isinstance(error, ValueError | TypeError | AttributeError | LookupError | OverflowError):
            kind = type(error).__name__
            return MalformedResponse(f"{self.server.id} returned a malformed response ({kind})")
        return classify_interruption(error, self.server.id)


def read_token_count(reported: object) -> int | None:
    """Return a reported number of charged tokens; None if it is not a plausible number."""
    return reported if type(reported) is int and 0 < reported <= _MAX_TOKENS else None


def replace_surrogates(text: str) -> str:
    """Return a text with lone surrogates replaced, so that a request can contain it as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


ClientT = TypeVar("ClientT", bound=SdkConnection[Any])


@dataclass(slots=True)
class _SharedClient(Generic[ClientT]):
    client: ClientT
    user_count: int = 0
    is_wanted: bool = True


class LoopClients(Generic[ClientT]):
    """One client for each event loop, opened when the loop first uses it.

    Args:
        module: the module that `load` imports; None: it imports none.
    """

    def __init__(self, connect: Callable[[], ClientT], module: str | None = None) -> None:
        self._connect = connect
        self._unloaded = module
        self._lock = threading.Lock()
        # Weak references: a loop that ended without closing its client does not keep the client
        # alive.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, _SharedClient[ClientT]] = (
            WeakKeyDictionary()
        )

    async def load(self) -> None:
        """Import the module in a thread, before time limits start: an SDK takes seconds."""
        if self._unloaded is not None:
            await asyncio.to_thread(import_module, self._unloaded)
            self._unloaded = None

    @asynccontextmanager
    async def use(self) -> AsyncIterator[ClientT]:
        """Yield this event loop's client, which stays open for the block."""
        loop = asyncio.get_running_loop()
        with self._lock:
            shared = self._clients.get(loop)
            if shared is None:
                shared = self._clients[loop] = _SharedClient(self._connect())
        shared.user_count += 1
        try:
            yield shared.client
        finally:
            shared.user_count -= 1
            if not shared.user_count and not shared.is_wanted:
                await shared.client.close()

    async def close(self) -> None:
        """Close this event loop's client: now, or as soon as no request uses it."""
        with self._lock:
            shared = self._clients.pop(asyncio.get_running_loop(), None)
        if shared is not None:
            shared.is_wanted = False
            if not shared.user_count:
                await shared.client.close()
