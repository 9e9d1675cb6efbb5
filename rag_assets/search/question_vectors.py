"""Vectors of questions, from the embedder that built the generation; each is paid for only once."""

from __future__ import annotations

import time
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
from anyio.to_thread import run_sync
from cachetools import LRUCache

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.usage_meter import Meter
from rag_assets.common.errors import IndexInconsistent, MalformedResponse
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.coverage import Reading, assess_reading
from rag_assets.models.embedding.protocol import Charge, Embedder
from rag_assets.models.embedding.vectors import embed_query
from rag_assets.models.factory import price_of
from rag_assets.models.prices import Price
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.common_words import sentence_language
from rag_assets.tenants.model import Tenant

_CACHED_BYTES = 64 * 1024 * 1024
_OVERHEAD_BYTES = 1_024
"""Memory of a cache entry and its key, without the vector: measured, and rounded up."""
_MAX_EMBEDDERS = 1_024
_KEY_SECONDS = 60.0

Vector: TypeAlias = npt.NDArray[np.float32]
_Question: TypeAlias = tuple[TenantRef, str, bytes]


@dataclass(slots=True)
class _CachedEmbedder:
    """An embedder, its price, and the time when its provider key was last looked up."""

    embedder: Embedder
    price: Price | None
    renewed_at: float = 0.0


class VectorsOfQuestions(Protocol):
    """Computes or looks up the vectors of questions."""

    async def of(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the question's vector, from exactly the embedder that built the generation."""
        ...

    async def reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """Return how well the generation's embedder reads the question (see coverage)."""
        ...

    async def close(self) -> None:
        """Close connections; must be called in the event loop that used them."""
        ...


class QuestionVectors:
    """Embeds questions in one event loop, and caches their vectors by tenant.

    Args:
        embedders: creates the embedder that built a generation.
        meter: counts the cost of questions.
    """

    def __init__(self, embedders: Embedders, meter: Meter) -> None:
        self._embedders = embedders
        self._meter = meter
        self._cached: LRUCache[tuple[TenantRef, str, EmbedderConfig], _CachedEmbedder] = LRUCache(
            _MAX_EMBEDDERS
        )
        self._vectors: LRUCache[_Question, Vector] = LRUCache(_CACHED_BYTES, _bytes_of)

    async def of(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the question's vector, from exactly the embedder that built the generation.

        Raises:
            ProviderError: the question could not be embedded.
            IndexInconsistent: the generation's embedder can no longer be created.
        """
        key = (ref, serving.embedder_id, _digest(question))
        vector = self._vectors.get(key)
        if vector is None:
            vector = await self._embed_question(ref, tenant, serving, question)
            if _bytes_of(vector) <= _CACHED_BYTES:
                self._vectors[key] = vector
        return vector

    async def reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """Return how well the generation's embedder reads the question (see coverage).

        Raises:
            ProviderError, IndexInconsistent: see `of`.
        """
        language = sentence_language(question)
        if question.isascii() and language in {None, "en"}:  # Every model reads English.
            return "known"
        cached = await self._embedder(ref, tenant, serving)
        # Run in a thread: it may load a tokenizer.
        return await run_sync(assess_reading, cached.embedder, question, language)

    async def close(self) -> None:
        """Close the embedders' connections; must be called in the event loop that used them."""
        cached = list(self._cached.values())
        self._cached.clear()
        for entry in cached:
            await entry.embedder.close()

    async def _embed_question(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        cached = await self._embedder(ref, tenant, serving)
        try:
            answer = await embed_query(cached.embedder, question)
        except MalformedResponse as error:
            charge = Charge(error.tokens, error.requests)
            self._meter.count(ref, serving.embedder_id, charge, cached.price)
            raise
        charge = Charge(answer.tokens, answer.requests, len(answer.vectors))
        self._meter.count(ref, serving.embedder_id, charge, cached.price)
        vector: Vector = answer.vectors[0]
        return vector

    async def _embedder(
        self, ref: TenantRef, tenant: Tenant, serving: Generation
    ) -> _CachedEmbedder:
        key = (ref, serving.embedder_id, tenant.embedder)
        cached = self._cached.get(key)
        if cached is None:
            # Run in a thread: it may read a model's files.
            cached = await run_sync(self._make, ref, tenant, serving)
            self._cached[key] = cached
        now = time.monotonic()
        if now - cached.renewed_at > _KEY_SECONDS:
            cached.renewed_at = now
            # The embedder reopens its connections with the tenant's current key.
            await cached.embedder.close()
        return cached

    def _make(self, ref: TenantRef, tenant: Tenant, serving: Generation) -> _CachedEmbedder:
        embedder = self._embedders.of_generation(ref, tenant, serving)
        if embedder.embedder_id != serving.embedder_id:
            raise IndexInconsistent(
                f"generation {serving.number} was built by {serving.embedder_id}, but the same"
                " settings"
                f" now select {embedder.embedder_id}",
                hint="sync the tenant: a new generation is built with the present model",
            )
        # Use the price that the tenant states now, or else the price at the time of the build.
        built = EmbedderConfig.model_validate(serving.embedder)
        return _CachedEmbedder(embedder, tenant.embedder.price or price_of(built))


def _digest(question: str) -> bytes:
    # Hash the question, since it can be longer than its vector. Half of a surrogate pair must be
    # hashable too.
    return blake2b(question.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _bytes_of(vector: Vector) -> int:
    return vector.nbytes + _OVERHEAD_BYTES
