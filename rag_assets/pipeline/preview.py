"""Preview of a sync: its work and cost; nothing is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rag_assets.billing.ledger import present_caps
from rag_assets.billing.spending import Cap, cap_that_stops, require_price
from rag_assets.common.batches import batched
from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.chunking.chunk_set import chunk_document, chunk_set_key
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import embedding_text
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.records import parsed_digest
from rag_assets.ingest.parsing.registry import parse_key
from rag_assets.ingest.sources.masked_paths import ListedPaths
from rag_assets.ingest.sources.model import DocumentSource
from rag_assets.ingest.workers.tasks import ParseTask
from rag_assets.pipeline.batches import texts_in_batches
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.recipes import wanted_build
from rag_assets.pipeline.source_listing import SourceListing
from rag_assets.pipeline.source_plans import (
    Deletions,
    SourcePlan,
    masked_failure,
    plan_removed_sources,
    plan_sources,
    require_any_listed,
)
from rag_assets.privacy.masker import masker_of

_BATCH = 200


@dataclass(frozen=True, slots=True)
class Preview:
    """The work and cost of the next sync.

    Attributes:
        parse: documents that would be parsed; the others' text is in the lake.
        failed: documents that would be quarantined.
        chunks: of the documents that would be published.
        embeddings: distinct texts that would be embedded; tokens counts theirs.
        held: documents that vanished in suspicious number and would be kept.
        entries_deleted: entries of removed documents.
        new_generation: whether a new build would be made beside the serving one.
        embedder: the embedder that would make the vectors.
        per_million: dollars per million tokens; None if no price is known.
        cost: of all tokens, in dollars; None if no price is known.
        batch: whether the provider's batch API would be used.
        waiting: documents that wait for a batch submitted earlier; not counted above.
        unlisted: why sources could not be listed; the others were.
        cap: the spending cap that would stop it before its end.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    held: int = 0
    documents: int = 0
    parse: int = 0
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


@dataclass(frozen=True, slots=True)
class _Due:
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
        return parse_key(self.content_sha256, self.media_type, self.options, self.edition)


class _Texts:
    """The distinct texts so far, and those of them without a vector."""

    def __init__(self, ctx: TenantContext) -> None:
        self._ctx = ctx
        self._seen: set[str] = set()
        self._under_way = set(texts_in_batches(ctx))
        self.missing = self.tokens = 0

    def meet(self, texts: dict[str, str | None]) -> None:
        """Count texts by hash; None where the text need not be read."""
        new = {key: text for key, text in texts.items() if key not in self._seen}
        self._seen |= set(new)
        without = self._ctx.lake.missing_vectors(self._ctx.embedder.embedder_id, set(new))
        without -= self._under_way
        self.missing += len(without)
        lacking = [text for key, text in new.items() if key in without and text is not None]
        self.tokens += sum(self._ctx.embedder.count_tokens(lacking)) if lacking else 0

    @property
    def seen(self) -> int:
        """The number of distinct texts."""
        return len(self._seen)


def preview(ctx: TenantContext) -> Preview:
    """Compute the work of a sync; parses and chunks in memory documents that the lake lacks.

    Raises:
        ListingFailed: no source could be listed.
        ConfigurationError: there are caps on spending, and no price is known.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    build = wanted_build(generations, ctx.tenant, ctx.embedder.embedder_id)
    if build is not None and build.pinned:
        ctx = ctx.for_build(build)
    target = None if build is None else build.number
    pending = set(ctx.catalog.index.pending(ctx.ref.id, target or 0, ctx.config_key))
    listings: list[SourceListing] = []
    failures: list[ListingFailed] = []
    deletions: list[Deletions] = []
    due: list[_Due] = []
    for plan in plan_sources(ctx):
        if plan.error is not None:
            failures.append(masked_failure(plan, masker_of(ctx.settings.local)))
        if plan.listing is not None:
            listings.append(plan.listing)
            deletions.append(plan.deletions)
        due += _due(ctx, plan, pending)
    require_any_listed(failures, len(ctx.tenant.sources))
    deletions += [plan.deletions for plan in plan_removed_sources(ctx)]
    deleted = [d for ids in ctx.catalog.index.removals(ctx.ref.id).values() for d in ids]
    deleted += [document_id for each in deletions for document_id in each.removed]
    work = _measure(ctx, due)
    kinds = [change.kind for listing in listings for change in listing.changes]
    price = require_price(ctx.tenant)
    above = ctx.tenant.embedder.batch_above
    batch = above is not None and work.embeddings > above
    cost = None if price is None else price.of(work.tokens, batch=batch)
    return Preview(
        added=kinds.count("added"),
        changed=kinds.count("changed"),
        removed=sum(len(each.removed) for each in deletions),
        held=sum(len(each.held) for each in deletions),
        documents=len(due),
        parse=work.parse,
        failed=work.failed + kinds.count("rejected"),
        chunks=work.chunks,
        embeddings=work.embeddings,
        reused=work.reused,
        tokens=work.tokens,
        entries_deleted=ctx.catalog.index.entry_count_of(ctx.ref.id, deleted),
        new_generation=bool(generations) and target is None,
        embedder=ctx.embedder.embedder_id,
        per_million=None if price is None else price.of(1_000_000, batch=batch),
        cost=cost,
        batch=batch,
        waiting=ctx.catalog.quarantine.deferred_count(ctx.ref.id),
        unlisted=tuple(failure.message for failure in failures),
        cap=cap_that_stops(present_caps(ctx.catalog, ctx.ref, ctx.tenant, run=0.0), cost or 0.0),
    )


def _due(ctx: TenantContext, plan: SourcePlan, pending: set[str]) -> Iterator[_Due]:
    source = plan.source
    changes = () if plan.listing is None else plan.listing.changes
    for change in changes:
        if change.kind in {"added", "changed"} and change.content_sha256 is not None:
            document = change.document
            yield _Due(
                source,
                document.source_type,
                document.path,
                document.uri,
                document.media_type,
                ctx.parse_options,
                change.content_sha256,
            )
    seen = {change.document.document_id for change in changes}
    vanished = frozenset() if plan.listing is None else plan.listing.removed
    paths = ListedPaths(source)
    waiting = sorted(pending - seen - vanished)
    for row in ctx.catalog.documents.find(ctx.ref.id, waiting):
        if row.source == source.name and row.content_sha256 is not None:
            yield _Due(
                source,
                row.source_type,
                paths.of(row.document_id, row.path),
                row.uri,
                row.media_type,
                ctx.parse_options,
                row.content_sha256,
                row.reindex_requests,
            )


def _measure(ctx: TenantContext, due: list[_Due]) -> Preview:
    by_key: dict[str, list[_Due]] = {}
    for item in due:
        by_key.setdefault(item.parse_key, []).append(item)
    texts = _Texts(ctx)
    parse = failed = chunks = 0
    with ctx.worker_pool() as pool:
        for keys in batched(by_key, _BATCH):
            missing = ctx.lake.missing_parsed(keys)
            parse += len(missing)
            stored = {key: by_key[key] for key in keys if key not in missing}
            chunks += _measure_stored(ctx, stored, texts)
            tasks = (_task(key, by_key[key][0]) for key in keys if key in missing)
            for outcome in pool.map(tasks):
                if isinstance(outcome.result, ParsedText):
                    ways = _ways(ctx, by_key[outcome.key], outcome.result.media_type)
                    chunks += _measure_parsed(outcome.result, ways, texts)
                else:
                    failed += 1
    return Preview(
        parse=parse,
        failed=failed,
        chunks=chunks,
        embeddings=texts.missing,
        reused=texts.seen - texts.missing,
        tokens=texts.tokens,
    )


def _measure_stored(ctx: TenantContext, due: Mapping[str, list[_Due]], texts: _Texts) -> int:
    """Documents, by parse_key, whose text is in the lake; chunks are read or made in memory."""
    heads = ctx.lake.parsed_heads(list(due))
    wanted = {
        chunk_set_key(head.digest, head.media_type, chosen): (key, chosen)
        for key, head in heads.items()
        for chosen in _ways(ctx, due[key], head.media_type)
    }
    count = 0
    stored = ctx.lake.chunk_sets(set(wanted))
    for set_key, (key, chosen) in wanted.items():
        if set_key in stored:
            rows = stored[set_key].chunks
            title = heads[key].title
            texts.meet({c.text_sha256: embedding_text(title, c.heading_path, c.text) for c in rows})
            count += len(rows)
        else:
            row = ctx.lake.parsed([key])[key]
            count += _measure_parsed(row.parsed, [chosen], texts)
    return count


def _measure_parsed(parsed: ParsedText, ways: Iterable[ChunkParameters], texts: _Texts) -> int:
    count = 0
    for chosen in ways:
        made = chunk_document(parsed, chosen, parsed_digest=parsed_digest(parsed))
        texts.meet(
            {
                chunk.text_sha256: embedding_text(parsed.title, chunk.heading_path, chunk.text)
                for chunk in made.chunks
            }
        )
        count += len(made.chunks)
    return count


def _ways(ctx: TenantContext, due: Iterable[_Due], media_type: str) -> set[ChunkParameters]:
    """The chunk parameters for one content: copies in two sources may be cut differently."""
    return {
        ctx.tenant.chunk_parameters(
            source=item.source.name, source_type=item.source_type, media_type=media_type
        )
        for item in due
    }


def _task(key: str, item: _Due) -> ParseTask:
    def read() -> bytes:
        return item.source.read(item.path, max_bytes=item.source.max_bytes)

    return ParseTask(
        key=key, name=item.uri, media_type=item.media_type, read=read, options=item.options
    )
