"""Interruption of embedding: which documents wait for the embedder, and for how long.

While a person has to act, or a spending cap is reached, parsing further slices is useless. So all
waiting documents that lack a vector are quarantined at once. The following runs process only
documents that need no embedding: renames, copies, and edits back to a known text.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from rag_assets.common.batches import batched
from rag_assets.common.errors import (
    CapReached,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    WrongShape,
)
from rag_assets.common.failure_kinds import failure_kind
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import Work, parsed_documents, put_off
from rag_assets.storage.catalog.documents.model import Document, Failure
from rag_assets.storage.catalog.documents.status import NEVER

_FIRST_RETRY = timedelta(minutes=1)
_LAST_RETRY = timedelta(hours=1)
_LONGEST_WAIT = timedelta(days=1)
_FOR_A_PERSON = (ProviderRefused, WrongShape)
_BATCH = 2_000


def is_permanent(outage: RagAssetsError) -> bool:
    """Return whether retrying is useless until a person acts or the spending cap is renewed."""
    return isinstance(outage, (*_FOR_A_PERSON, CapReached))


def retry_at(document: Document, outage: RagAssetsError) -> datetime:
    """Return when a document is retried automatically.

    A sync started by a person retries it at once.
    """
    now = datetime.now(UTC)
    if isinstance(outage, _FOR_A_PERSON):
        return NEVER
    if isinstance(outage, CapReached):
        return outage.until or NEVER
    wait = min(_LAST_RETRY, _FIRST_RETRY * (1 << min(document.attempts, 10)))
    if isinstance(outage, ProviderUnavailable) and outage.retry_after is not None:
        # Bounded before the conversion, because a timedelta can overflow.
        seconds = min(outage.retry_after, _LONGEST_WAIT.total_seconds())
        wait = max(wait, timedelta(seconds=seconds))
    return now + wait


def quarantine_waiting(ctx: TenantContext, work: Work, outage: RagAssetsError) -> int:
    """Quarantine all waiting documents that lack a vector, in this slice and later ones.

    Args:
        work: the slice of the current run.
        outage: why no text is embedded.

    Returns:
        The number of documents.
    """
    waiting = ctx.catalog.index.pending(
        ctx.ref.id, work.generation.number, work.config_key, for_superseded_build=work.beside
    )
    quarantined = 0
    for document_ids in batched(waiting, _BATCH):
        documents = ctx.catalog.documents.find(ctx.ref.id, document_ids)
        complete = _complete(ctx, documents)
        failures = [
            Failure(
                d.document_id,
                d.document_key,
                outage.advice,
                failure_kind(outage),
                retry_at(d, outage),
            )
            for d in documents
            if d.document_id not in complete
        ]
        put_off(ctx, work, failures)
        quarantined += len(failures)
    return quarantined


def _complete(ctx: TenantContext, documents: Iterable[Document]) -> set[str]:
    """Return the documents with all chunks and vectors in the lake."""
    parsed = parsed_documents(ctx, documents)
    hashes = ctx.lake.chunk_hashes({item.chunk_set_key for item in parsed})
    texts = {text for of_set in hashes.values() for text in of_set}
    without = ctx.lake.missing_vectors(ctx.embedder.embedder_id, texts)
    return {
        item.document.document_id
        for item in parsed
        if item.chunk_set_key in hashes and without.isdisjoint(hashes[item.chunk_set_key])
    }
