"""Fetch the vectors of batches that have ended at a provider's batch API."""

from __future__ import annotations

import asyncio
from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from rag_assets.billing.spending import build_usage
from rag_assets.common.errors import (
    BadVectors,
    BatchLost,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RequestsStopped,
)
from rag_assets.common.formatting import counted
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batch_api import BatchApi, BatchResult, run_and_close
from rag_assets.models.embedding.protocol import Charge, Vectors
from rag_assets.models.embedding.vectors import validate_vectors
from rag_assets.models.factory import price_of
from rag_assets.models.prices import split_embedder_id
from rag_assets.pipeline.batch_submissions import LISTED_AFTER, recover
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.builds.batches import EmbeddingBatch
from rag_assets.storage.catalog.builds.generations import Generation

_GROUP = 1_000


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of fetching the batches that had ended.

    Attributes:
        texts: number of texts whose vectors were stored in the lake.
        tokens: number of tokens charged for these texts.
        outage: why no request may be sent for now; None if requests may be sent.
    """

    texts: int = 0
    tokens: int = 0
    outage: RequestsStopped | None = None

    def __add__(self, other: Collected) -> Collected:
        return Collected(
            self.texts + other.texts, self.tokens + other.tokens, self.outage or other.outage
        )


def collect(ctx: TenantContext, embedder_id: str | None = None) -> Collected:
    """Fetch batches that have ended, and resolve interrupted submissions.

    Args:
        embedder_id: only batches of this embedder; None: of all.
    """
    done = Collected()
    for batch in ctx.catalog.batches.list_open(ctx.ref.id):
        if embedder_id not in {None, batch.embedder_id}:
            continue
        try:
            if batch.state == "SUBMITTING":
                _resolve_submission(ctx, batch)
            elif batch.state == "ENDED":
                done += _fetch(ctx, batch)
        except ProviderError as error:
            # Texts that may still be in flight, or whose results were unusable, must not be sent
            # again.
            halt = error if isinstance(error, RequestsStopped) else _transient(error)
            done += Collected(outage=halt)
    return done


def _resolve_submission(ctx: TenantContext, batch: EmbeddingBatch) -> None:
    """Resolve an interrupted submission before anything else is sent.

    Raises:
        ProviderUnavailable: the outcome is not known yet.
        ProviderError: the provider does not answer.
    """
    api = ctx.batch_api(EmbedderConfig.model_validate(batch.embedder))
    if not asyncio.run(run_and_close(api, recover(ctx.catalog, api, batch, locked=True))):
        raise ProviderUnavailable(
            "the submission of a batch was interrupted, and the provider may have accepted it",
            hint="wait: the batch is looked up again before its texts are sent again",
            retry_after=LISTED_AFTER.total_seconds(),
        )


def _fetch(ctx: TenantContext, batch: EmbeddingBatch) -> Collected:
    """Write a batch's vectors into the lake; may be repeated.

    Returns:
        The result; empty if the vectors are unavailable, temporarily or permanently.

    Raises:
        ProviderRefused: the response is unusable.
    """
    api = ctx.batch_api(EmbedderConfig.model_validate(batch.embedder))
    keys = ctx.catalog.batches.text_hashes(ctx.ref.id, batch.embedder_id)[batch.id]
    wanted = ctx.lake.missing_vectors(batch.embedder_id, keys)
    fetching = _Fetching(ctx, batch, keys, wanted, api.dimensions)
    try:
        asyncio.run(run_and_close(api, fetching.run(api)))
    except MalformedResponse as error:
        # The provider charges the whole batch, not only the part that was read.
        _charge(ctx, batch, max(fetching.tokens, batch.tokens), fetching.texts)
        ctx.catalog.batches.mark_failed(ctx.ref, batch.id, error.message)
        raise ProviderRefused(
            f"the results of a batch are not usable: {error.message}",
            hint="check the embedder's model and dimensions; texts that are sent again are charged"
            " again",
        ) from None
    except BatchLost as error:
        ctx.catalog.batches.mark_failed(ctx.ref, batch.id, error.message)
        ctx.log(f"embeddings: batch {batch.batch_id} failed: {error.message}")
        return Collected()
    except RequestsStopped as error:
        # The batch can be fetched later, and its texts are not sent again: other work continues.
        ctx.catalog.batches.mark_polled(ctx.ref, batch.id, error.advice)
        ctx.log(f"embeddings: batch {batch.batch_id} cannot be fetched: {error.advice}")
        return Collected()
    if not fetching.texts and fetching.refused:
        ctx.catalog.batches.mark_failed(ctx.ref, batch.id, "the provider refused every text")
        return Collected()
    cost = _charge(ctx, batch, fetching.tokens, fetching.texts)
    ctx.catalog.batches.mark_collected(ctx.ref, batch.id, tokens=fetching.tokens, cost=cost)
    ctx.log(f"embeddings: {counted(fetching.texts, 'vector')} from batch {batch.batch_id}")
    return Collected(fetching.texts, fetching.tokens)


def _charge(ctx: TenantContext, batch: EmbeddingBatch, tokens: int, texts: int) -> float | None:
    """Record the cost of a batch; return it in dollars, or None if no price is known."""
    price = price_of(EmbedderConfig.model_validate(batch.embedder))
    used = build_usage(Charge(tokens, 1, texts), price, batch=True)
    made = [g.number for g in ctx.catalog.generations.live(ctx.ref.id) if _is_for(batch, g)]
    ctx.catalog.usage.add(
        ctx.ref,
        *split_embedder_id(batch.embedder_id),
        used,
        generation=max(made, default=None),
    )
    return None if price is None else used.cost


def _is_for(batch: EmbeddingBatch, generation: Generation) -> bool:
    """Return whether a batch may have been submitted for this build: both use the same embedder.

    The newest such build is charged.
    """
    return generation.embedder_id == batch.embedder_id


def _transient(error: ProviderError) -> ProviderUnavailable:
    return ProviderUnavailable(error.message, hint=error.hint)


class _Fetching:
    """Writes the results of one batch into the lake, one group at a time."""

    def __init__(
        self,
        ctx: TenantContext,
        batch: EmbeddingBatch,
        keys: Set[str],
        wanted: Set[str],
        dimensions: int,
    ) -> None:
        self._ctx = ctx
        self._batch = batch
        self._outstanding = set(keys)
        self._wanted = wanted
        self._dimensions = dimensions
        self._keys: list[str] = []
        self._vectors: list[Vectors] = []
        self._error: BadVectors | None = None
        self.texts = self.tokens = self.refused = 0

    async def run(self, api: BatchApi) -> None:
        """Store every result; texts without a valid vector are sent again, outside of a batch.

        Raises:
            MalformedResponse: no vector is valid, or the file is malformed. Vectors that were read
                before the error are kept, because they are charged.
            ProviderError: see BatchApi.results.
        """
        try:
            async for result in api.results(self._batch.batch_id or ""):
                self._take(result)
            if self._error is not None and not self.texts:
                raise self._error
        finally:
            self._keep()

    def _take(self, result: BatchResult) -> None:
        if result.key not in self._outstanding:
            return
        self._outstanding.discard(result.key)
        self.tokens += result.tokens
        if result.vector is None:
            self.refused += 1
            return
        try:
            vectors = validate_vectors(
                [result.vector],  # type: ignore[arg-type]
                count=1,
                dimensions=self._dimensions,
                source=self._batch.embedder_id,
            )
        except BadVectors as error:
            self._error = error
            self.refused += 1
            return
        self.texts += 1
        if result.key in self._wanted:
            self._keys.append(result.key)
            self._vectors.append(vectors)
        if len(self._keys) >= _GROUP:
            self._keep()

    def _keep(self) -> None:
        if not self._keys:
            return
        keys, vectors = self._keys, np.concatenate(self._vectors)
        self._keys, self._vectors = [], []
        self._ctx.lake.append_vectors(self._batch.embedder_id, keys, vectors)
