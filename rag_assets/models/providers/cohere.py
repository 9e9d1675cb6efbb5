"""Cohere: embeddings, chat models and rerankers, through its SDK, and the table of its models.

Source of limits: https://docs.cohere.com/docs/models. Source of prices in dollars, as far as they
are listed: https://cohere.com/pricing, as of November 2026. `embedder.price` and
`chat_model.prices` in tenants.yaml replace them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pydantic import SecretStr

from rag_assets.common.errors import MalformedResponse, ProviderError
from rag_assets.models.chat import ChatReply, Prompt, SdkChatEndpoint
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import EmbeddingReply, KnownModel, SdkEndpoint
from rag_assets.models.prices import Price, build_chat_price
from rag_assets.models.providers.base import (
    ChatOffer,
    Extra,
    KnownReranker,
    Provider,
    RemoteEmbedding,
    RerankOffer,
)
from rag_assets.models.reranking.rerankers import SdkReranker
from rag_assets.models.transport.connection import REQUEST_SECONDS, SdkConnection, read_token_count

if TYPE_CHECKING:
    import httpx2
    from cohere import AsyncClientV2

_MODULE = "cohere.client_v2"
"""Module of the SDK to import in advance; the SDK imports its parts only when they are used."""
INPUT_TYPES: Mapping[Purpose, str] = {"document": "search_document", "query": "search_query"}


class CohereConnection(SdkConnection["AsyncClientV2"]):
    """A connection to Cohere, or to a server that implements its API; see SdkConnection."""

    own_server = "https://api.cohere.com"

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> AsyncClientV2:
        from cohere import AsyncClientV2

        from rag_assets.models.transport.http_client import build_httpx_client

        if key is None:
            raise ValueError("Cohere requires a key")
        return AsyncClientV2(
            api_key=key.get_secret_value(),
            base_url=self.get_address(),
            timeout=REQUEST_SECONDS,
            max_retries=0,
            httpx_client=build_httpx_client(http),
            log_warning_experimental_features=False,
        )

    def _convert_error(self, error: Exception) -> ProviderError | None:
        from cohere.core import ApiError

        # The SDK never sees a refusal, so its own errors are about a successful response.
        if isinstance(error, ApiError):
            return MalformedResponse(f"{self.server.id} returned a malformed response")
        return super()._convert_error(error)


class CohereEndpoint(CohereConnection, SdkEndpoint["AsyncClientV2"]):
    """An embedding model of Cohere; see SdkEndpoint."""

    async def _embed(
        self, sdk: AsyncClientV2, texts: list[str], purpose: Purpose
    ) -> EmbeddingReply:
        answer = await sdk.embed(
            model=self.model.name,
            input_type=INPUT_TYPES[purpose],
            texts=texts,
            embedding_types=["float"],
            truncate="NONE",
            **self.model.get_dimension_option("output_dimension"),
        )
        units = answer.meta.billed_units if answer.meta else None
        return self._build_reply(
            lambda: self._require_count(answer.embeddings.float_, len(texts)),
            _convert_token_count(units.input_tokens if units else None),
        )


class CohereChat(CohereConnection, SdkChatEndpoint["AsyncClientV2"]):
    """A chat model of Cohere; see SdkChatEndpoint."""

    async def _request_completion(self, sdk: AsyncClientV2, prompt: Prompt) -> ChatReply:
        from cohere import SystemChatMessageV2, UserChatMessageV2

        answer = await sdk.chat(
            model=self._model,
            messages=[
                SystemChatMessageV2(content=prompt.instructions),
                UserChatMessageV2(content=prompt.text),
            ],
            max_tokens=prompt.max_tokens,
        )
        parts = answer.message.content or ()
        billed = answer.usage.billed_units if answer.usage else None
        return ChatReply(
            # Thinking is in parts of another type.
            "".join(part.text for part in parts if part.type == "text"),
            _convert_token_count(billed.input_tokens if billed else None),
            _convert_token_count(billed.output_tokens if billed else None),
            cut=answer.finish_reason == "MAX_TOKENS",
        )


class CohereReranker(CohereConnection, SdkReranker["AsyncClientV2"]):
    """A reranker of Cohere; see SdkReranker."""

    async def _rank(self, sdk: AsyncClientV2, question: str, passages: Sequence[str]) -> object:
        answer = await sdk.rerank(model=self._model, query=question, documents=list(passages))
        return [
            {"index": result.index, "score": result.relevance_score} for result in answer.results
        ]


def _convert_token_count(reported: float | None) -> int | None:
    """Return the number of tokens charged, which Cohere reports as a decimal; None if unknown."""
    return read_token_count(int(reported)) if isinstance(reported, int | float) else None


_MAX_REQUEST_TEXTS = 96
"""Maximum number of texts in a request."""


def _describe_version_3_model(dimensions: int) -> KnownModel:
    return KnownModel(
        dimensions,
        shortens=False,
        input_tokens=512,
        request_texts=_MAX_REQUEST_TEXTS,
        task_types=True,
        price=Price(per_million=0.10),
    )


COHERE = Provider(
    "cohere",
    embedding=RemoteEmbedding(
        endpoint=CohereEndpoint,
        models={
            "embed-v4.0": KnownModel(
                1536,
                (256, 512, 1024, 1536),
                input_tokens=128_000,
                request_texts=_MAX_REQUEST_TEXTS,
                task_types=True,
                price=Price(per_million=0.12),
            ),
            "embed-multilingual-v3.0": _describe_version_3_model(1024),
            "embed-english-v3.0": _describe_version_3_model(1024),
            "embed-multilingual-light-v3.0": _describe_version_3_model(384),
            "embed-english-light-v3.0": _describe_version_3_model(384),
        },
        unlisted=KnownModel(
            shortens=False, input_tokens=512, request_texts=_MAX_REQUEST_TEXTS, task_types=True
        ),
        default_model="embed-v4.0",
        module=_MODULE,
    ),
    chat=ChatOffer(
        endpoint=CohereChat,
        prices={
            "command-a-03-2025": build_chat_price(2.50, 10.0),
            "command-r-plus-08-2024": build_chat_price(2.50, 10.0),
            "command-r-08-2024": build_chat_price(0.15, 0.60),
            "command-r7b-12-2024": build_chat_price(0.0375, 0.15),
        },
        module=_MODULE,
    ),
    reranking=RerankOffer(
        endpoint=CohereReranker,
        models={
            "rerank-v3.5": KnownReranker(4_096, per_thousand_searches=2.0),
            "rerank-v4.0-fast": KnownReranker(32_768),
            "rerank-v4.0-pro": KnownReranker(32_768),
        },
        module=_MODULE,
    ),
    extra=Extra("cohere", "cohere"),
)
