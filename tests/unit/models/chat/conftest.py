"""Chat models of the providers' real SDKs, pointed at a server on loopback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from rag_assets.common.errors import NoProviderKey
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.chat.gemini import GeminiChat
from rag_assets.models.chat.openai import OpenAIChat
from rag_assets.models.chat.protocol import Completion
from rag_assets.models.chat.remote import ChatEndpoint, RemoteChat
from rag_assets.models.embedding.providers.connection import Server

KEY = "sk-planted-key-0123456789"
OPENAI_PATH = "/v1/chat/completions"
GEMINI_PATH = "/v1beta/models/m:generateContent"

Ask = Callable[..., Completion]


@pytest.fixture
def ask(httpserver: HTTPServer) -> Ask:
    """Has a model write once, in an event loop of its own."""

    def run(
        provider: str, prompt: str = "What is it?", *, key: str | None = KEY, private: bool = True
    ) -> Completion:
        def credentials() -> SecretStr:
            if key is None:
                raise NoProviderKey("there is none")
            return SecretStr(key)

        allowed = PrivateEndpoints.parse("127.0.0.1" if private else "")
        gemini = provider == "gemini"
        url = f"http://127.0.0.1:{httpserver.port}{'' if gemini else '/v1'}"
        server = Server(f"{provider}/m", url, key_optional=provider == "openai-compatible")

        def connect() -> ChatEndpoint:
            if gemini:
                return GeminiChat(server, credentials, allowed, model="m")
            return OpenAIChat(server, credentials, allowed, model="m", compatible=True)

        async def once() -> Completion:
            chat = RemoteChat(connect, server.id)
            try:
                return await chat.complete("Be short.", prompt, max_tokens=100, seconds=5.0)
            finally:
                await chat.close()

        return asyncio.run(once())

    return run
