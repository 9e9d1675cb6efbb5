"""All providers by name, and the providers that `auto` may choose."""

from __future__ import annotations

import re
from collections.abc import Mapping

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.providers.azure import AZURE
from rag_assets.models.providers.base import Provider, RemoteEmbedding
from rag_assets.models.providers.bedrock import BEDROCK
from rag_assets.models.providers.cohere import COHERE
from rag_assets.models.providers.gemini import GEMINI
from rag_assets.models.providers.local import DETERMINISTIC, LOCAL
from rag_assets.models.providers.openai import OPENAI
from rag_assets.models.providers.openai_compatible import OLLAMA, OPENAI_COMPATIBLE, VLLM
from rag_assets.models.providers.vertex import VERTEX
from rag_assets.models.providers.voyage import VOYAGE

# Anthropic has no embedding API: https://docs.claude.com/en/docs/build-with-claude/embeddings
ANTHROPIC = Provider(
    "anthropic",
    key="none",
    chat_names=re.compile(r"(^|[/.:])(anthropic|claude)([/.:-]|$)"),
    embeddings_of=("gemini", "openai"),
)


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        *(LOCAL, OPENAI, GEMINI, AZURE, VERTEX, BEDROCK, VOYAGE, COHERE),
        *(OLLAMA, VLLM, OPENAI_COMPATIBLE, DETERMINISTIC, ANTHROPIC),
    )
}
"""Providers by name. `auto` prefers the first provider for which a tenant has a key."""

EMBEDDING = tuple(name for name, provider in PROVIDERS.items() if provider.embedding)
"""Names of providers with embeddings."""

CHAT = tuple(name for name, provider in PROVIDERS.items() if provider.chat)
"""Names of providers with chat models."""

RERANKING = tuple(name for name, provider in PROVIDERS.items() if provider.reranking)
"""Names of providers with rerankers."""

WITH_KEYS = tuple(name for name, provider in PROVIDERS.items() if provider.key != "none")
"""Names of providers that accept a tenant's key."""


def get_provider(name: str) -> Provider:
    """Return a provider by its name."""
    if name not in PROVIDERS:
        raise ConfigurationError(
            f"unknown provider: {name}", hint=f"the providers are {', '.join(PROVIDERS)}"
        )
    return PROVIDERS[name]


def find_chat_provider(model: str | None) -> Provider | None:
    """Return the provider whose pattern matches a chat model's name; None if none matches."""
    name = (model or "").strip().lower()
    # A gateway's name stands before the model's name, so the most specific provider is last.
    for provider in reversed(list(PROVIDERS.values())):
        if provider.chat_names is not None and provider.chat_names.search(name):
            return provider
    return None


def list_auto_embeddings() -> dict[str, RemoteEmbedding]:
    """Return the embedding models that `auto` may choose, by provider, in order of preference."""
    return {
        provider.name: provider.embedding
        for provider in PROVIDERS.values()
        if isinstance(provider.embedding, RemoteEmbedding)
        and provider.embedding.auto_dimensions is not None
    }
