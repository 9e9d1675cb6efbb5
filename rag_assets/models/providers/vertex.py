"""Vertex AI: Google's models in a project of Google Cloud, through the SDK of Gemini.

The key is a service account's JSON file in base64; without a key, the installation's own cloud
identity is used.

Source of limits: https://cloud.google.com/vertex-ai/generative-ai/docs/embeddings. Source of
prices, in dollars per million tokens: https://cloud.google.com/vertex-ai/generative-ai/pricing, as
of November 2026. `embedder.price` and `chat_model.prices` in tenants.yaml replace them.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from dataclasses import replace
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import Field, SecretStr

from rag_assets.common.errors import ProviderError, ProviderRefused, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.embedding.remote import KnownModel
from rag_assets.models.prices import Price
from rag_assets.models.providers.base import ChatOffer, Provider, RemoteEmbedding
from rag_assets.models.providers.gemini import (
    EMBEDDING,
    GEMINI,
    MODULE,
    GeminiChat,
    GeminiConnection,
    GeminiEndpoint,
)
from rag_assets.models.transport.failures import iter_causes
from rag_assets.models.transport.settings import KEY_HEADERS, CloudSettings

if TYPE_CHECKING:
    import httpx2
    from google.auth.credentials import Credentials
    from google.genai import Client

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_TOKEN_SERVER: Final = "https://oauth2.googleapis.com/token"  # noqa: S105 - an address


class VertexSettings(CloudSettings):
    """The settings of a connection to Vertex AI.

    Attributes:
        location: the region of the server, or "global".
    """

    project: str = Field(pattern=r"^[a-z][a-z0-9-]{4,28}[a-z0-9]$")
    location: str = Field(pattern=r"^(global|[a-z]+(-[a-z]+)*[0-9]{0,2})$")


class VertexConnection(GeminiConnection):
    """A connection to Vertex AI in one location; see SdkConnection."""

    key_headers = KEY_HEADERS

    def get_address(self) -> str:
        """Return the base_url, or the location's own address; see SdkConnection."""
        location = self._settings.location
        host = "" if location == "global" else f"{location}-"
        return self.server.base_url or f"https://{host}aiplatform.googleapis.com"

    @property
    def _settings(self) -> VertexSettings:
        return cast("VertexSettings", self.server.settings)

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> Client:
        import google.auth
        from google.genai import Client
        from google.genai.types import HttpOptions

        if key is None:
            # Credentials of the machine, the pod or the environment.
            credentials, _ = google.auth.default(scopes=list(_SCOPES))
        else:
            credentials = _build_tenant_credentials(key.get_secret_value(), self._allowed)
        return Client(
            vertexai=True,
            project=self._settings.project,
            location=self._settings.location,
            credentials=credentials,
            http_options=HttpOptions(
                base_url=self.get_address(), api_version="v1", httpx_async_client=http
            ),
        )

    def _convert_error(self, error: Exception) -> ProviderError | None:
        from google.auth.exceptions import GoogleAuthError, TransportError

        if isinstance(error, GoogleAuthError):
            is_unreachable = any(isinstance(cause, TransportError) for cause in iter_causes(error))
            if is_unreachable or error.retryable:
                return ProviderUnavailable(
                    f"{self.server.id}: the server that issues Google's tokens is unavailable"
                )
            return ProviderRefused(
                f"{self.server.id}: Google issues no token for these credentials",
                hint="the key is the JSON file of a service account with the role Vertex AI User,"
                " in base64 (base64 -w0 FILE)",
                fault="key",
            )
        return super()._convert_error(error)


class VertexEndpoint(VertexConnection, GeminiEndpoint):
    """An embedding model of Vertex AI; see SdkEndpoint."""

    auto_truncate = False


class VertexChat(VertexConnection, GeminiChat):
    """A chat model of Vertex AI; see SdkChatEndpoint."""


def _build_tenant_credentials(key: str, allowed: PrivateEndpoints) -> Credentials:
    """Return a service account's credentials, which fetch tokens over a guarded connection."""
    from google.auth.exceptions import MalformedError
    from google.oauth2.service_account import Credentials

    try:
        account = json.loads(b64decode(key, validate=True))
        request = _build_guarded_request(str(account.get("token_uri") or _TOKEN_SERVER), allowed)

        class GuardedCredentials(Credentials):
            def refresh(self, _: object) -> None:
                super().refresh(request)  # type: ignore[no-untyped-call]

        credentials = GuardedCredentials.from_service_account_info(account, scopes=_SCOPES)  # type: ignore[no-untyped-call]
        return cast("Credentials", credentials)
    except (ValueError, TypeError, AttributeError):
        failure = MalformedError("not a service account's JSON in base64")  # type: ignore[no-untyped-call]
    raise failure


def _build_guarded_request(token_server: str, allowed: PrivateEndpoints) -> Any:
    """Return a blocking request function for google.auth that uses the guarded client.

    The address is from the service account's file, which a tenant may have written.
    """
    from google.auth.exceptions import TransportError
    from google.auth.transport import Request, Response

    from rag_assets.models.transport.http_client import build_provider_client, build_tenant_client

    class GuardedRequest(Request):
        def __call__(
            self,
            url: str,
            method: str = "GET",
            body: bytes | None = None,
            headers: dict[str, str] | None = None,
            timeout: float | None = None,
            **_: object,
        ) -> Response:
            response = asyncio.run(_send(url, method, body, headers))
            if response.is_server_error:
                raise TransportError(f"HTTP {response.status_code}")  # type: ignore[no-untyped-call]
            guarded = SimpleNamespace(
                status=response.status_code, headers=response.headers, data=response.content
            )
            return cast("Response", guarded)

    async def _send(
        url: str, method: str, body: bytes | None, headers: dict[str, str] | None
    ) -> httpx2.Response:
        is_google = token_server == _TOKEN_SERVER
        client = (
            build_provider_client(token_server)
            if is_google
            else build_tenant_client(token_server, allowed)
        )
        async with client:
            return await client.request(method, url, content=body, headers=headers)

    return GuardedRequest()


_REQUEST_TOKENS: Final = 20_000
_TEXT_EMBEDDING = KnownModel(
    768,
    input_tokens=2048,
    request_tokens=_REQUEST_TOKENS,
    task_types=True,
    price=Price(per_million=0.10),
)

VERTEX = Provider(
    "vertex",
    embedding=RemoteEmbedding(
        endpoint=VertexEndpoint,
        models=(
            {
                name: replace(
                    EMBEDDING.models[name],
                    request_tokens=_REQUEST_TOKENS,
                    price=Price(per_million=dollars),
                )
                for name, dollars in (("gemini-embedding-001", 0.15), ("gemini-embedding-2", 0.20))
            }
            | {
                "text-embedding-005": _TEXT_EMBEDDING,
                "text-multilingual-embedding-002": _TEXT_EMBEDDING,
            }
        ),
        unlisted=replace(EMBEDDING.unlisted, request_tokens=_REQUEST_TOKENS),
        default_model="gemini-embedding-001",
        module=MODULE,
    ),
    chat=ChatOffer(
        endpoint=VertexChat,
        prices=GEMINI.chat.prices if GEMINI.chat else MappingProxyType({}),
        module=MODULE,
    ),
    settings=VertexSettings,
)
