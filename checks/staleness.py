"""staleness: compares the lag of the index with the tenant's freshness limit."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from rag_assets.checks.tenant_check import CheckContext, tenant_check
from rag_assets.checks.verdict import Compared, Severity, Verdict
from rag_assets.common.batches import batched
from rag_assets.common.errors import ListingFailed
from rag_assets.common.formatting import format_count
from rag_assets.ingest.sources.model import DocumentSource, ListedDocument, build_uri
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.source_listing import ListingDigest, compute_settings_key, open_sources
from rag_assets.privacy.masker import Masker
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.builds.syncs import Sync
from rag_assets.storage.catalog.documents.model import Document

_BATCH_DOCUMENTS = 500

Reason = Literal[
    "waits",  # listed, but not processed yet
    "in a batch",  # its texts are at the provider's batch API
    "failed",  # quarantined while an older version is served
    "added",  # at the source, but not in the catalog
    "changed",  # differs between the source and the catalog
    "removed",  # no longer at the source, but in the catalog
    "held",  # removed, or on an unmounted disk: deletion needs a person's consent
    "unlisted",  # its source cannot be listed
]


@dataclass(frozen=True, slots=True)
class LaggingItem:
    """A document or a source whose entries lag behind the current content of the source.

    Attributes:
        since: start of the lag.
        certain: whether the start is known; otherwise `since` is the earliest possible start.
    """

    uri: str
    reason: Reason
    since: datetime
    certain: bool = True


def find_lagging_in_catalog(
    documents: Iterable[Document], made_from: Mapping[str, str]
) -> Iterator[LaggingItem]:
    """Yield the documents whose searchable version is outdated according to the catalog.

    Args:
        made_from: document_key of each served version, by document_id.
    """
    for document in documents:
        served = made_from.get(document.document_id)
        if document.status == "PROCESSING" and document.retry_at is not None:
            yield LaggingItem(document.uri, "in a batch", document.changed_at, certain=False)
        elif document.status == "PROCESSING":
            yield LaggingItem(document.uri, "waits", document.changed_at)
        elif document.status != "DELETED" and served not in (None, document.document_key):
            reason: Reason = "failed" if document.status == "FAILED" else "waits"
            yield LaggingItem(document.uri, reason, document.changed_at)


def find_lagging_at_source(
    documents: Iterable[ListedDocument],
    rows: Mapping[str, Document],
    pruned: Collection[str],
    *,
    last_listing: datetime,
    is_first: bool,
    now: datetime,
    build_name: Callable[[ListedDocument], str],
) -> Iterator[LaggingItem]:
    """Yield the documents that differ between their source and the catalog.

    The lag of a new or changed file starts at its ctime, the time of its creation or last change,
    but not before the last listing. The time of a deletion is unknown.

    Args:
        documents: current documents of the source.
        rows: the source's documents in the catalog by document_id, including deleted documents.
        pruned: ids of documents deleted for their age, which their source may still have.
        last_listing: when the catalog last recorded a listing of the source.
        is_first: whether no listing of the source was ever recorded, so that the lag is unknown.
        now: current time, which replaces later times of change.
        build_name: returns the display name of a document that is not in the catalog.
    """
    missing = {id_: row for id_, row in rows.items() if row.status != "DELETED"}
    for document in documents:
        row = rows.get(document.document_id)
        living = missing.pop(document.document_id, None)
        is_same = row is None or row.facts == document.facts
        if is_same and (living is not None or document.document_id in pruned):
            continue
        changed_at = datetime.fromtimestamp(document.ctime_ns / 1e9, UTC)
        since = min(max(changed_at, last_listing), now)
        if living is not None:
            yield LaggingItem(living.uri, "changed", since)
        else:
            yield LaggingItem(build_name(document), "added", since, certain=not is_first)
    for lost in missing.values():
        yield LaggingItem(lost.uri, "removed", last_listing, certain=False)


def build_verdict(
    behind: Sequence[LaggingItem], documents: int, limit: timedelta, now: datetime
) -> Verdict:
    """Pass if no document lags longer than the limit.

    Documents with an uncertain lag, or that wait for a person's decision, cause only a warning.
    """
    late_items = [b for b in behind if now - b.since > limit]
    error = any(b.certain for b in late_items)
    has_held = any(b.reason == "held" for b in behind)
    severity: Severity = "ERROR" if error else "WARN"
    oldest = max((now - b.since for b in behind), default=timedelta(0))
    most_urgent = sorted(behind, key=lambda b: (not b.certain, b.since, b.uri))
    return Verdict(
        passed=not late_items and not has_held,
        description=_describe(behind, late_items, oldest, limit),
        mend="run `rag-assets sync TENANT --allow-deletes` to delete the documents that disappeared"
        if has_held
        else "run `rag-assets sync TENANT` to bring them up to date, or to see why that fails",
        compared=(
            Compared(
                "oldest lag in minutes, at most", round_up_minutes(limit), round_up_minutes(oldest)
            ),
            Compared("documents later than that", 0, len(late_items)),
        ),
        columns=("document", "why", "since", "minutes"),
        offenders=tuple(
            (
                b.uri,
                b.reason,
                f"{b.since:%Y-%m-%d %H:%M:%S} UTC",
                f"{'' if b.certain else 'at most '}{round_up_minutes(now - b.since):,}",
            )
            for b in most_urgent
        ),
        severity=severity,
        notes={"documents": documents, "behind": len(behind)},
    )


@tenant_check(
    "search_index",
    "staleness",
    (
        "No document lags behind its source for longer than the tenant's freshness limit: none "
        "waits to be indexed, none is quarantined while an older version is served, and a new "
        "listing of the sources equals the catalog."
    ),
)
def staleness_check(context: CheckContext) -> Verdict:
    """List the sources again, and compare them with the served versions."""
    ctx = context.tenant
    now = _get_now()
    documents = ctx.catalog.documents.all(ctx.ref.id, deleted=True)
    living = [document for document in documents if document.status != "DELETED"]
    behind = list(find_lagging_in_catalog(living, _find_origins(ctx, living)))
    waiting = {b.uri for b in behind}
    at_sources = _find_lagging_at_sources(ctx, context.workbench.scanner(), documents, now)
    behind += [b for b in at_sources if b.uri not in waiting]
    limit = timedelta(minutes=ctx.tenant.freshness_minutes)
    return build_verdict(behind, len(living), limit, now)


def round_up_minutes(duration: timedelta) -> int:
    """Return whole minutes, rounded up, so that a late document never counts as on time."""
    return max(0, -(-int(duration.total_seconds()) // 60))


def _find_origins(ctx: TenantContext, documents: Sequence[Document]) -> dict[str, str]:
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    document_keys: dict[str, str] = {}
    if serving is not None:
        for batch in batched(documents, _BATCH_DOCUMENTS):
            ids = [document.document_id for document in batch]
            document_keys |= ctx.catalog.index.find_document_keys(ctx.ref.id, serving.number, ids)
    return document_keys


def _find_lagging_at_sources(
    ctx: TenantContext, scanner: SecretScanner, documents: Sequence[Document], now: datetime
) -> Iterator[LaggingItem]:
    syncs, masker = ctx.catalog.syncs.all(ctx.ref.id), Masker(scanner)
    by_source: dict[str, dict[str, Document]] = {}
    for row in documents:
        by_source.setdefault(row.source, {})[row.document_id] = row
    opened = open_sources(ctx.tenant, ctx.settings, ctx.catalog)
    for config, source in zip(ctx.tenant.sources, opened, strict=True):
        rows = by_source.pop(source.name, {})
        sync = syncs.get(source.name)
        last = _find_last_listing(sync, now)
        if sync is not None and sync.held_deletions:
            name = (
                f"{source.name}: {format_count(sync.held_deletions, 'deletion')},"
                f" {sync.held_reason}"
            )
            yield LaggingItem(name, "held", last, certain=False)
        try:
            digest = ListingDigest(compute_settings_key(ctx.tenant, config))
            if _digest_listing(source, digest) != (sync.listing_digest if sync else None):
                yield from find_lagging_at_source(
                    source.list(),
                    rows,
                    ctx.catalog.documents.tombstones(ctx.ref.id),
                    last_listing=last,
                    is_first=sync is None or sync.listed_at_ns is None,
                    now=now,
                    build_name=lambda document: build_uri(
                        document.source, masker.text(document.path)
                    ),
                )
        except ListingFailed as error:
            message = masker.text(f"{source.name}: {error.message}")
            yield LaggingItem(message, "unlisted", last, certain=False)
    for name, rows in by_source.items():
        # The source was removed from the configuration, so the next sync deletes its documents.
        last = _find_last_listing(syncs.get(name), now)
        for row in rows.values():
            if row.status != "DELETED":
                yield LaggingItem(row.uri, "removed", last, certain=False)


def _digest_listing(source: DocumentSource, digest: ListingDigest) -> str:
    for _ in digest.list_source(source):
        pass
    return digest.hexdigest()


def _find_last_listing(sync: Sync | None, now: datetime) -> datetime:
    if sync is None or sync.listed_at_ns is None:
        return datetime.fromtimestamp(0, UTC)
    return min(datetime.fromtimestamp(sync.listed_at_ns / 1e9, UTC), now)


def _describe(
    behind: Sequence[LaggingItem],
    late_items: Sequence[LaggingItem],
    oldest: timedelta,
    limit: timedelta,
) -> str:
    if not behind:
        return "every document equals its source"
    count = format_count(len(behind), "document")
    lag = f"{count} behind, the oldest for {round_up_minutes(oldest):,} min"
    minutes = round_up_minutes(limit)
    if not late_items:
        return f"{lag}, within the limit of {minutes:,} min"
    return f"{lag}; {len(late_items):,} of them for longer than the limit of {minutes:,} min"


def _get_now() -> datetime:
    return datetime.now(UTC)
