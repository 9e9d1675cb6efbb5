"""OpenAI and servers that implement its API: models, limits and prices.

Models and their limits are those of the references of its API; prices in dollars per million
tokens those of https://platform.openai.com/docs/pricing, of embeddings as of November 2026, of
chat models (up to 200,000 tokens of input) as of March 2026. `embedder.price` and
`chat_model.prices` in tenants.yaml replace them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType

from rag_assets.models.chat.prices import ChatPrice
from rag_assets.models.embedding.prices import Price
from rag_assets.models.embedding.remote_model import KnownModel
from rag_assets.models.providers.base import (
    REMOTE_OPTIONS,
    ChatOffer,
    Provider,
    RemoteEmbedding,
)
from rag_assets.models.providers.openai.batches import OpenAIBatches
from rag_assets.models.providers.openai.chat import CompatibleChat, OpenAIChat
from rag_assets.models.providers.openai.embedding import CompatibleEndpoint, OpenAIEndpoint

_REQUEST_TOKENS = 300_000
_MODULE = "openai.resources"
"""Of the SDK: it imports its resources only when they are used."""

_EMBEDDING = RemoteEmbedding(
    endpoint=OpenAIEndpoint,
    models=MappingProxyType(
        {
            "text-embedding-3-small": KnownModel(
                1536,
                1536,
                request_tokens=_REQUEST_TOKENS,
                price=Price(per_million=0.02, batch_per_million=0.01),
            ),
            "text-embedding-3-large": KnownModel(
                3072,
                3072,
                request_tokens=_REQUEST_TOKENS,
                price=Price(per_million=0.13, batch_per_million=0.065),
            ),
            "text-embedding-ada-002": KnownModel(
                1536, 1536, (1536,), shortens=False, request_tokens=_REQUEST_TOKENS
            ),
        }
    ),
    unlisted=KnownModel(0, 0, shortens=False),
    default_model="text-embedding-3-small",
    auto_dimensions=1536,
    batch_api=OpenAIBatches,
    options=REMOTE_OPTIONS | {"batch_above"},
    module=_MODULE,
)


def _chat(read: float, written: float) -> ChatPrice:
    return ChatPrice(input_per_million=read, output_per_million=written)


OPENAI = Provider(
    "openai",
    embedding=_EMBEDDING,
    chat=ChatOffer(
        endpoint=OpenAIChat,
        prices=MappingProxyType(
            {
                "gpt-5": _chat(1.25, 10.0),
                "gpt-5-mini": _chat(0.25, 2.0),
                "gpt-5-nano": _chat(0.05, 0.40),
                "gpt-4.1": _chat(2.0, 8.0),
                "gpt-4.1-mini": _chat(0.40, 1.60),
                "gpt-4.1-nano": _chat(0.10, 0.40),
                "gpt-4o": _chat(2.50, 10.0),
                "gpt-4o-mini": _chat(0.15, 0.60),
            }
        ),
        module=_MODULE,
    ),
    # OpenAI's names, also with a gateway's prefix. gpt-oss is served by others.
    chat_names=re.compile(r"(^|[/.:])(gpt-(?!oss)|chatgpt-|codex-|o[1-9](-|$))"),
)

OPENAI_COMPATIBLE = Provider(
    "openai-compatible",
    key="optional",
    own_server=False,
    embedding=RemoteEmbedding(
        endpoint=CompatibleEndpoint,
        # A server may offer models under OpenAI's names; their price there is not known.
        models=MappingProxyType(
            {name: replace(model, price=None) for name, model in _EMBEDDING.models.items()}
        ),
        unlisted=_EMBEDDING.unlisted,
        module=_MODULE,
    ),
    chat=ChatOffer(endpoint=CompatibleChat, module=_MODULE),
)
