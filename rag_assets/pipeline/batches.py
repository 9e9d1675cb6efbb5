"""Submit texts to a provider's batch API; they are not sent again while their batch runs.

    SUBMITTING → UNDER_WAY → ENDED → COLLECTED, or FAILED from any of them

A batch is recorded before it is submitted, with a tag that the provider stores; after a crash in
between, the next run looks up the tag. Documents that lack only texts in batches are deferred until
their batch has ended. batch_states.py polls it, batch_results.py fetches its vectors.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import UTC, datetime, timedelta

from rag_assets.billing.spending import Spending
from rag_assets.common.errors import (
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RequestsStopped,
)
from rag_assets.common.formatting import counted
from rag_assets.models.embedding.batch_api import BATCH_WINDOW, run_and_close, split_into_batches
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.prices import split_embedder_id
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import Work, put_off
from rag_assets.storage.catalog.builds.batches import FETCH_RETRY_INTERVAL, EmbeddingBatch
from rag_assets.storage.catalog.documents.model import Document, Failure

_GIVE_UP = BATCH_WINDOW + timedelta(hours=1)
_FIRST_PAUSE = timedelta(minutes=1)
_LONGEST_PAUSE = timedelta(hours=1)


def submit_batches(
    ctx: TenantContext,
    missing: Set[str],
    items_of: Callable[[Set[str]], list[EmbedItem]],
    budget: Spending,
) -> RequestsStopped | None:
    """Submit the missing texts of a slice as batches, if there are more than batch_above.

    Texts in open batches are not sent again. Texts over the token limit are left for the embedder
    to reject.

    Args:
        ctx: the tenant's context, under its lock, with finished batches collected.
        missing: text_sha256 of texts without a vector.
        items_of: reads texts.
        budget: reserves their price.

    Returns:
        Why the provider accepted no text or only some of them; else None.
    """
    above = ctx.tenant.embedder.batch_above
    lacking = missing - set(texts_in_batches(ctx))
    if above is None or len(lacking) <= above:
        return None
    items = items_of(lacking)
    counts = ctx.embedder.count_tokens([item.text for item in items])
    most = ctx.embedder.limits.input_tokens
    tokens_of = {
        item: count for item, count in zip(items, counts, strict=True) if not most or count <= most
    }
    if len(tokens_of) <= above:
        return None
    try:
        _require_no_fresh_failure(ctx)
        for group in split_into_batches(list(tokens_of)):
            _submit(ctx, group, sum(tokens_of[item] for item in group), budget)
    except RequestsStopped as error:
        return error
    return None


def texts_in_batches(ctx: TenantContext) -> dict[str, int]:
    """Return the texts in open batches, mapped to the id of their batch."""
    batches = ctx.catalog.batches.text_hashes(ctx.ref.id, ctx.embedder.embedder_id)
    return {key: id_ for id_, keys in batches.items() for key in keys}


def defer_documents(
    ctx: TenantContext, work: Work, waiting: Iterable[tuple[Document, Set[str]]]
) -> int:
    """Defer documents whose missing vectors are all in open batches; return how many.

    Args:
        work: the slice that the documents belong to.
        waiting: documents, each with the text_sha256 of its texts without a vector, if any.
    """
    submitted = texts_in_batches(ctx)
    if not submitted:
        return 0
    batches = {batch.id: batch for batch in ctx.catalog.batches.list_open(ctx.ref.id)}
    waits = []
    for document, lacking in waiting:
        if lacking and lacking <= submitted.keys():
            last = max((batches[submitted[text]] for text in lacking), key=lambda b: b.submitted_at)
            waits.append(_wait_for_batch(document, last))
    put_off(ctx, work, waits, deferred=True)
    return len(waits)


def _wait_for_batch(document: Document, batch: EmbeddingBatch) -> Failure:
    hours = BATCH_WINDOW.total_seconds() / 3600
    problem = f"; its last poll failed: {batch.error}" if batch.error else ""
    return Failure(
        document.document_id,
        document.document_key,
        f"its texts are in batch {batch.batch_id} of {split_embedder_id(batch.embedder_id)[0]},"
        f" submitted {batch.submitted_at:%Y-%m-%d %H:%M} UTC, which takes up to {hours:.0f} hours"
        f"{problem}",
        "queued",
        # A batch may be late, or its results unavailable: never retry immediately.
        max(batch.submitted_at + _GIVE_UP, datetime.now(UTC) + FETCH_RETRY_INTERVAL),
    )


def _submit(ctx: TenantContext, items: Sequence[EmbedItem], tokens: int, budget: Spending) -> None:
    cost = budget.promise(tokens)
    tag = uuid.uuid4().hex
    api = ctx.batch_api(ctx.tenant.embedder)
    ctx.guard()
    id_ = ctx.catalog.batches.begin(
        ctx.ref,
        tag=tag,
        embedder_id=ctx.embedder.embedder_id,
        embedder=ctx.tenant.embedder.model_dump(mode="json", exclude_none=True),
        keys=[item.key for item in items],
        tokens=tokens,
        cost=cost,
    )
    try:
        batch_id = asyncio.run(run_and_close(api, api.submit(items, tag)))
    except ProviderUnavailable:
        # The provider may have accepted the batch: the next run looks up its tag.
        raise
    except ProviderError as error:
        ctx.catalog.batches.delete(ctx.ref, id_)
        if isinstance(error, RequestsStopped):
            raise
        raise ProviderRefused(f"the provider rejected a batch: {error.message}") from None
    ctx.catalog.batches.mark_submitted(ctx.ref, id_, batch_id)
    ctx.log(f"embeddings: {counted(len(items), 'text')} in batch {batch_id}")


def _require_no_fresh_failure(ctx: TenantContext) -> None:
    """Require that the waiting time after failed batches is over; it grows with each failure.

    Raises:
        ProviderUnavailable: the waiting time is not over.
    """
    failures = ctx.catalog.batches.failures(ctx.ref.id, ctx.embedder.embedder_id)
    if failures is None:
        return
    pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * (1 << min(failures.count - 1, 10)))
    left = (failures.last_at + pause - datetime.now(UTC)).total_seconds()
    if left > 0:
        raise ProviderUnavailable(
            f"the provider's batch failed: {failures.error}",
            hint="wait for the next attempt, or remove embedder.batch_above to send texts without"
            " batches",
            retry_after=left,
        )
