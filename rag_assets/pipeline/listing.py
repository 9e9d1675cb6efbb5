"""The stage `raw_documents`: bring the catalog's rows in line with the sources."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from heapq import nlargest
from itertools import islice
from typing import Any

from rag_assets.common.batches import batched
from rag_assets.common.failure_kinds import failure_kind
from rag_assets.ingest.sources.diff import Change
from rag_assets.ingest.sources.disk import encode_folders
from rag_assets.pipeline import source_plans
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.fact_stores import list_all_stores
from rag_assets.pipeline.mark_keeper import find_deletion_refusal
from rag_assets.pipeline.rescan import MaskedNames, build_change_from_row, have_settings_changed
from rag_assets.pipeline.slices import DocumentNote, StageTime
from rag_assets.pipeline.source_listing import (
    SourceListing,
    build_partial_digest,
    find_successors,
    has_scope_changes,
)
from rag_assets.pipeline.source_plans import (
    Deletions,
    SourcePlan,
    mask_failure,
    plan_removed_sources,
    plan_sources,
    require_any_listed,
)
from rag_assets.pipeline.uploads import drop_blobs
from rag_assets.privacy.described import StrictScanner
from rag_assets.privacy.masker import Masker
from rag_assets.privacy.secrets.scanner import SecretScanner
from rag_assets.storage.catalog.documents.model import CatalogDocument, DocumentChange
from rag_assets.tenants.model import Tenant

_BATCH_DOCUMENTS = 500
_MAX_URGENT = 100
"""At most this many changes of one listing have priority over a bulk import; edits come before new
documents."""
_BULK_BATCH = 2_000
_BULK_LANE = 1
"""The value of `lane` for bulk imports, and for records that were pushed in bulk."""

_SAMPLED_CHANGES = 20


class ListingPace:
    """Decides which runs of a sync list the sources, so that listing takes little of its time.

    The first run lists them. Sources that know their state are not affected: every run compares
    their state.

    Attributes:
        has_changed: whether a change is known that may not be listed yet.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due_at = self._due_if_changed_at = -math.inf
        self.is_listing = False
        self.has_changed = False

    @property
    def is_due(self) -> bool:
        """Return whether the next run lists the sources."""
        return self._clock() >= (self._due_if_changed_at if self.has_changed else self._due_at)

    def begin_run(self) -> bool:
        """Return whether the run that starts now lists the sources."""
        self.is_listing = self.is_due
        if self.is_listing:
            self.has_changed = False
        return self.is_listing

    def end_run(self, seconds: float, *, has_vanished: bool) -> None:
        """Record that a run has ended.

        Args:
            has_vanished: whether documents had left their source, or changed, since they were
                listed.
        """
        if self.is_listing:
            now = self._clock()
            self._due_at = now + source_plans.WORK_PER_LISTING * seconds
            self._due_if_changed_at = now + source_plans.WORK_PER_LISTING_OF_CHANGES * seconds
        if has_vanished:
            self.has_changed = True
            if not self.is_listing:
                self._due_if_changed_at = -math.inf


def list_documents(
    ctx: TenantContext,
    scanner: SecretScanner,
    *,
    allow_deletes: bool = False,
    reuse_listings: bool | None = None,
) -> ListingReport:
    """Bring the catalog's documents in line with every source of the tenant.

    Each source is listed completely before its rows are written. A source that cannot be listed
    keeps its documents as they are, and does not affect the others.

    Args:
        reuse_listings: whether to reuse the listings of a former run of the same sync; see
            plan_sources.
    """
    started = time.monotonic()
    total = ListingReport()
    failures = []
    masker = _build_masker(ctx, scanner)
    plans = plan_sources(
        ctx,
        allow_deletes=allow_deletes,
        relist=allow_deletes and not reuse_listings,
        reuse_listings=reuse_listings,
    )
    declared_types = _list_declared_types(ctx.tenant)
    for planned in plans:
        plan = _hold_if_set_back(ctx, planned)
        _record_departures(ctx, plan, is_confirmed=allow_deletes)
        if plan.listing is None or plan.error is not None:
            failure = mask_failure(plan, masker)
            failures.append(failure)
            total = total.plus(ListingReport(unlisted=(failure.message,)))
            continue
        names = MaskedNames(plan.known, masker, declared_types)
        total = total.plus(_record_listing(ctx, plan, plan.listing, plan.known, names))
    require_any_listed(failures, len(ctx.tenant.sources))
    total = total.plus(_drop_removed_sources(ctx, allow_deletes=allow_deletes))
    # Everything that this run reads has been recorded by now.
    forget_former_contents(ctx)
    return total.plus(ListingReport(seconds=time.monotonic() - started))


def confirm_documents(ctx: TenantContext, scanner: SecretScanner) -> bool:
    """Record that all documents are unchanged; if any has changed, record nothing, return False."""
    plans = list(plan_sources(ctx))
    kinds = {change.kind for plan in plans if plan.listing for change in plan.listing.changes}
    removed = any(plan.listing is None or plan.listing.removed for plan in plans)
    syncs = ctx.catalog.syncs.all(ctx.ref.id)
    others = any(
        have_settings_changed(syncs.get(plan.source.name), plan.settings) for plan in plans
    )
    if removed or others or kinds - {"touched"}:
        return False
    masker = _build_masker(ctx, scanner)
    for plan in plans:
        if plan.listing is not None:
            names = MaskedNames(plan.known, masker, _list_declared_types(ctx.tenant))
            _record_listing(ctx, plan, plan.listing, plan.known, names)
    return True


def _build_masker(ctx: TenantContext, scanner: SecretScanner) -> Masker:
    """Return a masker for documents' names, with the same credential rules as for their texts."""
    return Masker(StrictScanner(scanner) if ctx.parse_options.strict_secrets else scanner)


def _hold_if_set_back(ctx: TenantContext, plan: SourcePlan) -> SourcePlan:
    """Return the plan, with all deletions held if the catalog may come from an older dump."""
    refused = find_deletion_refusal(ctx) if plan.deletions.removed else None
    if refused is None:
        return plan
    held_ids = tuple(sorted({*plan.deletions.removed, *plan.deletions.held}))
    return replace(plan, deletions=Deletions(held=held_ids, reason=refused.message))


def _record_departures(ctx: TenantContext, plan: SourcePlan, *, is_confirmed: bool) -> None:
    """Record the documents that this listing removes, so that later listings consider them.

    This is written before the documents are deleted: after a crash in between, they are counted
    twice.
    """
    if plan.listing is None or plan.window is None:
        return
    departed = len(plan.listing.lost.intersection(plan.deletions.removed))
    if departed or (is_confirmed and plan.window.left):
        ctx.guard()
        name = plan.config.name
        ctx.catalog.departures.record(ctx.ref, name, departed, is_confirmed=is_confirmed)


def _record_listing(
    ctx: TenantContext,
    plan: SourcePlan,
    listing: SourceListing,
    documents: list[CatalogDocument],
    names: MaskedNames,
) -> ListingReport:
    config, deletions = plan.config, plan.deletions
    moved: dict[str, str] = {}
    ctx.guard()
    scope = config.scope or ctx.tenant.access.scope
    stores = [store for store in list_all_stores() if store.uses_source(ctx.tenant, config.name)]
    if stores and has_scope_changes(listing, documents, scope):
        # Derived documents would show a file to its former readers until they are derived again.
        for store in stores:
            store.withdraw(ctx, config.name)
    if deletions.removed:
        moved = find_successors(listing, documents, deletions.removed, scope)
        ctx.catalog.moves.record(ctx.ref, moved)
        removed_ids = [id_ for id_ in deletions.removed if id_ not in moved]
        ctx.catalog.documents.mark_deleted(ctx.ref, removed_ids)
        uris = {row.document_id: row.uri for row in documents}
        events = [{"uri": uris[document_id]} for document_id in deletions.removed]
        ctx.catalog.events.write(ctx.ref, "document_removed", events)
    # The path of a folder can contain a credential, too.
    reason = names.mask(deletions.reason) if deletions.held else None
    if deletions.held:
        payload = {"source": config.name, "vanished": len(listing.lost), "known": listing.known}
        if plan.window is not None:
            payload["since"] = plan.window.since.isoformat()
        ctx.catalog.events.write(ctx.ref, "deletions_held", [{**payload, "reason": reason}])
    changes = _write_changes(ctx, listing, names, scope, first=frozenset(moved.values()))
    is_whole = len(changes) == len(listing.changes)
    _update_scopes(ctx, listing, documents, scope)
    ctx.catalog.syncs.record_listing(
        ctx.ref,
        config.name,
        digest=listing.digest if is_whole else build_partial_digest(plan.settings),
        at_ns=listing.listed_at_ns,
        held_deletions=len(deletions.held),
        held_reason=reason,
        folders=_list_folders_to_store(plan, names),
        seconds=plan.seconds,
    )
    kinds = [change.kind for change in changes]
    fresh = [change for change in changes if change.kind in {"added", "changed"}]
    return ListingReport(
        added=kinds.count("added"),
        changed=kinds.count("changed"),
        touched=kinds.count("touched"),
        unchanged=listing.unchanged,
        removed=len(deletions.removed),
        moved=len(moved),
        held=len(deletions.held),
        failed=kinds.count("rejected"),
        bytes=sum(change.document.size for change in fresh),
        sample=sample_changes(fresh, documents, deletions.removed, names, moved),
        rejected=list_rejected_documents(changes, names),
        left_out=Counter(listing.left_out),
    )


def _list_folders_to_store(plan: SourcePlan, names: MaskedNames) -> list[list[Any]] | None:
    """Return the folders of a listing as JSON, without folders with a credential in their name."""
    if plan.folders is None:
        return None
    return encode_folders(
        {at: identity for at, identity in plan.folders.items() if not at or names.mask(at) == at}
    )


def _write_changes(
    ctx: TenantContext,
    listing: SourceListing,
    names: MaskedNames,
    scope: str,
    *,
    first: Collection[str],
) -> Sequence[Change]:
    """Write the changes of a listing, but bulk changes only while there is time.

    People wait for the rest of the run. The next run lists the remaining bulk changes. The changes
    of the `first` documents are written in any case. Return the changes that were written.
    """
    lines, others = list[Change](), list[Change]()
    for change in listing.changes:
        document = change.document
        in_bulk = document.lane == _BULK_LANE and document.document_id not in first
        (lines if in_bulk else others).append(change)
    _write_urgent_changes(ctx, listing, names, scope, others)
    seconds = ctx.limits.hurried_seconds if others else ctx.limits.list_seconds
    stage = StageTime(ctx, min(seconds, ctx.limits.list_seconds))
    written = 0
    for batch in batched(lines, _BULK_BATCH):
        names.prepare(change.document for change in batch)
        rows = [
            _build_row(change, listing.listed_at_ns, names, scope, ctx.tenant.labels)
            for change in batch
        ]
        ctx.guard()
        ctx.catalog.documents.record(ctx.ref, rows, lane=_BULK_LANE)
        written += len(batch)
        if stage.is_over(is_urgent=False):
            break
    return [*others, *lines[:written]]


def _write_urgent_changes(
    ctx: TenantContext,
    listing: SourceListing,
    names: MaskedNames,
    scope: str,
    changes: Sequence[Change],
) -> None:
    unlaned = [change for change in changes if change.document.lane is None]
    urgent = {c.document.document_id for c in nlargest(_MAX_URGENT, unlaned, key=_get_urgency_key)}
    for batch in batched(changes, _BATCH_DOCUMENTS):
        names.prepare(change.document for change in batch)
        lanes: dict[int, list[DocumentChange]] = {0: [], _BULK_LANE: []}
        for change in batch:
            row = _build_row(change, listing.listed_at_ns, names, scope, ctx.tenant.labels)
            lane = change.document.lane
            if lane is None:
                lane = 0 if change.document.document_id in urgent else _BULK_LANE
            lanes[lane].append(row)
        ctx.guard()
        for lane, rows in lanes.items():
            ctx.catalog.documents.record(ctx.ref, rows, lane=lane)


def _get_urgency_key(change: Change) -> tuple[bool, datetime]:
    """Return a sort key that is larger for an edit than for a new document, then for newer content.

    A listing of a bulk import may also contain a document that a person has just saved.
    """
    return change.kind == "changed", change.modified_at


def _update_scopes(
    ctx: TenantContext, listing: SourceListing, documents: list[CatalogDocument], scope: str
) -> None:
    settled = listing.removed | listing.scoped
    settled |= {change.document.document_id for change in listing.changes}
    moved = [
        row.document_id
        for row in documents
        if row.access_scope != scope
        and row.status != "DELETED"
        and row.document_id not in settled
        # Documents of pages have the scope that follows from the page tree.
        and row.page_uuid is None
    ]
    for batch in batched(moved, _BATCH_DOCUMENTS):
        rows = ctx.catalog.documents.find(ctx.ref.id, batch)
        changes = [replace(build_change_from_row(row), access_scope=scope) for row in rows]
        ctx.catalog.documents.record(ctx.ref, changes, lane=0)


def _drop_removed_sources(ctx: TenantContext, *, allow_deletes: bool) -> ListingReport:
    """Delete documents whose source is no longer in the tenant's configuration."""
    removed = held_count = 0
    for plan in plan_removed_sources(ctx, allow_deletes=allow_deletes):
        ctx.guard()
        deletions = plan.deletions
        if deletions.removed and (refused := find_deletion_refusal(ctx)) is not None:
            deletions = Deletions(held=deletions.removed, reason=refused.message)
        if deletions.held:
            ctx.catalog.syncs.record_listing(
                ctx.ref,
                plan.name,
                digest="",
                at_ns=time.time_ns(),
                held_deletions=len(deletions.held),
                held_reason=deletions.reason,
            )
            held_count += len(deletions.held)
            continue
        ctx.catalog.documents.mark_deleted(ctx.ref, plan.deletions.removed)
        events = [{"uri": plan.uris[document_id]} for document_id in plan.deletions.removed]
        ctx.catalog.events.write(ctx.ref, "document_removed", events)
        ctx.catalog.syncs.delete(ctx.ref, plan.name)
        removed += len(plan.deletions.removed)
    return ListingReport(removed=removed, held=held_count)


def _list_declared_types(tenant: Tenant) -> frozenset[str]:
    """Return the source types that the tenant's kinds of sources and chunkers declare."""
    kinds = [tenant.source_kind(source) for source in tenant.sources]
    return tenant.chunk_types.union(*(kind.source_types or () for kind in kinds))


def _build_row(
    change: Change,
    listed_at_ns: int,
    names: MaskedNames,
    scope: str,
    labels: Mapping[str, str],
) -> DocumentChange:
    document = change.document
    metadata = names.mask_metadata(document.source_metadata)
    if labels:
        metadata = replace(metadata, metadata={**metadata.metadata, **labels})
    error = None if change.error is None else names.mask(change.error.message)
    kind = None if change.error is None else failure_kind(change.error)
    if metadata.access_scope != document.source_metadata.access_scope:
        # A masked scope would be another scope: it would exclude its readers, and might admit
        # others.
        error = "its access scope contains a credential: choose a different scope"
        kind = "credential"
    return DocumentChange(
        document_id=document.document_id,
        source=document.source,
        source_type=names.mask_source_type(document),
        path=names.mask_path(document).encode("utf-8", "surrogateescape"),
        uri=names.mask_uri(document),
        facts=document.facts,
        listed_at_ns=listed_at_ns,
        content_sha256=change.content_sha256,
        modified_at=change.modified_at,
        media_type=document.media_type,
        access_scope=metadata.access_scope or scope,
        tags=metadata.tags,
        metadata=metadata.metadata,
        said_title=metadata.title,
        error=error,
        error_kind=kind,
        source_id=document.source_id,
        page_uuid=document.page_uuid,
    )


@dataclass(frozen=True, slots=True)
class ListedChange:
    """One document that was added, changed, removed, or moved from a `former` uri."""

    kind: str
    uri: str
    bytes: int
    former: str = ""


@dataclass(frozen=True, slots=True)
class ListingReport:
    """Report on a listing of all sources.

    Attributes:
        touched: number of documents with a new size, time or inode but the same content.
        moved: removed documents whose content was found in another location; each of them is also
            counted as added.
        held: documents that vanished in suspicious numbers and were not deleted.
        left_out: how many files each source excludes, by the rule that excludes them.
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
    moved: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def documents(self) -> int:
        """Return the number of documents in the sources."""
        return self.added + self.changed + self.touched + self.unchanged + self.failed

    def plus(self, other: ListingReport) -> ListingReport:
        """Return the sum of both reports."""
        names = [field.name for field in fields(self)]
        return ListingReport(*(getattr(self, name) + getattr(other, name) for name in names))


def sample_changes(
    changes: Sequence[Change],
    documents: Collection[CatalogDocument],
    removed: Iterable[str],
    names: MaskedNames,
    moved: Mapping[str, str],
) -> tuple[ListedChange, ...]:
    """Return the first documents that were added, changed, moved or removed."""
    uris = {row.document_id: row.uri for row in documents} if moved else {}
    former = {new: uris[old] for old, new in moved.items()}
    shown = [
        ListedChange(
            "moved" if change.document.document_id in former else change.kind,
            names.mask_uri(change.document),
            change.document.size,
            former.get(change.document.document_id, ""),
        )
        for change in changes[:_SAMPLED_CHANGES]
    ]
    sampled_removals = set(
        islice((id_ for id_ in removed if id_ not in moved), _SAMPLED_CHANGES - len(shown))
    )
    shown += [
        ListedChange("removed", row.uri, row.facts.size)
        for row in documents
        if row.document_id in sampled_removals
    ]
    return tuple(shown)


def list_rejected_documents(
    changes: Iterable[Change], names: MaskedNames
) -> tuple[DocumentNote, ...]:
    """Return the first documents that could not be read, with reasons."""
    notes = (
        DocumentNote(
            change.document.document_id,
            names.mask_uri(change.document),
            names.mask(change.error.message),
        )
        for change in changes
        if change.error is not None
    )
    return tuple(islice(notes, _SAMPLED_CHANGES))


def forget_former_contents(ctx: TenantContext) -> None:
    """Delete former contents of records that no build needs; no other run may be active."""
    if any(ctx.tenant.source_kind(config).holds_records for config in ctx.tenant.sources):
        forgotten = ctx.catalog.records.forget_former_contents(ctx.ref)
        drop_blobs(ctx.catalog, ctx.blobs, ctx.ref, forgotten)
