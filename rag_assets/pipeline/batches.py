"""Texts in a provider's batch API: submit them, poll the batches, and fetch the vectors.

    SUBMITTING → UNDER_WAY → ENDED → COLLECTED, or FAILED from any of them

A batch is recorded before it is submitted, with a tag that the provider stores; after a crash in
between, the next run looks up the tag. Documents that lack only texts in batches are deferred until
their batch has ended. Texts are not sent again while their batch runs.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from rag_assets.billing.embedders import Embedders
from rag_assets.billing.spending import Spending, build_usage
from rag_assets.common.clock import Clock
from rag_assets.common.errors import (
    BadVectors,
    BatchLost,
    MalformedResponse,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    RagAssetsError,
    RequestsStopped,
    TenantGone,
)
from rag_assets.common.formatting import format_count
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.protocol import Charge, Vectors
from rag_assets.models.embedding.remote import (
    ABANDONED_AFTER,
    BATCH_WINDOW,
    BatchApi,
    BatchResult,
    BatchStatus,
    run_and_close,
    split_into_batches,
)
from rag_assets.models.embedding.vectors import validate_vectors
from rag_assets.models.factory import find_price
from rag_assets.models.prices import split_embedder_id
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import SliceWork, build_failure, postpone_documents
from rag_assets.storage.catalog.builds.batches import (
    FETCH_RETRY_INTERVAL,
    EmbeddingBatch,
    is_poll_due,
)
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.model import Document, Failure

_GIVE_UP_AFTER = BATCH_WINDOW + timedelta(hours=1)
_FIRST_PAUSE = timedelta(minutes=1)
_MAX_PAUSE = timedelta(hours=1)

_MAX_SUBMISSION_TIME = timedelta(hours=1)
"""No submission takes longer than this."""
LISTED_AFTER = timedelta(minutes=2)
"""A provider lists a new batch within this time."""
_NOT_LISTED = "the provider's list of batches does not contain it; it will be looked up again"
_MAX_CONCURRENT_POLLS = 8
_GROUP_TEXTS = 1_000


def submit_batches(
    ctx: TenantContext,
    missing: Set[str],
    items_of: Callable[[Set[str]], list[EmbedItem]],
    budget: Spending,
) -> RequestsStopped | None:
    """Submit the missing texts of a slice as batches, if there are more than batch_above.

    Texts in open batches are not sent again. Texts over the token limit are left for the embedder
    to reject. Return why the provider did not accept all texts; None if it accepted all.
    """
    above = ctx.tenant.embedder.batch_above
    lacking = missing - set(map_texts_to_batches(ctx))
    if above is None or len(lacking) <= above:
        return None
    items = items_of(lacking)
    counts = ctx.embedder.count_tokens([item.text for item in items])
    max_tokens = ctx.embedder.limits.input_tokens
    tokens_of = {
        item: count
        for item, count in zip(items, counts, strict=True)
        if not max_tokens or count <= max_tokens
    }
    if len(tokens_of) <= above:
        return None
    try:
        _require_no_fresh_failure(ctx)
        for group in split_into_batches(list(tokens_of)):
            _submit_batch(ctx, group, sum(tokens_of[item] for item in group), budget)
    except RequestsStopped as error:
        return error
    return None


def map_texts_to_batches(ctx: TenantContext) -> dict[str, int]:
    """Return the id of the open batch that contains each text, by text_sha256."""
    batches = ctx.catalog.batches.text_hashes(ctx.ref.id, ctx.embedder.embedder_id)
    return {key: id_ for id_, keys in batches.items() for key in keys}


def defer_documents(
    ctx: TenantContext, work: SliceWork, waiting: Iterable[tuple[Document, Set[str]]]
) -> None:
    """Defer the documents whose missing vectors are all in open batches."""
    submitted = map_texts_to_batches(ctx)
    if not submitted:
        return
    batches = {batch.id: batch for batch in ctx.catalog.batches.list_open(ctx.ref.id)}
    waits = []
    for document, lacking in waiting:
        if lacking and lacking <= submitted.keys():
            last = max((batches[submitted[text]] for text in lacking), key=lambda b: b.submitted_at)
            waits.append(_build_batch_failure(document, last))
    postpone_documents(ctx, work, waits, is_deferred=True)


def _build_batch_failure(document: Document, batch: EmbeddingBatch) -> Failure:
    hours = BATCH_WINDOW.total_seconds() / 3600
    problem = f"; its last poll failed: {batch.error}" if batch.error else ""
    reason = (
        f"its texts are in batch {batch.batch_id} of {split_embedder_id(batch.embedder_id)[0]},"
        f" submitted {batch.submitted_at:%Y-%m-%d %H:%M} UTC, which takes up to {hours:.0f} hours"
        f"{problem}"
    )
    # A batch may be late, or its results unavailable: never retry immediately.
    retry_at = max(batch.submitted_at + _GIVE_UP_AFTER, datetime.now(UTC) + FETCH_RETRY_INTERVAL)
    return build_failure(document, reason, "queued", retry_at)


def _submit_batch(
    ctx: TenantContext, items: Sequence[EmbedItem], tokens: int, budget: Spending
) -> None:
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
    ctx.log(f"embeddings: {format_count(len(items), 'text')} in batch {batch_id}")


def _require_no_fresh_failure(ctx: TenantContext) -> None:
    """Raise ProviderUnavailable during the pause after failures, which each failure prolongs."""
    failures = ctx.catalog.batches.failures(ctx.ref.id, ctx.embedder.embedder_id)
    if failures is None:
        return
    pause = min(_MAX_PAUSE, _FIRST_PAUSE * (1 << min(failures.count - 1, 10)))
    seconds_left = (failures.last_at + pause - datetime.now(UTC)).total_seconds()
    if seconds_left > 0:
        raise ProviderUnavailable(
            f"the provider's batch failed: {failures.error}",
            hint="wait for the next attempt, or remove embedder.batch_above to send texts without"
            " batches",
            retry_after=seconds_left,
        )


async def recover_submission(
    catalog: Catalog, api: BatchApi, batch: EmbeddingBatch, *, is_locked: bool
) -> bool:
    """Find out whether an interrupted submission was accepted; return whether that is now known.

    A provider's list may lack new batches, so a submission counts as not accepted only after the
    list has lacked it twice.

    Args:
        is_locked: whether the caller holds the tenant's lock, so that no other run can be
            submitting the batch now.
    """
    batch_id = await api.find(batch.tag, batch.submitted_at - _MAX_SUBMISSION_TIME)
    now = datetime.now(UTC)
    if batch_id is not None:
        catalog.batches.mark_submitted(batch.ref, batch.id, batch_id)
        return True
    if not is_locked and now - batch.submitted_at <= _MAX_SUBMISSION_TIME:
        return False
    if batch.error != _NOT_LISTED:
        catalog.batches.mark_polled(batch.ref, batch.id, _NOT_LISTED)
        return False
    if now - batch.polled_at < LISTED_AFTER:
        return False
    catalog.batches.delete(batch.ref, batch.id)
    catalog.quarantine.release(batch.ref)
    return True


def poll_batches(
    catalog: Catalog, embedders: Embedders, batches: Iterable[EmbeddingBatch]
) -> list[str]:
    """Poll open batches, release the documents of finished ones, and return failures as lines."""
    batches = list(batches)
    if not batches:
        return []

    async def poll_all() -> list[str | None]:
        room = asyncio.Semaphore(_MAX_CONCURRENT_POLLS)

        async def poll_with_semaphore(batch: EmbeddingBatch) -> str | None:
            async with room:
                return await _poll_batch(catalog, embedders, batch)

        return await asyncio.gather(*(poll_with_semaphore(batch) for batch in batches))

    return [problem for problem in asyncio.run(poll_all()) if problem is not None]


def choose_due_batches(
    batches: Iterable[EmbeddingBatch], now: datetime, limit: int
) -> list[EmbeddingBatch]:
    """Return at most `limit` batches to poll now, least recently polled first."""
    ready = [batch for batch in batches if is_poll_due(batch, now)]
    return sorted(ready, key=lambda batch: batch.polled_at)[:limit]


async def _poll_batch(catalog: Catalog, embedders: Embedders, batch: EmbeddingBatch) -> str | None:
    try:
        api = embedders.batch_api(batch.ref, EmbedderConfig.model_validate(batch.embedder))
        if batch.state == "SUBMITTING":
            await run_and_close(api, recover_submission(catalog, api, batch, is_locked=False))
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
    """Return whether a batch has been open for so long that its texts are sent again."""
    trusted = get_deletion_time(catalog, Clock())
    return not isinstance(trusted, ClockDoubt) and trusted - batch.submitted_at > ABANDONED_AFTER


@dataclass(frozen=True, slots=True)
class CollectionResult:
    """The result of fetching ended batches; `outage` says why no request may be sent for now."""

    texts: int = 0
    outage: RequestsStopped | None = None

    def __add__(self, other: CollectionResult) -> CollectionResult:
        return CollectionResult(self.texts + other.texts, self.outage or other.outage)


def collect_batches(ctx: TenantContext, embedder_id: str | None = None) -> CollectionResult:
    """Fetch ended batches, of one embedder or of all, and resolve interrupted submissions."""
    result = CollectionResult()
    for batch in ctx.catalog.batches.list_open(ctx.ref.id):
        if embedder_id not in {None, batch.embedder_id}:
            continue
        try:
            if batch.state == "SUBMITTING":
                _resolve_submission(ctx, batch)
            elif batch.state == "ENDED":
                result += _fetch_vectors(ctx, batch)
        except ProviderError as error:
            # Texts that may still be in flight, or whose results were unusable, must not be sent
            # again.
            halt = (
                error
                if isinstance(error, RequestsStopped)
                else ProviderUnavailable(error.message, hint=error.hint)
            )
            result += CollectionResult(outage=halt)
    return result


def _resolve_submission(ctx: TenantContext, batch: EmbeddingBatch) -> None:
    """Find out whether an interrupted submission was accepted, before sending anything else."""
    api = ctx.batch_api(EmbedderConfig.model_validate(batch.embedder))
    if not asyncio.run(
        run_and_close(api, recover_submission(ctx.catalog, api, batch, is_locked=True))
    ):
        raise ProviderUnavailable(
            "the submission of a batch was interrupted, and the provider may have accepted it",
            hint="wait: the batch is looked up again before its texts are sent again",
            retry_after=LISTED_AFTER.total_seconds(),
        )


def _fetch_vectors(ctx: TenantContext, batch: EmbeddingBatch) -> CollectionResult:
    """Fetch the vectors of an ended batch, and write them into the lake; this can be repeated."""
    api = ctx.batch_api(EmbedderConfig.model_validate(batch.embedder))
    keys = ctx.catalog.batches.text_hashes(ctx.ref.id, batch.embedder_id)[batch.id]
    wanted = ctx.lake.find_missing_vectors(batch.embedder_id, keys)
    fetching = _BatchFetch(ctx, batch, keys, wanted, api.dimensions)
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
        return CollectionResult()
    except RequestsStopped as error:
        # The batch can be fetched later, and its texts are not sent again: other work continues.
        ctx.catalog.batches.mark_polled(ctx.ref, batch.id, error.advice)
        ctx.log(f"embeddings: batch {batch.batch_id} cannot be fetched: {error.advice}")
        return CollectionResult()
    if not fetching.texts and fetching.refused:
        ctx.catalog.batches.mark_failed(ctx.ref, batch.id, "the provider refused every text")
        return CollectionResult()
    cost = _charge(ctx, batch, fetching.tokens, fetching.texts)
    ctx.catalog.batches.mark_collected(ctx.ref, batch.id, tokens=fetching.tokens, cost=cost)
    ctx.log(f"embeddings: {format_count(fetching.texts, 'vector')} from batch {batch.batch_id}")
    return CollectionResult(fetching.texts)


def _charge(ctx: TenantContext, batch: EmbeddingBatch, tokens: int, texts: int) -> float | None:
    """Record the cost of a batch; return it in dollars, or None if no price is known."""
    price = find_price(EmbedderConfig.model_validate(batch.embedder))
    used = build_usage(Charge(tokens, 1, texts), price, is_batch=True)
    # The batch may have been submitted for any build with this embedder; the newest is charged.
    generation_numbers = [
        generation.number
        for generation in ctx.catalog.generations.live(ctx.ref.id)
        if generation.embedder_id == batch.embedder_id
    ]
    ctx.catalog.usage.add(
        ctx.ref,
        *split_embedder_id(batch.embedder_id),
        used,
        generation=max(generation_numbers, default=None),
    )
    return None if price is None else used.cost


class _BatchFetch:
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
        self._wanted_keys = wanted
        self._dimensions = dimensions
        self._keys: list[str] = []
        self._vectors: list[Vectors] = []
        self._error: BadVectors | None = None
        self.texts = self.tokens = self.refused = 0

    async def run(self, api: BatchApi) -> None:
        """Store every result; texts without a valid vector are sent again, outside of a batch.

        If no vector is valid, or the file is malformed, raise MalformedResponse. Vectors that were
        read before the error are kept, because they are charged.
        """
        try:
            async for result in api.results(self._batch.batch_id or ""):
                self._take_result(result)
            if self._error is not None and not self.texts:
                raise self._error
        finally:
            self._write_vectors()

    def _take_result(self, result: BatchResult) -> None:
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
        if result.key in self._wanted_keys:
            self._keys.append(result.key)
            self._vectors.append(vectors)
        if len(self._keys) >= _GROUP_TEXTS:
            self._write_vectors()

    def _write_vectors(self) -> None:
        if not self._keys:
            return
        keys, vectors = self._keys, np.concatenate(self._vectors)
        self._keys, self._vectors = [], []
        self._ctx.lake.append_vectors(self._batch.embedder_id, keys, vectors)
