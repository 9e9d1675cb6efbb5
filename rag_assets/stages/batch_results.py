"""What becomes of texts at a provider's batch API: looked after, and their vectors fetched."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy.typing as npt

from rag_assets.accounts.embedders import Embedders
from rag_assets.accounts.spending import used_of
from rag_assets.catalog.batches import EmbeddingBatch, due_to_poll
from rag_assets.catalog.catalog import Catalog
from rag_assets.embedding.batch_api import BatchApi, Standing, closing
from rag_assets.embedding.prices import provider_and_model
from rag_assets.embedding.protocol import Charge
from rag_assets.embedding.registry import EmbedderConfig, price_of
from rag_assets.embedding.vectors import checked_vectors
from rag_assets.errors import (
    BadVectors,
    EmbedderRefused,
    EmbedderUnavailable,
    EmbeddingHalted,
    RagAssetsError,
    TenantGone,
)
from rag_assets.stages.context import TenantContext
from rag_assets.wording import counted

_SUBMISSION = timedelta(hours=1)
"""Longer than any submission takes."""
_GROUP = 1_000
_CONCURRENCY = 8


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of the batches that had ended.

    Attributes:
        texts: whose vectors are in the lake now.
        tokens: charged for them.
        outage: why nothing may be sent before it is over.
    """

    texts: int = 0
    tokens: int = 0
    outage: EmbeddingHalted | None = None

    def __add__(self, other: Collected) -> Collected:
        return Collected(
            self.texts + other.texts, self.tokens + other.tokens, self.outage or other.outage
        )


def collect(ctx: TenantContext) -> Collected:
    """Fetch what has ended, and find out about submissions that were broken off."""
    done = Collected()
    for batch in ctx.catalog.batches.open(ctx.ref.id):
        api = ctx.batch_api(EmbedderConfig.model_validate(batch.embedder))
        try:
            if batch.state == "SUBMITTING":
                asyncio.run(closing(api, _recover(ctx.catalog, api, batch, locked=True)))
            elif batch.state == "ENDED":
                done += _fetch(ctx, api, batch)
        except EmbeddingHalted as error:
            # What has ended can be fetched later; what may be under way must not be sent again.
            away = batch.state == "ENDED" and isinstance(error, EmbedderUnavailable)
            done += Collected(outage=None if away else error)
    return done


def poll(catalog: Catalog, embedders: Embedders, batches: Iterable[EmbeddingBatch]) -> list[str]:
    """Look how batches stand; documents of those that are done no longer wait.

    Args:
        catalog: where they are noted.
        embedders: whose accounts they are on.
        batches: open ones, of any tenants.

    Returns:
        what went wrong, one line each.
    """
    batches = list(batches)
    if not batches:
        return []

    async def all_of_them() -> list[str | None]:
        room = asyncio.Semaphore(_CONCURRENCY)

        async def one(batch: EmbeddingBatch) -> str | None:
            async with room:
                return await _poll_one(catalog, embedders, batch)

        return await asyncio.gather(*(one(batch) for batch in batches))

    return [trouble for trouble in asyncio.run(all_of_them()) if trouble is not None]


def due(batches: Iterable[EmbeddingBatch], now: datetime, most: int) -> list[EmbeddingBatch]:
    """The batches to look at now, those first that were longest not looked at."""
    ready = [batch for batch in batches if due_to_poll(batch, now)]
    return sorted(ready, key=lambda batch: batch.polled_at)[:most]


async def _poll_one(catalog: Catalog, embedders: Embedders, batch: EmbeddingBatch) -> str | None:
    try:
        api = embedders.batch_api(batch.ref, EmbedderConfig.model_validate(batch.embedder))
        if batch.state == "SUBMITTING":
            await closing(api, _recover(catalog, api, batch, locked=False))
        elif batch.state == "ENDED":
            # Whoever was to fetch it did not: let its documents call for a run once more.
            catalog.batches.polled(batch.ref, batch.id)
            catalog.documents.release(batch.ref)
        else:
            _note(catalog, batch, await closing(api, api.standing(batch.batch_id or "")))
    except TenantGone:
        return None
    except RagAssetsError as error:
        with suppress(TenantGone):
            catalog.batches.polled(batch.ref, batch.id, error.advice)
        return f"{batch.ref.id}: {error.advice}"
    return None


def _note(catalog: Catalog, batch: EmbeddingBatch, standing: Standing) -> None:
    if standing.state == "under way":
        catalog.batches.polled(batch.ref, batch.id)
        return
    if standing.state == "ended":
        catalog.batches.ended(batch.ref, batch.id)
    else:
        catalog.batches.failed(batch.ref, batch.id, standing.reason or "for no given reason")
    catalog.documents.release(batch.ref)


async def _recover(catalog: Catalog, api: BatchApi, batch: EmbeddingBatch, *, locked: bool) -> None:
    """Find out whether a submission that was broken off had been taken.

    Args:
        locked: whether the tenant's lock proves that nobody is at it just now.
    """
    batch_id = await api.find(batch.tag, batch.submitted_at - _SUBMISSION)
    if batch_id is not None:
        catalog.batches.submitted(batch.ref, batch.id, batch_id)
    elif locked or datetime.now(UTC) - batch.submitted_at > _SUBMISSION:
        catalog.batches.forget(batch.ref, batch.id)
        catalog.documents.release(batch.ref)


def _fetch(ctx: TenantContext, api: BatchApi, batch: EmbeddingBatch) -> Collected:
    """Take a batch's vectors over; once more does no harm."""
    keys = ctx.catalog.batches.keys(ctx.ref.id, batch.embedder_id)[batch.id]
    fetching = _Fetching(
        ctx, batch, ctx.lake.missing_vectors(batch.embedder_id, keys), api.dimensions
    )
    try:
        asyncio.run(closing(api, fetching.run(api)))
    except BadVectors as error:
        ctx.catalog.batches.failed(ctx.ref, batch.id, error.message)
        raise EmbedderRefused(
            f"a batch came back unusable: {error.message}",
            hint="check the embedder's model and dimensions; what is sent again is paid for again",
        ) from None
    if not fetching.texts and fetching.refused:
        ctx.catalog.batches.failed(ctx.ref, batch.id, "every text was refused")
        return Collected()
    price = price_of(EmbedderConfig.model_validate(batch.embedder))
    used = used_of(Charge(fetching.tokens, 1, fetching.texts), price, batch=True)
    ctx.catalog.usage.add(ctx.ref, *provider_and_model(batch.embedder_id), used)
    ctx.catalog.batches.collected(
        ctx.ref, batch.id, tokens=fetching.tokens, cost=None if price is None else used.cost
    )
    ctx.log(f"embeddings: {counted(fetching.texts, 'vector')} from batch {batch.batch_id}")
    return Collected(fetching.texts, fetching.tokens)


class _Fetching:
    """The results of one batch on their way into the lake, a group at a time."""

    def __init__(
        self, ctx: TenantContext, batch: EmbeddingBatch, wanted: set[str], dimensions: int
    ) -> None:
        self._ctx = ctx
        self._batch = batch
        self._wanted = wanted
        self._dimensions = dimensions
        self._keys: list[str] = []
        self._vectors: list[npt.ArrayLike] = []
        self.texts = self.tokens = self.refused = 0

    async def run(self, api: BatchApi) -> None:
        """Take every result; what comes of none stays lacking."""
        async for result in api.results(self._batch.batch_id or ""):
            self.tokens += result.tokens
            if result.vector is None:
                self.refused += 1
                continue
            self.texts += 1
            if result.key in self._wanted:
                self._wanted.discard(result.key)
                self._keys.append(result.key)
                self._vectors.append(result.vector)
            if len(self._keys) >= _GROUP:
                self._keep()
        self._keep()

    def _keep(self) -> None:
        if not self._keys:
            return
        vectors = checked_vectors(
            self._vectors,  # type: ignore[arg-type]
            count=len(self._keys),
            dimensions=self._dimensions,
            source=self._batch.embedder_id,
        )
        self._ctx.lake.append_vectors(self._batch.embedder_id, self._keys, vectors)
        self._keys, self._vectors = [], []
