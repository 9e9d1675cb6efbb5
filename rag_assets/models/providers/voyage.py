"""Voyage: embeddings and rerankers, through its SDK, and the table of its models.

Source of limits: https://docs.voyageai.com/docs/embeddings and
https://docs.voyageai.com/docs/reranker. Source of prices, in dollars per million tokens:
https://docs.voyageai.com/docs/pricing, as of November 2026. `embedder.price` in tenants.yaml
replaces them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from pydantic import SecretStr

from rag_assets.common.errors import MalformedResponse, ProviderError, ProviderRefused
from rag_assets.models.embedding.protocol import Purpose
from rag_assets.models.embedding.remote import EmbeddingReply, KnownModel, SdkEndpoint
from rag_assets.models.prices import Price
from rag_assets.models.providers.base import (
    Extra,
    KnownReranker,
    Provider,
    RemoteEmbedding,
    RerankOffer,
)
from rag_assets.models.providers.openai import order_vectors
from rag_assets.models.reranking.rerankers import SdkReranker
from rag_assets.models.transport.connection import REQUEST_SECONDS, SdkConnection, read_token_count

if TYPE_CHECKING:
    import httpx2
    from aiohttp import ClientSession

_MODULE = "voyageai"


class _VoyageClient:
    """The SDK's resources with the HTTP session that sends their requests.

    The SDK takes a session only from a context variable, which is set for each request. Requests of
    other tenants run in other tasks, which have their own value. The SDK's own client is not used,
    since it returns vectors without the index of their texts.
    """

    def __init__(self, key: str, address: str, http: httpx2.AsyncClient) -> None:
        from rag_assets.models.transport.http_client import AiohttpSession

        self._params = {"api_key": key, "base_url": address, "request_timeout": REQUEST_SECONDS}
        self._session = AiohttpSession(http)

    async def create(self, resource: str, **options: Any) -> Any:
        """Request a resource of the SDK, such as an Embedding, and return the response."""
        import voyageai

        token = voyageai.aiosession.set(cast("ClientSession", self._session))
        try:
            return await getattr(voyageai, resource).acreate(**options, **self._params)
        finally:
            voyageai.aiosession.reset(token)


class VoyageConnection(SdkConnection[_VoyageClient]):
    """A connection to Voyage, or to a server that implements its API; see SdkConnection."""

    own_server = "https://api.voyageai.com/v1"

    def _open_sdk(self, key: SecretStr | None, http: httpx2.AsyncClient) -> _VoyageClient:
        if key is None:
            raise ValueError("Voyage requires a key")
        return _VoyageClient(key.get_secret_value(), self.get_address(), http)

    def _convert_error(self, error: Exception) -> ProviderError | None:
        from voyageai.error import VoyageError

        # The SDK never sees a refusal, so its own errors are about a successful response.
        if isinstance(error, VoyageError):
            return MalformedResponse(f"{self.server.id} returned a malformed response")
        return super()._convert_error(error)


class VoyageEndpoint(VoyageConnection, SdkEndpoint[_VoyageClient]):
    """An embedding model of Voyage; see SdkEndpoint."""

    async def _embed(
        self, sdk: _VoyageClient, texts: list[str], purpose: Purpose
    ) -> EmbeddingReply:
        from voyageai.local.helpers import is_local_model

        if is_local_model(self.model.name):
            # The SDK would download the model and run it in this process.
            raise ProviderRefused(
                f"the model {self.model.name} is not on Voyage's servers",
                hint="choose a different model, or set path to the folder of an ONNX model",
                fault="model",
            )
        answer = await sdk.create(
            "Embedding",
            input=texts,
            model=self.model.name,
            input_type=purpose if self.model.task_types else None,
            truncation=False,
            output_dimension=self.model.requested_dimensions,
            encoding_format="base64",
        )
        return self._build_reply(
            lambda: order_vectors(answer.data, len(texts), self.model.embedder_id),
            read_token_count(answer.usage.total_tokens),
        )


class VoyageReranker(VoyageConnection, SdkReranker[_VoyageClient]):
    """A reranker of Voyage; see SdkReranker."""

    async def _rank(self, sdk: _VoyageClient, question: str, passages: Sequence[str]) -> object:
        answer = await sdk.create(
            "Reranking",
            query=question,
            documents=list(passages),
            model=self._model,
            truncation=True,
        )
        return [{"index": result.index, "score": result.relevance_score} for result in answer.data]


def _describe_model(dollars: float, request_tokens: int) -> KnownModel:
    """Return the properties of a model with vectors of 256 to 2,048 dimensions."""
    return KnownModel(
        1024,
        (256, 512, 1024, 2048),
        input_tokens=32_000,
        request_tokens=request_tokens,
        task_types=True,
        price=Price(per_million=dollars),
    )


def _describe_fixed_model(input_tokens: int) -> KnownModel:
    """Return the properties of a model for one domain, with vectors of 1,024 dimensions."""
    return KnownModel(
        1024,
        shortens=False,
        input_tokens=input_tokens,
        request_tokens=120_000,
        task_types=True,
        price=Price(per_million=0.12),
    )


VOYAGE = Provider(
    "voyage",
    embedding=RemoteEmbedding(
        endpoint=VoyageEndpoint,
        models={
            "voyage-4": _describe_model(0.06, 320_000),
            "voyage-4-large": _describe_model(0.12, 120_000),
            "voyage-4-lite": _describe_model(0.02, 1_000_000),
            "voyage-3.5": _describe_model(0.06, 320_000),
            "voyage-3.5-lite": _describe_model(0.02, 1_000_000),
            "voyage-3-large": _describe_model(0.18, 120_000),
            "voyage-code-3": _describe_model(0.18, 120_000),
            "voyage-finance-2": _describe_fixed_model(32_000),
            "voyage-law-2": _describe_fixed_model(16_000),
        },
        unlisted=KnownModel(
            shortens=False, input_tokens=32_000, request_tokens=120_000, task_types=True
        ),
        default_model="voyage-4",
        module=_MODULE,
    ),
    reranking=RerankOffer(
        endpoint=VoyageReranker,
        models={
            "rerank-2.5": KnownReranker(32_000, per_million_tokens=0.05),
            "rerank-2.5-lite": KnownReranker(32_000, per_million_tokens=0.02),
        },
        module=_MODULE,
    ),
    extra=Extra("voyage", "voyageai"),
)
