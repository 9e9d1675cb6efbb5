"""Compare contents with the catalog: files of the sources, pushed records and uploads.

A listing considers a file unchanged while its size, times and inode are the same. That is nearly
always right, except after a disk failure, a restored backup or a change of the clock. So all
contents are hashed again over a cycle of several days, one share each day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from rag_assets.common.errors import DocumentVanished, ListingFailed
from rag_assets.ingest.sources.diff import Digest, hash_documents
from rag_assets.ingest.sources.model import DocumentSource, ListedDocument
from rag_assets.pipeline.context import BYTES_PER_SECOND, DailyShare, RateLimiter, TenantContext
from rag_assets.pipeline.source_listing import (
    ListingDigest,
    compute_settings_key,
    compute_state_digest,
    open_sources,
)
from rag_assets.pipeline.uploads import compare_blobs
from rag_assets.storage.catalog.documents.model import CatalogDocument

_UNSWEPT_AGE = timedelta(days=8)
"""An unreferenced file of this age should have been deleted by the weekly compaction."""


@dataclass(frozen=True, slots=True)
class ContentsReport:
    """The comparison of a share of the documents with their sources.

    Attributes:
        altered: ids of documents whose content differs although their listing facts, such as size
            and times, equal those in the catalog.
        gone: ids of documents that a source no longer has, but that no listing will delete, because
            the source's state equals the state at its last recorded listing.
    """

    compared: int = 0
    altered: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    unlisted: tuple[str, ...] = ()

    def plus(self, other: ContentsReport) -> ContentsReport:
        """Return the sum of both reports."""
        return ContentsReport(
            self.compared + other.compared,
            self.altered + other.altered,
            self.gone + other.gone,
            self.unlisted + other.unlisted,
        )


def compare_contents(
    ctx: TenantContext, share: DailyShare, *, bytes_per_second: float = BYTES_PER_SECOND
) -> ContentsReport:
    """Read a share of a tenant's documents again and compare them with the catalog.

    Documents whose listing facts differ from the catalog are skipped: the next listing finds them.
    """
    # Read this before the rows: a listing recorded between both reads would make rows seem left
    # over.
    syncs = ctx.catalog.syncs.all(ctx.ref.id)
    total = ContentsReport()
    opened = open_sources(ctx.tenant, ctx.settings, ctx.catalog)
    for config, source in zip(ctx.tenant.sources, opened, strict=True):
        rows = {
            row.document_id: row for row in ctx.catalog.documents.stream(ctx.ref.id, source.name)
        }
        settings = compute_settings_key(ctx.tenant, config)
        known_state = compute_state_digest(source, settings)
        digest = ListingDigest(settings)
        comparison = _Comparison(rows, share, RateLimiter(bytes_per_second))
        try:
            chosen = comparison.iter_chosen(digest.list_source(source))
            altered_documents = comparison.find_altered(hash_documents(source, chosen))
            altered = _drop_changed_documents(source, rows, altered_documents)
        except ListingFailed:
            total = total.plus(ContentsReport(unlisted=(source.name,)))
            continue
        recorded = syncs.get(source.name)
        as_recorded = (
            recorded is not None
            and recorded.listing_digest == (known_state or digest.hexdigest())
            and not recorded.held_deletions
        )
        missing = comparison.unseen if as_recorded else ()
        total = total.plus(
            ContentsReport(comparison.compared, tuple(sorted(altered)), tuple(sorted(missing)))
        )
    return total


def mark_for_rereading(ctx: TenantContext, document_ids: Collection[str]) -> None:
    """Mark documents to be read by the next listing even if they look unchanged."""
    ctx.guard()
    ctx.catalog.documents.read_again(ctx.ref, document_ids)
    ctx.catalog.syncs.reset(ctx.ref)


class _Comparison:
    """Compares one listing with the catalog's rows of a source, while the listing is read."""

    def __init__(
        self, rows: Mapping[str, CatalogDocument], share: DailyShare, pace: RateLimiter
    ) -> None:
        self._rows = rows
        self._share = share
        self._pace = pace
        self.compared = 0
        self.unseen = {id_ for id_, row in rows.items() if row.status != "DELETED"}

    def iter_chosen(self, documents: Iterable[ListedDocument]) -> Iterator[ListedDocument]:
        """Yield the documents of the share that a listing considers unchanged."""
        for document in documents:
            self.unseen.discard(document.document_id)
            row = self._rows.get(document.document_id)
            if document.document_id in self._share and _looks_unchanged(document, row):
                self.compared += 1
                yield document
                self._pace.add_bytes(document.size)

    def find_altered(self, digests: Iterable[Digest]) -> set[str]:
        """Return the ids of documents that differ from the catalog or cannot be read."""
        return {
            document.document_id
            for document, digest in digests
            if digest != self._rows[document.document_id].content_sha256
            and not isinstance(digest, DocumentVanished)
        }


def _drop_changed_documents(
    source: DocumentSource, rows: Mapping[str, CatalogDocument], altered: set[str]
) -> set[str]:
    """Return the altered documents except those that changed while they were read.

    The next listing finds the others.
    """
    if not altered:
        return altered
    return {
        document.document_id
        for document in source.list()
        if document.document_id in altered
        and _looks_unchanged(document, rows[document.document_id])
    }


def _looks_unchanged(document: ListedDocument, row: CatalogDocument | None) -> bool:
    return (
        row is not None
        and row.status != "DELETED"
        and row.content_sha256 is not None
        and document.facts.is_unchanged_since(row.facts, row.listed_at_ns)
    )


@dataclass(frozen=True, slots=True)
class StoredDrift:
    """The difference between one store and the catalog.

    Attributes:
        store, item_name: name of the store, and the word for a single item in it.
        nobodys: names of stored items that belong to no document and to no source.
    """

    store: str
    item_name: str
    remedy: str
    compared: int = 0
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    nobodys: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether the store equals the catalog."""
        return not (self.missing or self.altered or self.nobodys)


def compare_stored(ctx: TenantContext, share: DailyShare) -> list[StoredDrift]:
    """Compare each store that holds the only copy of its contents with the catalog.

    The share limits the contents that are read.
    """
    return [_compare_records(ctx, share), _compare_uploads(ctx, share)]


def _compare_records(ctx: TenantContext, share: DailyShare) -> StoredDrift:
    """Compare the tenant's documents with the pushed records that are stored in the catalog."""
    named = [
        config.name for config in ctx.tenant.sources if ctx.tenant.source_kind(config).holds_records
    ]
    drift = ctx.catalog.record_drift.find(ctx.ref.id, named, share.hash_range)
    return StoredDrift(
        store="records",
        item_name="record",
        remedy="push missing and altered records again; to delete records that belong to no source,"
        " configure their source again and delete them there",
        compared=drift.compared,
        missing=drift.missing,
        altered=drift.altered,
        nobodys=drift.nobodys,
    )


def _compare_uploads(ctx: TenantContext, share: DailyShare) -> StoredDrift:
    """Compare the tenant's uploads in the catalog with the stored files."""
    ids_by_difference: dict[str, set[str]] = {"missing": set(), "altered": set(), "nobody's": set()}
    differences = compare_blobs(
        ctx.catalog,
        ctx.blobs,
        ctx.ref,
        is_read=share.__contains__,
        older_than=ctx.clock.now() - _UNSWEPT_AGE,
        bytes_per_second=BYTES_PER_SECOND,
    )
    for difference in differences:
        ids_by_difference[difference.fault].update(difference.document_ids or (difference.sha256,))
    return StoredDrift(
        store="files",
        item_name="uploaded file",
        remedy="upload missing and altered files again; `rag-assets uploads list TENANT` lists"
        " them",
        missing=tuple(sorted(ids_by_difference["missing"])),
        altered=tuple(sorted(ids_by_difference["altered"])),
        nobodys=tuple(sorted(ids_by_difference["nobody's"])),
    )
