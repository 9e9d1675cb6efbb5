"""Preview of a sync: its documents, work and cost, measured in memory; read-only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from rag_assets.billing.spending import Cap, find_present_caps, find_stopping_cap, require_price
from rag_assets.common.batches import batched
from rag_assets.common.errors import BadVectors, InputRejected, ListingFailed
from rag_assets.ingest.chunking.chunk_set import chunk_document, compute_chunk_set_key
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.parsing.model import ParsedText, compute_parsed_digest
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import compute_parse_key
from rag_assets.ingest.sources.model import DocumentSource, ListedPaths, parse_path
from rag_assets.ingest.workers.pool import ParseTask
from rag_assets.models.embedding.protocol import PROBE_TEXT
from rag_assets.models.factory import build_embedder
from rag_assets.models.providers.base import LocalEmbedding
from rag_assets.pipeline.batches import map_texts_to_batches
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.estimates import (
    NOTHING_TO_ESTIMATE,
    DoubleEditCost,
    Estimate,
    MeasuredWork,
    estimate_double_edits,
    estimate_sync,
)
from rag_assets.pipeline.languages import UnreadDocuments, describe_unread
from rag_assets.pipeline.recipes import find_wanted_build
from rag_assets.pipeline.source_listing import SourceListing
from rag_assets.pipeline.source_plans import (
    Deletions,
    SourcePlan,
    mask_failure,
    plan_removed_sources,
    plan_sources,
    require_any_listed,
)
from rag_assets.privacy.masker import get_masker

_BATCH_TEXTS = 200
_SAMPLED_TEXTS = 8
"""Number of texts that a plan embeds to measure their CPU time."""

_MEASURING_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True)
class PendingDocument:
    """A document that the next sync would work on."""

    source: DocumentSource
    source_type: str
    path: str
    uri: str
    media_type: str | None
    options: ParseOptions
    content_sha256: str
    edition: int = 0

    @property
    def parse_key(self) -> str:
        """Return the key of the document's text in the lake."""
        return compute_parse_key(self.content_sha256, self.media_type, self.options, self.edition)


class _TextCounter:
    """Counts distinct texts, and how many of them have no vector and are in no open batch."""

    def __init__(self, ctx: TenantContext) -> None:
        self._ctx = ctx
        self._counted_hashes: set[str] = set()
        self._under_way = set(map_texts_to_batches(ctx))
        self.missing = self.tokens = 0
        self.unread = UnreadDocuments(ctx.embedder)
        self._sample: dict[str, str] = {}

    def count(self, texts: dict[str, str | None]) -> None:
        """Count texts by hash; the text is None if its content is not needed."""
        new = {key: text for key, text in texts.items() if key not in self._counted_hashes}
        self._counted_hashes |= set(new)
        without = self._ctx.lake.find_missing_vectors(self._ctx.embedder.embedder_id, set(new))
        without -= self._under_way
        self.missing += len(without)
        lacking = {key: text for key, text in new.items() if key in without and text is not None}
        if lacking:
            self.tokens += sum(self._ctx.embedder.count_tokens([*lacking.values()]))
            # Sorting texts by their hash gives a random sample that is the same in every plan.
            self._sample = dict(sorted((self._sample | lacking).items())[:_SAMPLED_TEXTS])

    @property
    def sample(self) -> tuple[str, ...]:
        """Return a few of the texts without a vector."""
        return tuple(self._sample.values())

    @property
    def distinct_count(self) -> int:
        """Return the number of distinct texts."""
        return len(self._counted_hashes)


def iter_due_documents(
    ctx: TenantContext, plan: SourcePlan, pending: set[str]
) -> Iterator[PendingDocument]:
    """Yield the documents of a source that the next sync works on."""
    source = plan.source
    changes = () if plan.listing is None else plan.listing.changes
    for change in changes:
        if change.kind in {"added", "changed"} and change.content_sha256 is not None:
            listed = change.document
            yield PendingDocument(
                source,
                *(listed.source_type, listed.path, listed.uri, listed.media_type),
                ctx.parse_options,
                change.content_sha256,
            )
    # A document that was only touched keeps its content, but may still be pending.
    changed_ids = {change.document.document_id for change in changes if change.kind != "touched"}
    vanished = frozenset() if plan.listing is None else plan.listing.removed
    paths = ListedPaths(source)
    waiting = sorted(pending - changed_ids - vanished)
    for row in ctx.catalog.documents.find(ctx.ref.id, waiting):
        if row.source == source.name and row.content_sha256 is not None:
            yield PendingDocument(
                source,
                row.source_type,
                paths.find_path(row.document_id, row.path),
                row.uri,
                row.media_type,
                ctx.parse_options,
                row.content_sha256,
                row.reindex_requests,
            )


def measure_work(ctx: TenantContext, due: Sequence[PendingDocument]) -> MeasuredWork:
    """Measure the work on documents; parse and chunk in memory the texts that the lake lacks."""
    started = time.monotonic()
    by_key: dict[str, list[PendingDocument]] = {}
    for item in due:
        by_key.setdefault(item.parse_key, []).append(item)
    texts = _TextCounter(ctx)
    parse = failed = chunks = cut = 0
    with ctx.worker_pool() as pool:
        for keys in batched(by_key, _BATCH_TEXTS):
            missing = ctx.lake.find_missing_parsed(keys)
            parse += len(missing)
            stored = {key: by_key[key] for key in keys if key not in missing}
            measured = _measure_stored(ctx, stored, texts)
            chunks, cut = chunks + measured.chunks, cut + measured.cut
            tasks = (_build_task(key, by_key[key][0]) for key in keys if key in missing)
            for outcome in pool.map(tasks):
                if isinstance(outcome.result, ParsedText):
                    ways = _list_chunk_parameters(
                        ctx, by_key[outcome.key], outcome.result.media_type
                    )
                    chunks += _measure_parsed(outcome.result, ways, texts)
                    cut += len(ways)
                else:
                    failed += 1
    return MeasuredWork(
        parse=parse,
        cut=cut,
        failed=failed,
        chunks=chunks,
        embeddings=texts.missing,
        reused=texts.distinct_count - texts.missing,
        tokens=texts.tokens,
        seconds=time.monotonic() - started,
        read=texts.unread.documents,
        unread=dict(texts.unread.by_language),
        sample=texts.sample,
    )


def _measure_stored(
    ctx: TenantContext, due: Mapping[str, list[PendingDocument]], texts: _TextCounter
) -> MeasuredWork:
    """Measure the work on documents whose text is in the lake; read or make their chunks."""
    heads = ctx.lake.read_parsed_heads(list(due))
    wanted = {
        compute_chunk_set_key(head.digest, head.media_type, chosen): (key, chosen)
        for key, head in heads.items()
        for chosen in _list_chunk_parameters(ctx, due[key], head.media_type)
    }
    count = cut = 0
    stored = ctx.lake.chunk_sets(set(wanted))
    for set_key, (key, chosen) in wanted.items():
        if set_key in stored:
            rows = stored[set_key].chunks
            title = heads[key].title
            texts.count({chunk.text_sha256: chunk.build_embedding_text(title) for chunk in rows})
            texts.unread.add(stored[set_key].language, rows)
            count += len(rows)
        else:
            row = ctx.lake.parsed([key])[key]
            count += _measure_parsed(row.parsed, [chosen], texts)
            cut += 1
    return MeasuredWork(chunks=count, cut=cut)


def _measure_parsed(
    parsed: ParsedText, ways: Iterable[ChunkParameters], texts: _TextCounter
) -> int:
    count = 0
    for chosen in ways:
        chunk_set = chunk_document(parsed, chosen, parsed_digest=compute_parsed_digest(parsed))
        texts.count(
            {
                chunk.text_sha256: chunk.build_embedding_text(parsed.title)
                for chunk in chunk_set.chunks
            }
        )
        texts.unread.add(chunk_set.language, chunk_set.chunks)
        count += len(chunk_set.chunks)
    return count


def _list_chunk_parameters(
    ctx: TenantContext, due: Iterable[PendingDocument], media_type: str
) -> set[ChunkParameters]:
    """Return the chunk parameters that documents with one content need, each once."""
    return {
        ctx.tenant.chunk_parameters(
            source=item.source.name,
            source_type=item.source_type,
            media_type=media_type,
            path=parse_path(item.uri),
        )
        for item in due
    }


def _build_task(key: str, item: PendingDocument) -> ParseTask:
    def read() -> bytes:
        return item.source.read(item.path, max_bytes=item.source.max_bytes)

    return ParseTask(
        key=key, name=item.uri, media_type=item.media_type, read=read, options=item.options
    )


@dataclass(frozen=True, slots=True)
class Preview:
    """The work and cost of the next sync.

    Attributes:
        parse, cut, failed, chunks, embeddings, reused, tokens: see MeasuredWork.
        held: documents that vanished and would be kept.
        new_generation: whether a new build would be made in addition to the serving build.
        cost: cost of all tokens, in dollars; None if no price is known.
        waiting: documents that wait for a batch submitted earlier; not counted above.
        unlisted: why sources could not be listed; the other sources were listed.
        embedding_cpu_seconds: CPU time for all texts that would be embedded, extrapolated from a
            few of them; None if no text is embedded on this machine.
        unread: a sentence about documents that the embedder does not support; "" if there are none.
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
    twice: DoubleEditCost | None = None
    unread: str = ""


def preview_sync(ctx: TenantContext) -> Preview:
    """Compute the work of a sync; parse and chunk in memory the documents that the lake lacks.

    Raises:
        ListingFailed: no source could be listed.
        ConfigurationError: spending caps are set, but the price is unknown.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    build = find_wanted_build(generations, ctx.tenant, ctx.embedder.embedder_id)
    if build is not None and build.pinned:
        ctx = ctx.for_build(build)
    target = None if build is None else build.number
    pending = set(ctx.catalog.index.pending(ctx.ref.id, target or 0, ctx.config_key))
    listings: list[SourceListing] = []
    failures: list[ListingFailed] = []
    deletions: dict[str, Deletions] = {}
    masker = get_masker(ctx.settings.local)
    due: list[PendingDocument] = []
    for plan in plan_sources(ctx):
        if plan.error is not None:
            failures.append(mask_failure(plan, masker))
        if plan.listing is not None:
            listings.append(plan.listing)
            deletions[plan.config.name] = plan.deletions
        due += iter_due_documents(ctx, plan, pending)
    require_any_listed(failures, len(ctx.tenant.sources))
    deletions |= {plan.name: plan.deletions for plan in plan_removed_sources(ctx)}
    deleted = [d for ids in ctx.catalog.index.removals(ctx.ref.id).values() for d in ids]
    deleted += [document_id for deletion in deletions.values() for document_id in deletion.removed]
    work = measure_work(ctx, due)
    kinds = [change.kind for listing in listings for change in listing.changes]
    price = require_price(ctx.tenant)
    above = ctx.tenant.embedder.batch_above
    batch = above is not None and work.embeddings > above
    cost = None if price is None else price.compute_cost(work.tokens, is_batch=batch)
    return Preview(
        added=kinds.count("added"),
        changed=kinds.count("changed"),
        removed=sum(len(deletion.removed) for deletion in deletions.values()),
        held=sum(len(deletion.held) for deletion in deletions.values()),
        held_reasons=tuple(
            masker.text(f"source {name}: {deletion.reason}")
            for name, deletion in deletions.items()
            if deletion.held
        ),
        documents=len(due),
        parse=work.parse,
        cut=work.cut,
        failed=work.failed + kinds.count("rejected"),
        chunks=work.chunks,
        embeddings=work.embeddings,
        reused=work.reused,
        tokens=work.tokens,
        entries_deleted=ctx.catalog.index.count_entries_in_builds(ctx.ref.id, deleted),
        new_generation=bool(generations) and target is None,
        embedder=ctx.embedder.embedder_id,
        per_million=None if price is None else price.compute_cost(1_000_000, is_batch=batch),
        cost=cost,
        batch=batch,
        waiting=ctx.catalog.quarantine.count_deferred(ctx.ref.id),
        unlisted=tuple(failure.message for failure in failures),
        cap=find_stopping_cap(
            find_present_caps(ctx.catalog, ctx.ref, ctx.tenant, run=0.0), cost or 0.0
        ),
        preparing_seconds=work.seconds,
        embedding_cpu_seconds=_find_embedding_cpu_seconds(ctx, work),
        estimate=estimate_sync(ctx, generations, work, is_batch=batch),
        twice=estimate_double_edits(
            ctx, generations, build, chunks=work.chunks, documents=len(due), cost=cost
        ),
        unread=describe_unread(ctx.embedder.embedder_id, work.unread, work.read),
    )


def _find_embedding_cpu_seconds(ctx: TenantContext, work: MeasuredWork) -> float | None:
    """Estimate the CPU seconds for embedding all texts; None if this machine embeds none."""
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
