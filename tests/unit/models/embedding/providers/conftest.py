"""Servers on loopback that the providers' real SDKs are pointed at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.embedding.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.providers.endpoint import SdkEndpoint
from rag_assets.models.embedding.providers.gemini import GeminiEndpoint
from rag_assets.models.embedding.providers.openai import OpenAIEndpoint
from rag_assets.models.embedding.providers.remote_model import remote_model
from rag_assets.models.embedding.remote import Reply

KEY = "sk-planted-key-0123456789"

Ask = Callable[..., Reply]


def endpoint_of(config: EmbedderConfig, credentials: Callable[[], SecretStr]) -> SdkEndpoint:
    kind = GeminiEndpoint if config.provider == "gemini" else OpenAIEndpoint
    return kind(remote_model(config), credentials, PrivateEndpoints.parse("127.0.0.1"))


@pytest.fixture
def ask(httpserver: HTTPServer) -> Ask:
    """Makes one request for texts through an SDK, with its own event loop."""

    def run(
        provider: str,
        texts: Sequence[str] = ("one", "two"),
        purpose: Purpose = "document",
        credentials: Callable[[], SecretStr] = lambda: SecretStr(KEY),
        **options: object,
    ) -> Reply:
        path = "" if provider == "gemini" else "/v1"
        options.setdefault("base_url", f"http://127.0.0.1:{httpserver.port}{path}")
        endpoint = endpoint_of(
            EmbedderConfig.model_validate({"provider": provider, **options}), credentials
        )

        async def once() -> Reply:
            try:
                return await endpoint.request(texts, purpose)
            finally:
                await endpoint.close()

        return asyncio.run(once())

    return run
