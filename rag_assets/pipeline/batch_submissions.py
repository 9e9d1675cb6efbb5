"""Recover submissions of batches that were interrupted before their outcome was recorded."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from rag_assets.models.embedding.batch_api import BatchApi
from rag_assets.storage.catalog.builds.batches import EmbeddingBatch
from rag_assets.storage.catalog.catalog import Catalog

_SUBMISSION = timedelta(hours=1)
"""No submission takes longer than this."""
LISTED_AFTER = timedelta(minutes=2)
"""A provider lists a new batch within this time."""
_NOT_LISTED = "the provider's list of batches does not contain it; it will be looked up again"


async def recover(catalog: Catalog, api: BatchApi, batch: EmbeddingBatch, *, locked: bool) -> bool:
    """Find out whether an interrupted submission was accepted; return whether that is now known.

    A provider's list may lack new batches, so a submission counts as not accepted only after the
    list has lacked it twice.

    Args:
        catalog: records the batch.
        api: batch API of the batch's provider.
        batch: a batch in state SUBMITTING.
        locked: whether the caller holds the tenant's lock, so that no other run can be submitting
            the batch at the same time.
    """
    batch_id = await api.find(batch.tag, batch.submitted_at - _SUBMISSION)
    now = datetime.now(UTC)
    if batch_id is not None:
        catalog.batches.mark_submitted(batch.ref, batch.id, batch_id)
        return True
    if not locked and now - batch.submitted_at <= _SUBMISSION:
        return False
    if batch.error != _NOT_LISTED:
        catalog.batches.mark_polled(batch.ref, batch.id, _NOT_LISTED)
        return False
    if now - batch.polled_at < LISTED_AFTER:
        return False
    catalog.batches.delete(batch.ref, batch.id)
    catalog.quarantine.release(batch.ref)
    return True
