"""Preview of a sync: its work and cost; read-only."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rag_assets.billing.ledger import present_caps
from rag_assets.billing.spending import Cap, cap_that_stops, require_price
from rag_assets.common.errors import BadVectors, InputRejected, ListingFailed
from rag_assets.models.embedding.protocol import PROBE_TEXT
from rag_assets.models.factory import build_embedder
from rag_assets.models.providers.base import LocalEmbedding
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.due_work import DueDocument, MeasuredWork, due_documents, measure
from rag_assets.pipeline.estimates import (
    NOTHING_TO_ESTIMATE,
    Estimate,
    Twice,
    WorkAhead,
    edits_twice,
    estimate,
)
from rag_assets.pipeline.languages import unread_notice
from rag_assets.pipeline.recipes import wanted_build
from rag_assets.pipeline.source_listing import SourceListing
from rag_assets.pipeline.source_plans import (
    Deletions,
    masked_failure,
    plan_removed_sources,
    plan_sources,
    require_any_listed,
)
from rag_assets.privacy.masker import masker_of

_MEASURING_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class Preview:
    """The work and cost of the next sync.

    Attributes:
        parse: contents that would be parsed; the text of the others is in the lake.
        cut: chunk sets that would be made; the others are in the lake.
        failed: documents that would be quarantined.
        chunks: chunks of the documents that would be published.
        embeddings: distinct texts that would be embedded; `tokens` counts the tokens of these
            texts.
        held: documents that vanished and would be kept.
        held_reasons: why they would be kept, one reason per source.
        entries_deleted: entries of removed documents.
        new_generation: whether a new build would be made in addition to the serving build.
        embedder: the embedder that would make the vectors.
        per_million: dollars per million tokens; None if no price is known.
        cost: cost of all tokens, in dollars; None if no price is known.
        batch: whether the provider's batch API would be used.
        waiting: documents that wait for a batch submitted earlier; not counted above.
        unlisted: why sources could not be listed; the other sources were listed.
        cap: the spending cap that would stop the sync before its end.
        preparing_seconds: time that parsing and chunking took for the preview.
        embedding_cpu_seconds: CPU time for all texts that would be embedded, extrapolated from a
            few of them; None if no text is embedded on this machine.
        estimate: duration and disk usage of the sync.
        twice: the cost of edits while two builds are kept up to date.
        unread: a sentence on documents that the embedder does not support; "" if it supports all.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    held: int = 0
    held_reasons: tuple[str, ...] = ()
    documents: int = 0
    parse: int = 0
    cut: int = 0
    failed: int = 0
    chunks: int = 0
    embeddings: int = 0
    reused: int = 0
    tokens: int = 0
    entries_deleted: int = 0
    new_generation: bool = False
    embedder: str = ""
    per_million: float | None = None
    cost: float | None = None
    batch: bool = False
    waiting: int = 0
    unlisted: tuple[str, ...] = ()
    cap: Cap | None = None
    preparing_seconds: float = 0.0
    embedding_cpu_seconds: float | None = None
    estimate: Estimate = NOTHING_TO_ESTIMATE
    twice: Twice | None = None
    unread: str = ""


def preview(ctx: TenantContext) -> Preview:
    """Compute the work of a sync; parse and chunk documents in memory if the lake lacks them.

    Raises:
        ListingFailed: no source could be listed.
        ConfigurationError: spending caps are set, but the price is unknown.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    build = wanted_build(generations, ctx.tenant, ctx.embedder.embedder_id)
    if build is not None and build.pinned:
        ctx = ctx.for_build(build)
    target = None if build is None else build.number
    pending = set(ctx.catalog.index.pending(ctx.ref.id, target or 0, ctx.config_key))
    listings: list[SourceListing] = []
    failures: list[ListingFailed] = []
    deletions: dict[str, Deletions] = {}
    masker = masker_of(ctx.settings.local)
    due: list[DueDocument] = []
    for plan in plan_sources(ctx):
        if plan.error is not None:
            failures.append(masked_failure(plan, masker))
        if plan.listing is not None:
            listings.append(plan.listing)
            deletions[plan.config.name] = plan.deletions
        due += due_documents(ctx, plan, pending)
    require_any_listed(failures, len(ctx.tenant.sources))
    deletions |= {plan.name: plan.deletions for plan in plan_removed_sources(ctx)}
    deleted = [d for ids in ctx.catalog.index.removals(ctx.ref.id).values() for d in ids]
    deleted += [document_id for each in deletions.values() for document_id in each.removed]
    work = measure(ctx, due)
    kinds = [change.kind for listing in listings for change in listing.changes]
    price = require_price(ctx.tenant)
    above = ctx.tenant.embedder.batch_above
    batch = above is not None and work.embeddings > above
    cost = None if price is None else price.of(work.tokens, batch=batch)
    ahead = WorkAhead(
        parsed=work.parse,
        cut=work.cut,
        embedded=work.embeddings,
        written=work.chunks,
        preparing_seconds=work.seconds,
        batch=batch,
    )
    return Preview(
        added=kinds.count("added"),
        changed=kinds.count("changed"),
        removed=sum(len(each.removed) for each in deletions.values()),
        held=sum(len(each.held) for each in deletions.values()),
        held_reasons=tuple(
            masker.text(f"source {name}: {each.reason}")
            for name, each in deletions.items()
            if each.held
        ),
        documents=len(due),
        parse=work.parse,
        cut=work.cut,
        failed=work.failed + kinds.count("rejected"),
        chunks=work.chunks,
        embeddings=work.embeddings,
        reused=work.reused,
        tokens=work.tokens,
        entries_deleted=ctx.catalog.index.entry_count_in_builds(ctx.ref.id, deleted),
        new_generation=bool(generations) and target is None,
        embedder=ctx.embedder.embedder_id,
        per_million=None if price is None else price.of(1_000_000, batch=batch),
        cost=cost,
        batch=batch,
        waiting=ctx.catalog.quarantine.deferred_count(ctx.ref.id),
        unlisted=tuple(failure.message for failure in failures),
        cap=cap_that_stops(present_caps(ctx.catalog, ctx.ref, ctx.tenant, run=0.0), cost or 0.0),
        preparing_seconds=work.seconds,
        embedding_cpu_seconds=_embedding_cpu_seconds(ctx, work),
        estimate=estimate(ctx, generations, ahead),
        twice=edits_twice(
            ctx, generations, build, chunks=work.chunks, documents=len(due), cost=cost
        ),
        unread=unread_notice(ctx.embedder.embedder_id, work.unread, work.read),
    )


def _embedding_cpu_seconds(ctx: TenantContext, work: MeasuredWork) -> float | None:
    """Estimate the CPU time of embedding from a few texts, which takes about a second."""
    if not work.sample or not isinstance(ctx.tenant.embedder.offer, LocalEmbedding):
        return None
    embedder = build_embedder(ctx.tenant.embedder)
    asyncio.run(embedder.embed([PROBE_TEXT]))  # loads the model
    measured = 0
    began, cpu_before = time.monotonic(), time.process_time()
    for text in work.sample:
        with suppress(InputRejected, BadVectors):  # the sync reports such a document
            asyncio.run(embedder.embed([text]))
            measured += 1
        if time.monotonic() - began > _MEASURING_SECONDS:
            break
    cpu_seconds = time.process_time() - cpu_before
    return cpu_seconds / measured * work.embeddings if measured else None
