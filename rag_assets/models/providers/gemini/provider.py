"""Google Gemini: its models, limits and prices.

Models and their limits are those of the references of its API; prices in dollars per million
tokens those of https://ai.google.dev/gemini-api/docs/pricing, of embeddings as of November 2026,
of chat models (up to 200,000 tokens of input) as of March 2026. `embedder.price` and
`chat_model.prices` in tenants.yaml replace them.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from rag_assets.models.chat.prices import ChatPrice
from rag_assets.models.embedding.prices import Price
from rag_assets.models.embedding.remote_model import KnownModel
from rag_assets.models.providers.base import ChatOffer, Provider, RemoteEmbedding
from rag_assets.models.providers.gemini.chat import GeminiChat
from rag_assets.models.providers.gemini.embedding import GeminiEndpoint

_MODULE = "google.genai"
_DIMENSIONS = (768, 1536, 3072)
_INPUT_TOKENS = 2048

_EMBEDDING = RemoteEmbedding(
    endpoint=GeminiEndpoint,
    models=MappingProxyType(
        {
            "gemini-embedding-001": KnownModel(
                1536,
                3072,
                _DIMENSIONS,
                input_tokens=_INPUT_TOKENS,
                task_types=True,
                price=Price(per_million=0.15, batch_per_million=0.075),
            ),
            "gemini-embedding-2": KnownModel(
                1536,
                3072,
                _DIMENSIONS,
                document_prefix="title: none | text: ",
                query_prefix="task: search result | query: ",
                price=Price(per_million=0.20, batch_per_million=0.10),
            ),
            # Shut down by Google in January 2026; some compatible servers still offer it.
            "text-embedding-004": KnownModel(
                768,
                1536,
                (768, 1536),
                shortens=False,
                native=768,
                input_tokens=_INPUT_TOKENS,
                task_types=True,
            ),
        }
    ),
    unlisted=KnownModel(0, 0, input_tokens=_INPUT_TOKENS, task_types=True),
    default_model="gemini-embedding-001",
    auto_dimensions=1536,
    module=_MODULE,
)

_CHAT = ChatOffer(
    endpoint=GeminiChat,
    prices=MappingProxyType(
        {
            "gemini-2.5-pro": ChatPrice(input_per_million=1.25, output_per_million=10.0),
            "gemini-2.5-flash": ChatPrice(input_per_million=0.30, output_per_million=2.50),
            "gemini-2.5-flash-lite": ChatPrice(input_per_million=0.10, output_per_million=0.40),
        }
    ),
    module=_MODULE,
)

GEMINI = Provider(
    "gemini",
    embedding=_EMBEDDING,
    chat=_CHAT,
    chat_names=re.compile(r"(^|[/.:])(gemini|learnlm)([/.:-]|$)"),
)
