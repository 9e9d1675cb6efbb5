"""Servers on loopback for the providers' real SDKs."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from rag_assets.common.errors import NoProviderKey
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat import Completion, RemoteChat
from rag_assets.models.config import EmbedderConfig, RerankConfig
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import EmbeddingReply, SdkEndpoint
from rag_assets.models.factory import build_remote_model, build_reranker
from rag_assets.models.providers.base import RemoteEmbedding
from rag_assets.models.providers.registry import get_provider
from rag_assets.models.transport.connection import Server
from rag_assets.models.transport.settings import ConnectionSettings

KEY = "sk-planted-key-0123456789"

Ask = Callable[..., EmbeddingReply]

BASE_PATHS = dict.fromkeys(("gemini", "azure", "bedrock", "cohere", "vertex"), "")
"""Of a server, by provider; the others have /v1 in their base_url."""


def no_key() -> SecretStr:
    raise NoProviderKey("there is none")


def endpoint_of(
    config: EmbedderConfig,
    credentials: Callable[[], SecretStr],
    allowed: PrivateEndpoints = PrivateEndpoints.parse("127.0.0.1"),  # noqa: B008 - a constant
) -> SdkEndpoint:
    assert isinstance(config.offer, RemoteEmbedding)
    return config.offer.endpoint(build_remote_model(config), credentials, allowed)


@pytest.fixture
def ask(httpserver: HTTPServer) -> Ask:
    """Return a function that embeds texts with an SDK, in its own event loop."""

    def run(
        provider: str,
        texts: Sequence[str] = ("one", "two"),
        purpose: Purpose = "document",
        credentials: Callable[[], SecretStr] = lambda: SecretStr(KEY),
        identity_hosts: str = "",
        **options: object,
    ) -> EmbeddingReply:
        path = BASE_PATHS.get(provider, "/v1")
        options.setdefault("base_url", f"http://127.0.0.1:{httpserver.port}{path}")
        config = EmbedderConfig.model_validate({"provider": provider, **options})
        network = PrivateEndpoints.parse("127.0.0.1", identity_hosts)
        endpoint = endpoint_of(config, credentials, network)

        async def once() -> EmbeddingReply:
            try:
                return await endpoint.request(texts, purpose)
            finally:
                await endpoint.close()

        return asyncio.run(once())

    return run


OPENAI_PATH = "/v1/chat/completions"
GEMINI_PATH = "/v1beta/models/m:generateContent"

AskChat = Callable[..., Completion]


@pytest.fixture
def ask_chat(httpserver: HTTPServer) -> AskChat:
    """Return a function that lets a model write once, in its own event loop."""

    def run(
        provider: str,
        prompt: str = "What is it?",
        *,
        key: str | None = KEY,
        private: bool = True,
        silent_seconds: float | None = None,
        seconds: float = 30.0,
        model: str = "m",
        connection: dict[str, str] | None = None,
    ) -> Completion:
        def credentials() -> SecretStr:
            return no_key() if key is None else SecretStr(key)

        allowed = PrivateEndpoints.parse("127.0.0.1" if private else "")
        url = f"http://127.0.0.1:{httpserver.port}{BASE_PATHS.get(provider, '/v1')}"
        offered = get_provider(provider)
        assert offered.chat is not None
        settings = offered.read_settings(connection) or ConnectionSettings()
        server = Server(
            f"{provider}/{model}", url, offered.key == "optional", silent_seconds, settings
        )
        connect = partial(offered.chat.endpoint, server, credentials, allowed, model)

        async def once() -> Completion:
            chat = RemoteChat(connect, server.id)
            try:
                return await chat.complete("Be short.", prompt, max_tokens=100, seconds=seconds)
            finally:
                await chat.close()

        return asyncio.run(once())

    return run


AskReranker = Callable[..., list[float]]


@pytest.fixture
def ask_reranker(httpserver: HTTPServer) -> AskReranker:
    """Return a function that scores passages once, in its own event loop."""

    def run(provider: str, passages: Sequence[str], **options: object) -> list[float]:
        url = f"http://127.0.0.1:{httpserver.port}{BASE_PATHS.get(provider, '/v1')}"
        options.setdefault("base_url", url)
        config = RerankConfig.model_validate({"provider": provider, **options})
        network = PrivateEndpoints.parse("127.0.0.1")
        reranker = build_reranker(config, credentials=lambda: SecretStr(KEY), network=network)

        async def once() -> list[float]:
            try:
                return await reranker.score_passages("What is it?", passages, seconds=30)
            finally:
                await reranker.close()

        return asyncio.run(once())

    return run
