"""Models of tenants in one event loop: embedders of questions, and rerankers.

A model is created in a thread when it is first used. Once a minute its connections are closed; they
reopen with the tenant's current provider key.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
from anyio.to_thread import run_sync
from cachetools import LRUCache

from rag_assets.billing.embedders import Embedders, Rerankers
from rag_assets.billing.spending import Meter
from rag_assets.common.errors import (
    ConfigurationError,
    IndexInconsistent,
    MalformedResponse,
    RerankFailed,
)
from rag_assets.ingest.chunking.model import build_embedding_text
from rag_assets.models.config import EmbedderConfig, RerankConfig
from rag_assets.models.embedding.coverage import Reading, assess_reading
from rag_assets.models.embedding.protocol import Charge, Embedder
from rag_assets.models.embedding.vectors import embed_query
from rag_assets.models.factory import find_price
from rag_assets.models.reranking.rerankers import Reranker
from rag_assets.search.progress import Passage, Reranking
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.index.common_words import find_sentence_language
from rag_assets.tenants.model import Tenant

_LOG = logging.getLogger(__name__)

_MAX_MODELS: Final = 1_024
"""Maximum number of cached models of each kind."""
_KEY_SECONDS: Final = 60.0
_CACHED_BYTES: Final = 64 * 1024 * 1024
_OVERHEAD_BYTES: Final = 1_024
"""Memory of a cached vector and its key, without the vector: measured, and rounded up."""

Vector: TypeAlias = npt.NDArray[np.float32]


class _ClosableModel(Protocol):
    async def close(self) -> None: ...


_ModelT = TypeVar("_ModelT", bound=_ClosableModel)


class _ModelCache(Generic[_ModelT]):
    """A cache of models by key, which drops the least recently used models first.

    The time at which its connections were last renewed is stored with each model.
    """

    def __init__(self) -> None:
        self._cached: LRUCache[Hashable, tuple[_ModelT, float]] = LRUCache(_MAX_MODELS)

    async def get(self, key: Hashable, make: Callable[[], _ModelT]) -> _ModelT:
        """Return the cached model for a key; if there is none, create it in a thread."""
        cached, now = self._cached.get(key), time.monotonic()
        if cached is None:
            cached = self._cached.setdefault(key, (await run_sync(make), now))
        model, renewed_at = cached
        if now - renewed_at > _KEY_SECONDS:
            self._cached[key] = model, now
            await model.close()
        return model

    async def close(self) -> None:
        """Close the models' connections; must be called in the event loop that used them."""
        models = [model for model, _ in self._cached.values()]
        self._cached.clear()
        for model in models:
            await model.close()


class QuestionEmbedder(Protocol):
    """Computes or looks up the vectors of questions."""

    async def embed(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the question's vector, from exactly the embedder that the build was made with."""

    async def assess_reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """Return how much of the question the generation's embedder recognizes (see coverage)."""

    async def close(self) -> None:
        """Close connections; must be called in the event loop that used them."""


class CachingQuestionEmbedder:
    """Embeds questions, and caches their vectors by tenant, so that each is paid for only once."""

    def __init__(self, embedders: Embedders, meter: Meter) -> None:
        self._embedders = embedders
        self._meter = meter
        self._models: _ModelCache[Embedder] = _ModelCache()
        self._vectors: LRUCache[tuple[TenantRef, str, bytes], Vector] = LRUCache(
            _CACHED_BYTES, _count_bytes
        )

    async def embed(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        """Return the question's vector, from the embedder that the build was made with."""
        # Hash the question, since it can be longer than its vector. Half of a surrogate pair must
        # be hashable too.
        encoded = question.encode("utf-8", "surrogatepass")
        key = (ref, serving.embedder_id, blake2b(encoded, digest_size=16).digest())
        vector = self._vectors.get(key)
        if vector is None:
            vector = await self._embed_question(ref, tenant, serving, question)
            if _count_bytes(vector) <= _CACHED_BYTES:
                self._vectors[key] = vector
        return vector

    async def assess_reading(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Reading:
        """Return how much of the question the generation's embedder recognizes (see coverage)."""
        language = find_sentence_language(question)
        if question.isascii() and language in {None, "en"}:  # Every model reads English.
            return "known"
        embedder = await self._get_embedder(ref, tenant, serving)
        # Run in a thread: it may load a tokenizer.
        return await run_sync(assess_reading, embedder, question, language)

    async def close(self) -> None:
        """Close the embedders' connections; must be called in the event loop that used them."""
        await self._models.close()

    async def _embed_question(
        self, ref: TenantRef, tenant: Tenant, serving: Generation, question: str
    ) -> Vector:
        embedder = await self._get_embedder(ref, tenant, serving)
        # Use the price that the tenant states now, or else the price at the time of the build.
        built = EmbedderConfig.model_validate(serving.embedder)
        price = tenant.embedder.price or find_price(built)
        try:
            answer = await embed_query(embedder, question)
        except MalformedResponse as error:
            charge = Charge(error.tokens, error.requests)
            self._meter.count(ref, serving.embedder_id, charge, price)
            raise
        charge = Charge(answer.tokens, answer.requests, len(answer.vectors))
        self._meter.count(ref, serving.embedder_id, charge, price)
        vector: Vector = answer.vectors[0]
        return vector

    async def _get_embedder(self, ref: TenantRef, tenant: Tenant, serving: Generation) -> Embedder:
        def make() -> Embedder:
            embedder = self._embedders.get_generation_embedder(ref, tenant, serving)
            if embedder.embedder_id != serving.embedder_id:
                raise IndexInconsistent(
                    f"generation {serving.number} was built by {serving.embedder_id}, but the same"
                    f" settings now select {embedder.embedder_id}",
                    hint="sync the tenant: a new generation is built with the present model",
                )
            return embedder

        return await self._models.get((ref, serving.embedder_id, tenant.embedder), make)


class RerankerPool:
    """Scores passages with the tenants' rerankers; a fault never fails a search."""

    def __init__(self, rerankers: Rerankers) -> None:
        self._rerankers = rerankers
        self._models: _ModelCache[Reranker] = _ModelCache()

    async def score(
        self,
        ref: TenantRef,
        config: RerankConfig,
        question: str,
        order: Sequence[Passage],
        *,
        known: Reranking | None = None,
    ) -> Reranking:
        """Score the first passages of an order with a tenant's reranker.

        Args:
            known: scores for this question from an earlier attempt. Passages with such a score
                are not scored again. If the attempt had a fault, no passage is scored.
        """
        first = order[: config.first]
        if not first:
            return Reranking({})
        before = known.scores if known else {}
        scored = {passage.id: before[passage.id] for passage in first if passage.id in before}
        if known and known.fault:
            return replace(known, scores=scored)
        new = [passage for passage in first if passage.id not in scored]
        if not new:
            return Reranking(scored, blend=config.blend)
        try:
            reranker = await self._models.get(
                (ref, config), lambda: self._rerankers.get_reranker(ref, config)
            )
            texts = [_build_embedded_text(passage) for passage in new]
            scores = await reranker.score_passages(question, texts, seconds=config.seconds)
        except (RerankFailed, ConfigurationError) as error:
            fault = error.fault if isinstance(error, RerankFailed) else "not usable"
            if fault != "resting":
                _LOG.warning(f"{ref.id}: a search was not reranked: {error.advice}")
            return Reranking({}, fault)
        scored |= {
            passage.id: score
            for passage, score in zip(new, scores, strict=True)
            if score is not None
        }
        return Reranking(scored, "late" if len(scored) < len(first) else None, config.blend)

    async def close(self) -> None:
        """Close the rerankers' connections; must be called in the event loop that used them."""
        await self._models.close()


def _build_embedded_text(passage: Passage) -> str:
    """Return the text of a passage as it was embedded, with its title and headings."""
    fields = passage.fields
    return build_embedding_text(
        fields.get("title"),
        tuple(fields["heading_path"]),
        fields["text"],
        context=fields.get("context") or "",
    )


def _count_bytes(vector: Vector) -> int:
    return vector.nbytes + _OVERHEAD_BYTES
