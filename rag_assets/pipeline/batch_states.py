"""Poll the states of batches at providers' batch APIs, between runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime

from rag_assets.billing.embedders import Embedders
from rag_assets.common.clock import Clock
from rag_assets.common.errors import RagAssetsError, TenantGone
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batch_api import ABANDONED_AFTER, BatchStatus, run_and_close
from rag_assets.pipeline.batch_submissions import recover
from rag_assets.pipeline.clock_guard import ClockDoubt, time_for_deletion
from rag_assets.storage.catalog.builds.batches import EmbeddingBatch, is_poll_due
from rag_assets.storage.catalog.catalog import Catalog

_CONCURRENCY = 8


def poll(catalog: Catalog, embedders: Embedders, batches: Iterable[EmbeddingBatch]) -> list[str]:
    """Poll the state of batches; release the documents of finished batches.

    Args:
        catalog: records the batches.
        embedders: the embedders that submitted them.
        batches: open batches, of any tenants.

    Returns:
        The failures, one line each.
    """
    batches = list(batches)
    if not batches:
        return []

    async def poll_all() -> list[str | None]:
        room = asyncio.Semaphore(_CONCURRENCY)

        async def one(batch: EmbeddingBatch) -> str | None:
            async with room:
                return await _poll_one(catalog, embedders, batch)

        return await asyncio.gather(*(one(batch) for batch in batches))

    return [problem for problem in asyncio.run(poll_all()) if problem is not None]


def due(batches: Iterable[EmbeddingBatch], now: datetime, most: int) -> list[EmbeddingBatch]:
    """Return at most `most` batches to poll now, least recently polled first."""
    ready = [batch for batch in batches if is_poll_due(batch, now)]
    return sorted(ready, key=lambda batch: batch.polled_at)[:most]


async def _poll_one(catalog: Catalog, embedders: Embedders, batch: EmbeddingBatch) -> str | None:
    try:
        api = embedders.batch_api(batch.ref, EmbedderConfig.model_validate(batch.embedder))
        if batch.state == "SUBMITTING":
            await run_and_close(api, recover(catalog, api, batch, locked=False))
        elif batch.state == "ENDED":
            # The run that should have fetched this batch did not, so its documents request another
            # run.
            catalog.batches.mark_polled(batch.ref, batch.id, batch.error)
            catalog.quarantine.release(batch.ref)
        else:
            _record_status(
                catalog, batch, await run_and_close(api, api.status(batch.batch_id or ""))
            )
    except TenantGone:
        return None
    except Exception as error:  # A failure of one provider must not stop the polling of others.
        unforeseen = f"the state of a batch cannot be polled ({type(error).__name__})"
        reason = error.advice if isinstance(error, RagAssetsError) else unforeseen
        with suppress(TenantGone):
            catalog.batches.mark_polled(batch.ref, batch.id, reason)
        return f"{batch.ref.id}: {reason}"
    return None


def _record_status(catalog: Catalog, batch: EmbeddingBatch, status: BatchStatus) -> None:
    if status.state == "under way" and not _is_late(catalog, batch):
        catalog.batches.mark_polled(batch.ref, batch.id)
        return
    if status.state == "ended":
        catalog.batches.mark_ended(batch.ref, batch.id)
    elif status.state == "under way":
        hours = ABANDONED_AFTER.total_seconds() / 3600
        catalog.batches.mark_failed(batch.ref, batch.id, f"no result within {hours:.0f} hours")
    else:
        catalog.batches.mark_failed(
            batch.ref, batch.id, status.reason or "the provider gave no reason"
        )
    catalog.quarantine.release(batch.ref)


def _is_late(catalog: Catalog, batch: EmbeddingBatch) -> bool:
    """Return whether a batch is too old to wait for.

    If so, its texts are sent again, and charged again.
    """
    trusted = time_for_deletion(catalog, Clock())
    return not isinstance(trusted, ClockDoubt) and trusted - batch.submitted_at > ABANDONED_AFTER
