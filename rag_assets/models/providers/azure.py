"""Azure OpenAI: models by deployment, with a key or the installation's managed identity.

A deployment is a model under a name that the customer chose. `model` names OpenAI's model, which
determines dimensions, limits and prices; `connection.deployment` names the deployment, if it has
another name. Azure charges OpenAI's prices in its global and US regions (as of November
2026).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final, cast

from pydantic import Field, SecretStr, StringConstraints

from rag_assets.common.errors import ProviderError, ProviderRefused, ProviderUnavailable
from rag_assets.models.prices import Price
from rag_assets.models.providers.base import ChatOffer, Extra, Provider, RemoteEmbedding
from rag_assets.models.providers.openai import (
    CHAT_PRICES,
    EMBEDDING,
    MODULE,
    OpenAIChat,
    OpenAIConnection,
    OpenAIEndpoint,
)
from rag_assets.models.transport.connection import REQUEST_SECONDS
from rag_assets.models.transport.failures import HttpRefusal, iter_causes
from rag_assets.models.transport.settings import KEY_HEADERS, CloudSettings

if TYPE_CHECKING:
    import httpx2
    from azure.core.pipeline import PipelineResponse
    from azure.core.rest import HttpResponse
    from openai import AsyncOpenAI

API_VERSION: Final = "2024-10-21"
"""The latest generally available version of Azure's inference API (data plane)."""

_SCOPE: Final = "https://cognitiveservices.azure.com/.default"


class AzureSettings(CloudSettings):
    """The settings of a connection to Azure OpenAI.

    Attributes:
        deployment: the deployment's name, if it differs from the model's.
        client_id: client id of a user-assigned managed identity; None: the system-assigned
            identity.
    """

    deployment: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")] | None = None
    api_version: str = Field(
        default=API_VERSION, pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}(-preview)?$"
    )
    client_id: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F-]{36}$")] | None = None

    def list_vector_settings(self) -> dict[str, str]:
        """Return the settings that determine a vector; see ConnectionSettings.

        The deployment's name is one of them, since it need not name the model that is served.
        """
        return {"deployment": self.deployment} if self.deployment else {}


class AzureConnection(OpenAIConnection):
    """A connection to one Azure OpenAI resource, by its base_url; see SdkConnection."""

    @property
    def key_headers(self) -> frozenset[str]:
        """Return the headers that may carry the identity's token or the key; see SdkConnection."""
        return KEY_HEADERS if self.server.settings.uses_identity else frozenset({"api-key"})

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncOpenAI:
        from openai import AsyncAzureOpenAI

        settings = cast("AzureSettings", self.server.settings)
        return AsyncAzureOpenAI(
            azure_endpoint=self.get_address(),
            azure_deployment=settings.deployment,
            api_version=settings.api_version,
            api_key=key.get_secret_value() if key is not None else None,
            azure_ad_token_provider=None if key is not None else _build_token_source(settings),
            http_client=http,
            timeout=REQUEST_SECONDS,
            max_retries=0,
        )

    def _convert_error(self, error: Exception) -> ProviderError | None:
        is_of_azure = type(error).__module__.startswith("azure.")
        if isinstance(error, HttpRefusal) or (is_of_azure and _is_without_response(error)):
            return ProviderUnavailable(
                f"{self.server.id}: the service that issues tokens of this installation's managed"
                " identity is unavailable",
                hint="if this lasts, the machine or pod may have no managed identity: assign one",
            )
        if is_of_azure:
            return ProviderRefused(
                f"{self.server.id}: this installation's managed identity has no token",
                hint="assign an identity to the machine or pod, with the role Cognitive Services"
                " OpenAI User; or remove `identity` from `connection`, and set a key",
                fault="key",
            )
        return super()._convert_error(error)


class AzureEndpoint(AzureConnection, OpenAIEndpoint):
    """An embedding deployment; see SdkEndpoint."""


class AzureChat(AzureConnection, OpenAIChat):
    """A chat deployment; see SdkChatEndpoint."""


def _build_token_source(settings: AzureSettings) -> Callable[[], Awaitable[str]]:
    """Return a function that fetches a token of the managed identity, cached until it expires.

    The address of the token service comes from the platform's own environment variables, or is a
    constant. If that service fails, the function raises HttpRefusal, since Azure's errors do not
    always show this.
    """
    from azure.identity import ManagedIdentityCredential

    last = threading.local()

    def record_status(response: PipelineResponse[object, HttpResponse]) -> None:
        last.status = response.http_response.status_code

    credential = ManagedIdentityCredential(
        client_id=settings.client_id, raw_response_hook=record_status
    )

    def fetch() -> str:
        last.status = 0
        try:
            return str(credential.get_token(_SCOPE).token)
        except Exception:
            if last.status < HTTPStatus.TOO_MANY_REQUESTS:
                raise
        raise HttpRefusal(last.status, {})

    async def get_token() -> str:
        return await asyncio.to_thread(fetch)

    return get_token


def _is_without_response(error: Exception) -> bool:
    """Return whether a request for a token got no response, or an incomplete one."""
    from azure.core.exceptions import ServiceRequestError, ServiceResponseError

    kinds = (ServiceRequestError, ServiceResponseError)
    return any(isinstance(cause, kinds) for cause in iter_causes(error))


AZURE = Provider(
    "azure",
    own_server=False,
    embedding=RemoteEmbedding(
        endpoint=AzureEndpoint,
        models={
            name: replace(EMBEDDING.models[name], price=Price(per_million=dollars))
            for name, dollars in (
                ("text-embedding-3-small", 0.02),
                ("text-embedding-3-large", 0.13),
                ("text-embedding-ada-002", 0.10),
            )
        },
        unlisted=EMBEDDING.unlisted,
        module=MODULE,
    ),
    chat=ChatOffer(endpoint=AzureChat, prices=CHAT_PRICES, module=MODULE),
    settings=AzureSettings,
    extra=Extra("azure", "azure.identity", is_for_identity=True),
    own_domains=("openai.azure.com", "cognitiveservices.azure.com"),
)
