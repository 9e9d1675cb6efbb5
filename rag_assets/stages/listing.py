"""raw_documents: what the sources hold, against the catalog's rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from rag_assets.catalog.document_rows import Document, DocumentChange, Known
from rag_assets.errors import ListingFailed
from rag_assets.secrets.masking import redact
from rag_assets.secrets.scanner import SecretScanner
from rag_assets.sources.diff import Change, deletions_suspicious
from rag_assets.sources.files import FilesConfig
from rag_assets.sources.model import ListedDocument, uri_of
from rag_assets.stages.comparing import (
    SourceListing,
    compare_source,
    open_sources,
    settings_key,
    without_buried,
)
from rag_assets.stages.context import TenantContext
from rag_assets.stages.quarantine import DocumentNote

_BATCH = 500
_URGENT = 100
"""Of one listing's changes, so many go ahead of a bulk import."""
_SAMPLE = 20

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ListedChange:
    """One document that was added, changed or removed."""

    kind: str
    uri: str
    bytes: int


@dataclass(frozen=True, slots=True)
class ListingReport:
    """What a listing of all sources found.

    Attributes:
        held: documents that vanished in suspicious number and were not deleted.
        failed: documents that cannot be read, now or ever.
        bytes: size of what was added or changed.
        sample: the first changes.
        rejected: why documents cannot be read, the first of them.
        unlisted: why sources could not be listed; the others were.
    """

    added: int = 0
    changed: int = 0
    touched: int = 0
    unchanged: int = 0
    removed: int = 0
    held: int = 0
    failed: int = 0
    bytes: int = 0
    sample: tuple[ListedChange, ...] = ()
    rejected: tuple[DocumentNote, ...] = ()
    unlisted: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def documents(self) -> int:
        """How many documents the sources hold."""
        return self.added + self.changed + self.touched + self.unchanged + self.failed


def list_documents(
    ctx: TenantContext, scanner: SecretScanner, *, allow_deletes: bool = False
) -> ListingReport:
    """Bring the catalog's documents in line with every source of the tenant.

    Each source is listed completely before anything of it is written. One that cannot be listed
    keeps its documents as they are, and the others from nothing.

    Raises:
        ListingFailed: no source could be listed.
    """
    started = time.monotonic()
    total = ListingReport()
    named = set()
    for config, source in zip(
        ctx.tenant.sources, open_sources(ctx.tenant, ctx.settings), strict=True
    ):
        named.add(source.name)
        known = list(ctx.catalog.documents.known(ctx.ref.id, source.name))
        try:
            compared = compare_source(source, known, settings_key(ctx.tenant, config))
        except ListingFailed as error:
            message = redact(error.message, scanner)
            if len(ctx.tenant.sources) == 1:
                raise ListingFailed(message, hint=error.hint) from None
            total = _sum(total, ListingReport(unlisted=(message,)))
            continue
        listing = without_buried(ctx, compared)
        words = _Words(known, scanner)
        report = _record(ctx, config, listing, known, words, allow_deletes=allow_deletes)
        total = _sum(total, report)
    if len(total.unlisted) == len(named) > 0:
        raise ListingFailed("; ".join(total.unlisted), hint="see that the folders are mounted")
    total = _sum(total, _drop_other_sources(ctx, named, allow_deletes=allow_deletes))
    return _sum(total, ListingReport(seconds=time.monotonic() - started))


class _Words:
    """What may be shown of documents: a file's name can be a credential, too.

    Names that the catalog knows were scanned when they came: the scanner, which takes a quarter of
    a second to load, is not asked again where only contents changed.
    """

    def __init__(self, known: Iterable[Known], scanner: SecretScanner) -> None:
        self._uris = {row.document_id: row.uri for row in known}
        self._scanner = scanner

    def uri(self, document: ListedDocument) -> str:
        uri = self._uris.get(document.document_id)
        if uri is None:
            uri = uri_of(document.source, self.masked(document.path))
            self._uris[document.document_id] = uri
        return uri

    def masked(self, text: str) -> str:
        return redact(text, self._scanner)


def _record(
    ctx: TenantContext,
    config: FilesConfig,
    listing: SourceListing,
    known: list[Known],
    words: _Words,
    *,
    allow_deletes: bool,
) -> ListingReport:
    held = not allow_deletes and deletions_suspicious(listing.lost, listing.known)
    removed = [] if held else sorted(listing.removed)
    ctx.guard()
    if removed:
        ctx.catalog.documents.mark_deleted(ctx.ref, removed)
        uris = {row.document_id: row.uri for row in known}
        ctx.catalog.events.write(
            ctx.ref, "document_removed", [{"uri": uris[document_id]} for document_id in removed]
        )
    if held:
        payload = {"source": config.name, "vanished": listing.lost, "known": listing.known}
        ctx.catalog.events.write(ctx.ref, "deletions_held", [payload])
    scope = config.scope or ctx.tenant.access.scope
    _write_changes(ctx, listing, words, scope)
    _rescope(ctx, listing, known, scope)
    ctx.catalog.syncs.listed(
        ctx.ref,
        config.name,
        digest=listing.digest,
        at_ns=listing.listed_at_ns,
        held_deletions=len(listing.removed) if held else 0,
    )
    kinds = [change.kind for change in listing.changes]
    fresh = [change for change in listing.changes if change.kind in {"added", "changed"}]
    return ListingReport(
        added=kinds.count("added"),
        changed=kinds.count("changed"),
        touched=kinds.count("touched"),
        unchanged=listing.unchanged,
        removed=len(removed),
        held=len(listing.removed) if held else 0,
        failed=kinds.count("rejected"),
        bytes=sum(change.document.size for change in fresh),
        sample=(*_sample(fresh, words), *_removed(known, removed))[:_SAMPLE],
        rejected=_rejected(listing.changes, words),
    )


def _write_changes(ctx: TenantContext, listing: SourceListing, words: _Words, scope: str) -> None:
    written = 0
    for batch in _batched(listing.changes, _BATCH):
        rows = [_row(change, listing.listed_at_ns, words, scope) for change in batch]
        urgent = max(0, _URGENT - written)
        ctx.guard()
        ctx.catalog.documents.record(ctx.ref, rows[:urgent], lane=0)
        ctx.catalog.documents.record(ctx.ref, rows[urgent:], lane=1)
        written += len(rows)


def _rescope(ctx: TenantContext, listing: SourceListing, known: list[Known], scope: str) -> None:
    settled = listing.removed | {change.document.document_id for change in listing.changes}
    moved = [
        row.document_id
        for row in known
        if row.access_scope != scope and row.status != "DELETED" and row.document_id not in settled
    ]
    for batch in _batched(moved, _BATCH):
        rows = ctx.catalog.documents.find(ctx.ref.id, batch)
        ctx.catalog.documents.record(ctx.ref, [_with_scope(row, scope) for row in rows], lane=0)


def _drop_other_sources(
    ctx: TenantContext, named: set[str], *, allow_deletes: bool
) -> ListingReport:
    """Delete documents of sources that the tenant's configuration no longer has."""
    removed = held = 0
    recorded = {*ctx.catalog.syncs.all(ctx.ref.id), *ctx.catalog.documents.sources(ctx.ref.id)}
    for name in sorted(recorded - named):
        rows = ctx.catalog.documents.known(ctx.ref.id, name)
        gone = {row.document_id: row.uri for row in rows if row.status != "DELETED"}
        ctx.guard()
        if not allow_deletes and deletions_suspicious(len(gone), len(gone)):
            ctx.catalog.syncs.listed(
                ctx.ref, name, digest="", at_ns=time.time_ns(), held_deletions=len(gone)
            )
            held += len(gone)
            continue
        ctx.catalog.documents.mark_deleted(ctx.ref, list(gone))
        ctx.catalog.events.write(
            ctx.ref, "document_removed", [{"uri": uri} for uri in gone.values()]
        )
        ctx.catalog.syncs.forget(ctx.ref, name)
        removed += len(gone)
    return ListingReport(removed=removed, held=held)


def _row(change: Change, listed_at_ns: int, words: _Words, scope: str) -> DocumentChange:
    document = change.document
    return DocumentChange(
        document_id=document.document_id,
        source=document.source,
        source_type=document.source_type,
        path=document.path.encode("utf-8", "surrogateescape"),
        uri=words.uri(document),
        facts=document.facts,
        listed_at_ns=listed_at_ns,
        content_sha256=change.content_sha256,
        media_type=document.media_type,
        access_scope=scope,
        error=None if change.error is None else words.masked(change.error.message),
    )


def _sample(changes: list[Change], words: _Words) -> Iterator[ListedChange]:
    for change in changes[:_SAMPLE]:
        document = change.document
        yield ListedChange(change.kind, words.uri(document), document.size)


def _removed(known: list[Known], removed: list[str]) -> Iterator[ListedChange]:
    gone = set(removed[:_SAMPLE])
    for row in known:
        if row.document_id in gone:
            yield ListedChange("removed", row.uri, row.facts.size)


def _rejected(changes: Iterable[Change], words: _Words) -> tuple[DocumentNote, ...]:
    refused = [change for change in changes if change.error is not None]
    return tuple(
        DocumentNote(
            change.document.document_id,
            words.uri(change.document),
            words.masked(change.error.message),
        )
        for change in refused[:_SAMPLE]
        if change.error is not None
    )


def _with_scope(row: Document, scope: str) -> DocumentChange:
    return DocumentChange(
        document_id=row.document_id,
        source=row.source,
        source_type=row.source_type,
        path=row.path,
        uri=row.uri,
        facts=row.facts,
        listed_at_ns=row.listed_at_ns,
        content_sha256=row.content_sha256,
        media_type=row.media_type,
        access_scope=scope,
        tags=row.tags,
        metadata=row.metadata,
        error=row.error_message if row.content_sha256 is None else None,
    )


def _batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def _sum(one: ListingReport, other: ListingReport) -> ListingReport:
    return ListingReport(
        *(a + b for a, b in zip(_values(one), _values(other), strict=True)),  # type: ignore[operator]
    )


def _values(report: ListingReport) -> tuple[object, ...]:
    return tuple(getattr(report, name) for name in report.__dataclass_fields__)
