"""The stage `embeddings`: compute the vectors of the slice's chunks that the lake lacks.

`get_vectors` also embeds texts that systems compare with each other. The lake stores their vectors
like the vectors of chunks, under the same spending caps, as long as the system names the texts (see
FollowUp.kept_texts).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from rag_assets.billing.spending import Ledger
from rag_assets.common.errors import (
    MalformedResponse,
    ProviderError,
    RagAssetsError,
    RequestsStopped,
)
from rag_assets.common.failure_kinds import failure_kind
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.protocol import Vectors
from rag_assets.models.factory import find_price
from rag_assets.pipeline.batches import (
    collect_batches,
    defer_documents,
    map_texts_to_batches,
    submit_batches,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import (
    ParsedDocument,
    SliceWork,
    StageProgress,
    StageTime,
    build_failure,
    compute_retry_time,
    is_permanent,
    postpone_documents,
    quarantine_waiting,
)
from rag_assets.pipeline.versions import list_slice_documents, record_given_up
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.documents.model import Document

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_LARGE_TEXTS = 100
"""A document that lacks more vectors than this is embedded after others of the same urgency."""
_MOST_URGENT_KEY = (0, False)
_FLUSH_ITEMS = 2_000
_FLUSH_SECONDS = 3.0
_PAID_FLUSH_SECONDS = 0.1

_TRANSIENT_KINDS = frozenset({"provider-unavailable", "provider-limits", "bad-response"})


@dataclass(frozen=True, slots=True)
class _WaitingDocument:
    """A document of the slice that lacks vectors, with the text_sha256 of its chunks in order."""

    parsed: ParsedDocument
    texts: tuple[str, ...]

    @property
    def document(self) -> Document:
        return self.parsed.document


@dataclass(frozen=True, slots=True)
class EmbeddingReport:
    """Report on embedding the slice's chunks.

    Attributes:
        embedded, remaining: numbers of texts embedded by this run, and left for the next run.
        reused: number of distinct texts whose vector was already in the lake.
        failed: number of quarantined documents; includes documents of later slices if no more texts
            can be embedded.
        halted: whether embedding is stopped until a person acts or a spending cap renews. Then
            every document that lacks a vector is quarantined, in any slice.
    """

    embedded: int = 0
    reused: int = 0
    collected: int = 0
    submitted: int = 0
    remaining: int = 0
    failed: int = 0
    used: Usage = field(default_factory=Usage)
    promised: float = 0.0
    halted: bool = False
    outage: str | None = None
    remedy: str | None = None
    seconds: float = 0.0


def embed_chunks(ctx: TenantContext, work: SliceWork, *, spent: float = 0.0) -> EmbeddingReport:
    """Embed texts without a vector, and store vectors as they arrive.

    A failing embedder does not fail the stage. Finished vectors are kept, and the affected
    documents are quarantined with the reason. The index stage still handles removals and complete
    documents.

    Raises:
        ConfigurationError: spending caps are set, but the price is unknown.
    """
    started = time.monotonic()
    collected = collect_batches(ctx, ctx.embedder.embedder_id if work.is_superseded else None)
    parsed = list_slice_documents(ctx, work)
    hashes = ctx.lake.read_chunk_hashes({item.chunk_set_key for item in parsed})
    wanted = dict.fromkeys(
        text_sha256 for item in parsed for text_sha256 in hashes.get(item.chunk_set_key, ())
    )
    missing = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, set(wanted))
    report = EmbeddingReport()
    if missing:
        if ctx.lake.store_spooled(ctx.embedder.embedder_id, ctx.embedder.dimensions):
            missing = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, missing)
        waiting = [
            _WaitingDocument(item, texts)
            for item in parsed
            if not missing.isdisjoint(texts := hashes.get(item.chunk_set_key, ()))
        ]
        ledger = Ledger(
            ctx.catalog,
            ctx.ref,
            ctx.tenant,
            ctx.embedder.embedder_id,
            before=spent,
            generation=work.generation.number,
        )
        try:
            report = _embed_or_submit(ctx, work, waiting, missing, ledger, outage=collected.outage)
        finally:
            ledger.close()
    return replace(
        report,
        reused=len(wanted) - len(missing),
        collected=collected.texts,
        seconds=time.monotonic() - started,
    )


def _embed_or_submit(
    ctx: TenantContext,
    work: SliceWork,
    waiting: Sequence[_WaitingDocument],
    missing: set[str],
    ledger: Ledger,
    *,
    outage: RequestsStopped | None,
) -> EmbeddingReport:
    """Embed texts immediately or submit them as a batch; texts already in batches wait."""
    items_of = partial(_build_items, ctx, waiting)
    outage = outage or submit_batches(ctx, missing, items_of, ledger.budget)
    submitted = missing & map_texts_to_batches(ctx).keys()
    at_once = [item for item in waiting if missing.intersection(item.texts) - submitted]
    if outage is not None:
        report = _report_halt(ctx, work, at_once, outage)
    elif at_once:
        report = _embed_texts(ctx, work, at_once, missing - submitted, ledger)
    else:
        report = EmbeddingReport()
    if submitted:
        without = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, missing)
        lacking = [(item.document, without.intersection(item.texts)) for item in waiting]
        defer_documents(ctx, work, lacking)
    return replace(report, submitted=len(submitted), promised=ledger.promised)


def _embed_texts(
    ctx: TenantContext,
    work: SliceWork,
    waiting: Sequence[_WaitingDocument],
    missing: set[str],
    ledger: Ledger,
) -> EmbeddingReport:
    progress = StageProgress("embeddings", len(missing), ctx.log)
    embedder_id = ctx.embedder.embedder_id
    waiting = sorted(waiting, key=partial(_get_sort_key, missing))
    items = _build_items(ctx, waiting, missing)
    order = {item.document.document_id: _get_sort_key(missing, item) for item in waiting}
    is_hurried = work.is_serving and any(
        order.get(document.document_id, (document.urgency, False)) == _MOST_URGENT_KEY
        for document in work.documents
    )
    stage = StageTime(ctx, ctx.limits.embed_seconds, is_hurried=is_hurried)
    urgent = {
        text
        for item in waiting
        if order[item.document.document_id] == _MOST_URGENT_KEY
        for text in item.texts
    }

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        # Store the vectors before their price, so that a crash in between loses no vector that was
        # paid for.
        ctx.lake.append_vectors(embedder_id, keys, vectors)
        ledger.record()

    started = time.monotonic()
    try:
        outcome = asyncio.run(
            embed_all(
                ctx.embedder,
                items,
                keep=keep,
                flush_items=_FLUSH_ITEMS,
                flush_seconds=_compute_max_wait_seconds(ctx),
                deadline=stage.deadline,
                is_put_off=lambda text: stage.is_over(is_urgent=text in urgent),
                is_bulk=lambda text: not work.is_serving or text not in urgent,
                progress=progress.set_count,
                budget=ledger.budget,
                spool=ctx.lake.spool(embedder_id, ctx.embedder.dimensions),
                probe_first=any(item.document.error_kind in _TRANSIENT_KINDS for item in waiting),
            )
        )
    except MalformedResponse as error:
        failed = _fail_incomplete_documents(ctx, work, waiting, {}, error)
        return _report_stop(ctx, work, error, EmbeddingReport(failed=failed, used=ledger.total))
    progress.finish()
    if outcome.embedded:
        seconds = time.monotonic() - started
        number = work.generation.number
        ctx.catalog.pace.record_embedding(ctx.ref, number, outcome.embedded, seconds)
    failed = _fail_incomplete_documents(ctx, work, waiting, outcome.rejected, outcome.outage)
    report = EmbeddingReport(
        embedded=outcome.embedded, remaining=outcome.remaining, failed=failed, used=ledger.total
    )
    return report if outcome.outage is None else _report_stop(ctx, work, outcome.outage, report)


def _get_sort_key(missing: Set[str], item: _WaitingDocument) -> tuple[int, bool]:
    """Return the sort key of a waiting document: urgent documents first, then small ones.

    A document that takes longer than one slice is embedded over several slices; in each, smaller
    documents of the same urgency are embedded first.
    """
    lacking = sum(text in missing for text in item.texts)
    return item.document.urgency, lacking > _LARGE_TEXTS


def _report_halt(
    ctx: TenantContext,
    work: SliceWork,
    waiting: Sequence[_WaitingDocument],
    outage: RequestsStopped,
) -> EmbeddingReport:
    """Quarantine the documents that lack a vector, and report that no request may be sent."""
    failed = _fail_incomplete_documents(ctx, work, waiting, {}, outage)
    return _report_stop(ctx, work, outage, EmbeddingReport(failed=failed))


def _report_stop(
    ctx: TenantContext, work: SliceWork, outage: ProviderError, report: EmbeddingReport
) -> EmbeddingReport:
    """Report an outage; if retrying is useless, quarantine the waiting documents of all slices."""
    quarantined = quarantine_waiting(ctx, work, outage) if is_permanent(outage) else 0
    return replace(
        report,
        failed=report.failed + quarantined,
        halted=is_permanent(outage),
        outage=outage.message,
        remedy=outage.hint,
    )


def _compute_max_wait_seconds(ctx: TenantContext) -> float:
    """Return how many seconds a vector may wait to be written together with others.

    A crash loses waiting vectors. Vectors of a local model cost no money, so for them few and large
    writes are better. Paid vectors wait for less time than a request takes, so that a crash loses
    at most the requests in flight.
    """
    price = find_price(ctx.tenant.embedder)
    free = price is not None and not price.per_million
    return _FLUSH_SECONDS if free else _PAID_FLUSH_SECONDS


def _build_items(
    ctx: TenantContext, waiting: Sequence[_WaitingDocument], missing: Set[str]
) -> list[EmbedItem]:
    titles = {item.parsed.chunk_set_key: item.parsed.title for item in waiting}
    rows = ctx.lake.chunk_sets(set(titles))
    items: dict[str, EmbedItem] = {}
    for key, title in titles.items():
        for chunk in rows[key].chunks:
            if chunk.text_sha256 in missing:
                item = EmbedItem(chunk.text_sha256, chunk.build_embedding_text(title))
                items.setdefault(chunk.text_sha256, item)
    return list(items.values())


def _fail_incomplete_documents(
    ctx: TenantContext,
    work: SliceWork,
    waiting: Sequence[_WaitingDocument],
    rejected: Mapping[str, str],
    outage: RagAssetsError | None,
) -> int:
    """Quarantine documents with texts that were refused or not embedded; return how many."""
    if not rejected and outage is None:
        return 0
    texts = {text for item in waiting for text in item.texts}
    without = ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, texts)
    failures = []
    for item in waiting:
        lacking = [text for text in item.texts if text in without]
        refused = _find_refusal(item.texts, rejected)
        former = item.parsed.former
        if refused is not None and former is not None:
            record_given_up(ctx, work, item.document.document_id, former.document_key)
        elif refused is not None:
            failures.append(build_failure(item.document, refused, "text-rejected"))
        elif lacking and outage is not None:
            retry_at = compute_retry_time(item.document, outage)
            failures.append(
                build_failure(item.document, outage.advice, failure_kind(outage), retry_at)
            )
    postpone_documents(ctx, work, failures)
    return len(failures)


def _find_refusal(texts: Sequence[str], rejected: Mapping[str, str]) -> str | None:
    """Return a sentence on the first text that the embedder refused; None if it refused none."""
    for number, text in enumerate(texts, start=1):
        if text in rejected:
            return f"chunk {number} of {len(texts)}: {rejected[text]}"
    return None


def get_vectors(
    ctx: TenantContext, generation: Generation, texts: Mapping[str, str]
) -> tuple[dict[str, npt.NDArray[np.float32]], str | None]:
    """Return unit vectors of texts by hash, and why some are missing (None if none is).

    The build's embedder makes missing vectors, and the lake stores them.
    """
    import numpy as np

    embedder_id = ctx.embedder.embedder_id
    ctx.lake.store_spooled(embedder_id, ctx.embedder.dimensions)
    missing = ctx.lake.find_missing_vectors(embedder_id, set(texts))
    reason = _embed_kept_texts(
        ctx, generation, {key: texts[key] for key in texts if key in missing}
    )
    stored = ctx.lake.vectors(embedder_id, set(texts))
    units = stored.vectors / np.maximum(
        np.linalg.norm(stored.vectors, axis=1, keepdims=True), 1e-12
    )
    return dict(zip(stored.hashes, units, strict=True)), reason


def _embed_kept_texts(
    ctx: TenantContext, generation: Generation, texts: Mapping[str, str]
) -> str | None:
    """Embed texts and store their vectors; return why some were not embedded, else None."""
    if not texts:
        return None
    embedder_id = ctx.embedder.embedder_id
    ledger = Ledger(ctx.catalog, ctx.ref, ctx.tenant, embedder_id, generation=generation.number)

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        # Store the vectors before their price, as for chunks.
        ctx.lake.append_vectors(embedder_id, keys, vectors)
        ledger.record()

    try:
        outcome = asyncio.run(
            embed_all(
                ctx.embedder,
                [EmbedItem(key, text) for key, text in texts.items()],
                keep=keep,
                deadline=time.monotonic() + ctx.limits.embed_seconds,
                budget=ledger.budget,
                spool=ctx.lake.spool(embedder_id, ctx.embedder.dimensions),
            )
        )
    except MalformedResponse as error:
        return error.advice
    finally:
        ledger.close()
    if outcome.outage is not None:
        return outcome.outage.advice
    return next(iter(outcome.rejected.values()), None)
