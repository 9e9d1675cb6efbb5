"""raw_documents: what the sources hold, against the catalog's rows."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.diff import Change, deletions_suspicious
from rag_assets.ingest.sources.registry import SourceConfig
from rag_assets.pipeline.comparing import (
    SourceListing,
    compare_source,
    open_sources,
    settings_key,
    without_buried,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.listing_report import ListingReport, Words, rejected_of, sample_of
from rag_assets.pipeline.masking_again import change_of, mask_again, was_listed_otherwise
from rag_assets.privacy.masker import Masker
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.document_rows import DocumentChange, Known

_BATCH = 500
_URGENT = 100
"""Of one listing's changes, so many go ahead of a bulk import."""

_T = TypeVar("_T")


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
    masker = Masker(scanner)
    syncs = ctx.catalog.syncs.all(ctx.ref.id)
    for config, source in zip(
        ctx.tenant.sources, open_sources(ctx.tenant, ctx.settings, ctx.catalog), strict=True
    ):
        named.add(source.name)
        known = list(ctx.catalog.documents.known(ctx.ref.id, source.name))
        settings = settings_key(ctx.tenant, config)
        try:
            compared = compare_source(source, known, settings)
        except ListingFailed as error:
            message = masker.text(error.message)
            if len(ctx.tenant.sources) == 1:
                raise ListingFailed(message, hint=error.hint) from None
            total = total.plus(ListingReport(unlisted=(message,)))
            continue
        listing = without_buried(ctx, compared)
        if was_listed_otherwise(syncs.get(source.name), settings):
            mask_again(ctx, known, masker, pushed=config.type == "records")
            known = list(ctx.catalog.documents.known(ctx.ref.id, source.name))
        words = Words(known, masker)
        report = _record(ctx, config, listing, known, words, allow_deletes=allow_deletes)
        total = total.plus(report)
    if len(total.unlisted) == len(named) > 0:
        raise ListingFailed("; ".join(total.unlisted), hint="see that the folders are mounted")
    total = total.plus(_drop_other_sources(ctx, named, allow_deletes=allow_deletes))
    return total.plus(ListingReport(seconds=time.monotonic() - started))


def _record(
    ctx: TenantContext,
    config: SourceConfig,
    listing: SourceListing,
    known: list[Known],
    words: Words,
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
    _rescope(ctx, listing, known, scope, pushed=config.type == "records")
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
        sample=sample_of(fresh, known, removed, words),
        rejected=rejected_of(listing.changes, words),
    )


def _write_changes(ctx: TenantContext, listing: SourceListing, words: Words, scope: str) -> None:
    written = 0
    for batch in _batched(listing.changes, _BATCH):
        words.prepare(change.document for change in batch)
        rows = [_row(change, listing.listed_at_ns, words, scope) for change in batch]
        urgent = max(0, _URGENT - written)
        ctx.guard()
        ctx.catalog.documents.record(ctx.ref, rows[:urgent], lane=0)
        ctx.catalog.documents.record(ctx.ref, rows[urgent:], lane=1)
        written += len(rows)


def _rescope(
    ctx: TenantContext, listing: SourceListing, known: list[Known], scope: str, *, pushed: bool
) -> None:
    settled = listing.removed | listing.scoped
    settled |= {change.document.document_id for change in listing.changes}
    moved = [
        row.document_id
        for row in known
        if row.access_scope != scope and row.status != "DELETED" and row.document_id not in settled
    ]
    for batch in _batched(moved, _BATCH):
        rows = ctx.catalog.documents.find(ctx.ref.id, batch)
        changes = [replace(change_of(row, pushed=pushed), access_scope=scope) for row in rows]
        ctx.catalog.documents.record(ctx.ref, changes, lane=0)


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


def _row(change: Change, listed_at_ns: int, words: Words, scope: str) -> DocumentChange:
    document = change.document
    said = words.said(document.said)
    error = None if change.error is None else words.masked(change.error.message)
    if said.access_scope != document.said.access_scope:
        # Masked, it would be another: who was granted it could not read, and others perhaps could.
        error = "its access scope holds a credential; give it another"
    return DocumentChange(
        document_id=document.document_id,
        source=document.source,
        source_type=words.masked(document.source_type),
        path=words.path(document).encode("utf-8", "surrogateescape"),
        uri=words.uri(document),
        facts=document.facts,
        listed_at_ns=listed_at_ns,
        content_sha256=change.content_sha256,
        modified_at=change.modified_at,
        media_type=document.media_type,
        access_scope=said.access_scope or scope,
        tags=said.tags,
        metadata=said.metadata,
        said_title=said.title,
        revision=document.revision,
        error=error,
    )


def _batched(items: Iterable[_T], size: int) -> Iterator[list[_T]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch
