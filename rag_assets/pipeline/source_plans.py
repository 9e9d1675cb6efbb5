"""Plan the changes that the listings of a tenant's sources lead to; read-only.

A sync acts on the plans and the command `plan` shows them, so both follow the same rules: which
documents are deleted, which are kept until a person allows their deletion, and how a source is
handled that cannot be listed or is no longer configured.

Documents are kept if too many vanish at once or within a window of time, or if their folder is
empty or was replaced by another folder, because an unmounted disk looks like that.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.diff import are_deletions_suspicious
from rag_assets.ingest.sources.disk import FolderIdentity, decode_folders
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.model import DocumentSource, FolderSource, StateSource, parse_path
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import is_any_document_pending
from rag_assets.pipeline.source_listing import (
    SourceListing,
    compare_source,
    compute_settings_key,
    compute_state_digest,
    drop_pruned_changes,
    open_sources,
)
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.builds.syncs import PARTLY, DeletionWindow, Sync
from rag_assets.storage.catalog.documents.model import CatalogDocument

WORK_PER_LISTING, WORK_PER_LISTING_OF_CHANGES = 50.0, 10.0
"""Seconds of work per second of listing, if the change watcher reports no change and if it does."""


@dataclass(frozen=True, slots=True)
class Deletions:
    """Decision about the documents that a source no longer holds.

    Attributes:
        held: ids of documents kept until a person allows their deletion, or accepts a catalog
            restored from an older dump; in order.
        reason: why the documents are held; the text may name a folder.
    """

    removed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The changes that follow from a listing of one source.

    Attributes:
        known: the catalog's documents of the source, including deleted ones.
        listing: None if the source could not be listed; its documents stay as they are.
        folders: the folders to store with the listing; None: keep the stored folders.
        window: the time window in which the source's deletions are judged; None without deletions.
        seconds: duration of the listing; None if a recorded listing is reused.
    """

    config: SourceConfig
    source: DocumentSource
    known: list[CatalogDocument]
    settings: str
    listing: SourceListing | None
    deletions: Deletions = field(default_factory=Deletions)
    folders: Mapping[str, FolderIdentity] | None = None
    window: DeletionWindow | None = None
    error: ListingFailed | None = None
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RemovedSourcePlan:
    """The changes after a source was removed from the configuration; `uris` are by document id."""

    name: str
    uris: dict[str, str]
    deletions: Deletions


def decide_deletions(
    vanished: Collection[str],
    *,
    lost: int,
    known: int,
    window: DeletionWindow | None = None,
    allow_deletes: bool = False,
) -> Deletions:
    """Decide to delete vanished documents, or to hold all of them if they are suspiciously many.

    Args:
        vanished: ids of documents that the source no longer holds.
        lost: how many of the vanished documents do not appear under another name in the same
            listing.
        known: number of documents that the source held before.
        window: earlier losses that are judged together with these.
    """
    ids = tuple(sorted(vanished))
    if allow_deletes or not lost:
        return Deletions(removed=ids)
    if are_deletions_suspicious(lost, known):
        return Deletions(held=ids, reason=f"{lost} of {known} documents disappeared at once")
    if window is not None and are_deletions_suspicious(lost + window.left, known + window.left):
        total_lost, total_known = lost + window.left, known + window.left
        return Deletions(
            held=ids,
            reason=f"{total_lost} of {total_known} documents disappeared within"
            f" {window.hours} hours",
        )
    return Deletions(removed=ids)


def plan_sources(
    ctx: TenantContext,
    *,
    allow_deletes: bool = False,
    relist: bool = True,
    reuse_listings: bool | None = None,
) -> Iterator[SourcePlan]:
    """List every configured source completely, one after the other, and compare each.

    Args:
        relist: also list the sources that report an unchanged state since their last listing.
        reuse_listings: without `relist`, reuse the recorded listings of sources that cannot report
            a state; a former run of the same sync has recorded these listings. None: reuse them if
            they are recent and documents of this sync still wait.
    """
    opened = open_sources(ctx.tenant, ctx.settings, ctx.catalog)
    syncs = ctx.catalog.syncs.all(ctx.ref.id)
    for config, source in zip(ctx.tenant.sources, opened, strict=True):
        settings = compute_settings_key(ctx.tenant, config)
        last = syncs.get(source.name)
        if not relist and last:
            reuse = _is_listing_shared(ctx, last) if reuse_listings is None else reuse_listings
            listing = _find_unchanged_listing(ctx, source, settings, last, reuse=reuse)
            if listing is not None:
                yield SourcePlan(config, source, [], settings, listing)
                continue
        started = time.monotonic()
        known = list(ctx.catalog.documents.stream(ctx.ref.id, source.name))
        try:
            compared = compare_source(source, known, settings)
        except ListingFailed as error:
            yield SourcePlan(config, source, known, settings, None, error=error)
            continue
        seconds = time.monotonic() - started
        listing = drop_pruned_changes(ctx, compared)
        window = None
        if listing.removed or allow_deletes:
            hours = config.deletion_window_hours
            window = ctx.catalog.departures.window(ctx.ref, source.name, hours)
        former = decode_folders(last.folders or ()) if last and not allow_deletes else {}
        lost_by_folder = _find_lost_by_folder(source, listing, known, former)
        if lost_by_folder:
            deletions = _hold_lost_folders(source, listing, lost_by_folder, window)
        elif not allow_deletes and _is_emptied(ctx, config, listing):
            reason = f"no document is left in {_describe_place(source)} (is a disk not mounted?)"
            deletions = Deletions(held=tuple(sorted(listing.removed)), reason=reason)
        else:
            deletions = decide_deletions(
                listing.removed - listing.withheld,
                lost=len(listing.lost),
                known=listing.known,
                window=window,
                allow_deletes=allow_deletes,
            )
        # Documents that a source excludes by its rules are deleted immediately, however many.
        removed = tuple(sorted({*deletions.removed, *listing.withheld}))
        deletions = replace(deletions, removed=removed)
        folders = listing.folders and {
            **listing.folders,
            **{at: former[at] for at in lost_by_folder},
        }
        yield SourcePlan(
            config, source, known, settings, listing, deletions, folders, window, seconds=seconds
        )


def _find_lost_by_folder(
    source: DocumentSource,
    listing: SourceListing,
    documents: Sequence[CatalogDocument],
    former: Mapping[str, FolderIdentity],
) -> dict[str, set[str]]:
    """Return the ids of the lost documents in each folder that was replaced or is missing."""
    if listing.folders is None or not isinstance(source, FolderSource):
        return {}
    lost_by_folder = {}
    for folder, identity in sorted(former.items()):
        # A folder that the configuration now excludes is not listed.
        now = listing.folders.get(folder) or FolderIdentity.from_path(source.locate_folder(folder))
        if now is None or not now.is_same(identity):
            lost_by_folder[folder] = {
                row.document_id
                for row in documents
                if row.document_id in listing.lost and _is_in_folder(parse_path(row.uri), folder)
            }
    return {folder: lost for folder, lost in lost_by_folder.items() if lost}


def _hold_lost_folders(
    source: DocumentSource,
    listing: SourceListing,
    lost_by_folder: Mapping[str, Collection[str]],
    window: DeletionWindow | None,
) -> Deletions:
    """Hold the lost documents of replaced folders; decide_deletions decides about all others."""
    held_ids = frozenset(id_ for lost in lost_by_folder.values() for id_ in lost)
    others = decide_deletions(
        listing.removed - listing.withheld - held_ids,
        lost=len(listing.lost - held_ids),
        known=listing.known - len(held_ids),
        window=window,
    )
    reason = (
        f"the folder at {_describe_place(source, next(iter(lost_by_folder)))} is not the same"
        " folder as at the last listing (is a different disk mounted, or none?)"
    )
    return Deletions(others.removed, tuple(sorted({*held_ids, *others.held})), reason)


def _is_emptied(ctx: TenantContext, config: SourceConfig, listing: SourceListing) -> bool:
    """Return whether a source of folders has lost all documents, as if a disk were unmounted."""
    of_folders = ctx.tenant.source_kind(config).reads_folders
    return of_folders and not listing.listed and bool(listing.lost)


def _describe_place(source: DocumentSource, folder: str = "") -> str:
    return str(source.locate_folder(folder)) if isinstance(source, FolderSource) else "its folder"


def _is_in_folder(path: str, folder: str) -> bool:
    """Return whether a document is in a folder; "" contains every document with a relative path."""
    if not folder:
        return not path.startswith("/")
    return path.startswith(f"{folder.rstrip('/')}/")


def _is_listing_shared(ctx: TenantContext, last: Sync) -> bool:
    """Return whether this run continues the sync of a listing that is recent for its duration."""
    work_share = WORK_PER_LISTING_OF_CHANGES if ctx.has_changed() else WORK_PER_LISTING
    age_seconds = (time.time_ns() - (last.listed_at_ns or 0)) / 1e9
    is_recent = 0 <= age_seconds < (1 + work_share) * last.listing_seconds
    return is_recent and is_any_document_pending(ctx)


def _find_unchanged_listing(
    ctx: TenantContext, source: DocumentSource, settings: str, last: Sync, *, reuse: bool
) -> SourceListing | None:
    """Return a listing without changes if a source is known to be unchanged; otherwise None."""
    listed_at_ns = time.time_ns()
    if last.held_deletions or last.listing_digest is None or last.listed_at_ns is None:
        return None
    if reuse and not isinstance(source, StateSource):
        digest = last.listing_digest
        if digest.startswith(PARTLY) or not digest.endswith(settings[:8]):
            return None
        # Files that may have changed again since then are read by the next listing.
        listed_at_ns = last.listed_at_ns
    elif compute_state_digest(
        source, settings
    ) == last.listing_digest and not ctx.catalog.documents.count_documents_to_reread(
        ctx.ref.id, [source.name]
    ):
        digest = last.listing_digest
    else:
        return None
    count = ctx.catalog.documents.count(ctx.ref.id, source.name)
    return SourceListing(
        changes=(),
        removed=frozenset(),
        lost=frozenset(),
        known=count,
        listed=count,
        unchanged=count,
        digest=digest,
        listed_at_ns=listed_at_ns,
    )


def plan_removed_sources(
    ctx: TenantContext, *, allow_deletes: bool = False
) -> Iterator[RemovedSourcePlan]:
    """Yield a plan for each source that has documents but is no longer configured."""
    recorded = {*ctx.catalog.syncs.all(ctx.ref.id), *ctx.catalog.documents.sources(ctx.ref.id)}
    for name in sorted(recorded - {config.name for config in ctx.tenant.sources}):
        rows = ctx.catalog.documents.stream(ctx.ref.id, name)
        uris = {row.document_id: row.uri for row in rows if row.status != "DELETED"}
        deletions = decide_deletions(
            uris, lost=len(uris), known=len(uris), allow_deletes=allow_deletes
        )
        if deletions.held:
            deletions = replace(
                deletions, reason="the source was removed from the tenant's configuration"
            )
        yield RemovedSourcePlan(name, uris, deletions)


def mask_failure(plan: SourcePlan, masker: Masker) -> ListingFailed:
    """Return the error of a failed listing, with credentials in its path masked."""
    error = plan.error or ListingFailed(f"source {plan.config.name!r} was not listed")
    return ListingFailed(masker.text(error.message), hint=error.hint)


def require_any_listed(failures: Sequence[ListingFailed], sources: int) -> None:
    """Raise an error if every source of a tenant failed; the messages may be shown to people."""
    if not failures or len(failures) < sources:
        return
    if len(failures) == 1:
        raise failures[0]
    raise ListingFailed(
        "; ".join(failure.message for failure in failures),
        hint="check that the folders are mounted",
    )
