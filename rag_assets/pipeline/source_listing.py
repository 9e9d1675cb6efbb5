"""List a tenant's sources, compare them with the catalog, and plan the changes; read-only.

A sync acts on the plans and the command `plan` shows them, so both follow the same rules: which
documents are deleted, which are kept until a person allows their deletion, and what happens to a
source that cannot be listed or is no longer configured.

Documents are kept if too many vanish at once or within a window of time, or if their folder is
empty or was replaced by another folder. An unmounted disk looks like that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.billing.master_key import existing_key_file
from rag_assets.common.errors import ListingFailed
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.diff import (
    Change,
    KnownDocument,
    ListingComparison,
    are_deletions_suspicious,
    hash_documents,
)
from rag_assets.ingest.sources.disk import FolderIdentity, decode_folders, encode_folders
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext
from rag_assets.ingest.sources.model import (
    DocumentSource,
    FilteringSource,
    FolderSource,
    ListedDocument,
    StateSource,
    WithholdingSource,
    parse_path,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.uploads import UploadedFiles
from rag_assets.privacy.masker import MASKING_VERSION, Masker
from rag_assets.privacy.secrets.scanner import rules_version
from rag_assets.storage.blobs.store import blobs_folder, open_blobs
from rag_assets.storage.catalog.builds.syncs import PARTLY, DeletionWindow, Sync
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.model import CatalogDocument
from rag_assets.storage.catalog.documents.removals import UNREADABLE
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_profile


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The documents of one source, compared with the catalog.

    Attributes:
        lost: removed documents whose content does not appear elsewhere in the same listing.
        listed: how many documents the source holds.
        folders: the listed folders, see FolderSource; None if no folder was listed.
        scoped: ids of documents with an access scope set by their source.
        left_out: how many documents the source leaves out because of its rules.
        withheld: removed documents that the source still has, but does not list because of its
            rules.
    """

    changes: tuple[Change, ...]
    removed: frozenset[str]
    lost: frozenset[str]
    known: int
    listed: int
    unchanged: int
    digest: str
    listed_at_ns: int
    folders: Mapping[str, FolderIdentity] | None = None
    scoped: frozenset[str] = frozenset()
    left_out: Mapping[str, int] = field(default_factory=dict)
    withheld: frozenset[str] = frozenset()


class ListingDigest:
    """A digest of a listing, independent of its order and computed while streaming.

    Attributes:
        count: how many documents were added.

    Args:
        settings: the key of further settings that affect the listed documents; see settings_key.
    """

    def __init__(self, settings: str = "") -> None:
        self._settings = settings
        self._sum = 0
        self.count = 0

    def of(self, source: DocumentSource) -> Iterator[ListedDocument]:
        """List a source; add its documents, and then the folders that it read, to the digest."""
        yield from self.through(source.list())
        for folder in encode_folders(find_listed_folders(source) or {}):
            self._add(f"folder/{folder}")

    def through(self, documents: Iterable[ListedDocument]) -> Iterator[ListedDocument]:
        """Yield documents and add them to the digest."""
        for document in documents:
            facts = document.facts
            line = f"{document.document_id}/{facts.size}/{facts.mtime_ns}/{facts.ctime_ns}"
            self._add(f"{line}/{facts.identity}")
            self.count += 1
            yield document

    def hexdigest(self) -> str:
        """Return the digest so far."""
        return f"{self.count:x}-{self._sum % (1 << 128):032x}{self._settings[:8]}"

    def _add(self, line: str) -> None:
        self._sum += int(sha256_hex(line)[:32], 16)


def find_listed_folders(source: DocumentSource) -> Mapping[str, FolderIdentity] | None:
    """Return the folders of a source's last listing; None if it reads none."""
    return source.folders if isinstance(source, FolderSource) else None


def digest_without_listing(source: DocumentSource, settings: str = "") -> str | None:
    """Return the digest of a source's state; None if the source does not know its state.

    A source that cannot report its state now is listed instead, so that the listing shows the
    problem.

    Args:
        settings: see settings_key.
    """
    if not isinstance(source, StateSource):
        return None
    try:
        state = source.state()
    except ListingFailed:
        return None
    return f"state-{compute_key('state', state)}{settings[:8]}"


def partial_digest(settings: str) -> str:
    """Return the digest to store for a partly recorded listing, so that the source is listed again.

    Args:
        settings: see settings_key.
    """
    return f"{PARTLY}{settings[:8]}"


def settings_key(tenant: Tenant, config: SourceConfig) -> str:
    """Return the hash of the settings that change a listing's meaning, but not its documents."""
    moved = {
        "name",
        "follow_root_link",
        "deletion_window_hours",
        *tenant.source_kind(config).path_fields,
    }
    settings = config.model_dump(mode="json", exclude=moved)
    # Names are scanned for credentials too, and again whenever the rules change.
    return compute_key("source", tenant.access.scope, settings, MASKING_VERSION, rules_version())


def open_sources(tenant: Tenant, settings: Settings, catalog: Catalog) -> list[DocumentSource]:
    """Open the tenant's sources: folders, records in the catalog, and uploaded files.

    Raises:
        ConfigurationError: a root may not be used.
    """
    key_file = existing_key_file(settings, os.environ)
    state = (settings.local, key_file, blobs_folder(settings.blobs_url))
    context = SourceContext(
        base=settings.home,
        records=catalog.records.for_tenant(tenant.id),
        allowed_roots=tuple(settings.allowed_roots),
        forbidden_roots=tuple(path for path in state if path is not None),
        uploads=UploadedFiles(catalog.uploads.for_tenant(tenant.id), open_blobs(settings)),
        typed=get_profile(tenant.profile).typed_records,
    )
    return [tenant.source_kind(config).build(config, context) for config in tenant.sources]


def compare_source(
    source: DocumentSource, documents: Iterable[CatalogDocument], settings: str = ""
) -> SourceListing:
    """List a source, hash documents that may have changed, and compare; read-only.

    Args:
        settings: see settings_key.

    Raises:
        ListingFailed: the source could not be listed completely.
    """
    listed_at_ns = time.time_ns()
    # Read the state first, so that changes during the listing lead to another state.
    known_state = digest_without_listing(source, settings)
    rows = {document.document_id: document for document in documents}
    comparison = ListingComparison(
        KnownDocument(
            document_id=row.document_id,
            facts=row.facts,
            content_sha256=row.content_sha256,
            listed_at_ns=row.listed_at_ns,
            modified_at=row.modified_at,
            deleted=row.status == "DELETED",
        )
        for row in rows.values()
    )
    digest = ListingDigest(settings)
    scoped: set[str] = set()
    suspects = comparison.find_suspects(_collecting_scopes(digest.of(source), scoped))
    found = comparison.find_changes(hash_documents(source, suspects))
    changes = tuple(change for change in found if not _known_failure(change, rows))
    removed = comparison.list_removed()
    withheld = (
        source.list_withheld() & removed
        if removed and isinstance(source, WithholdingSource)
        else ()
    )
    found_again = {change.content_sha256 for change in changes if change.kind == "added"}
    return SourceListing(
        changes=changes,
        removed=removed,
        lost=frozenset(
            id_
            for id_ in removed.difference(withheld)
            if rows[id_].content_sha256 not in found_again
        ),
        known=sum(row.status != "DELETED" for row in rows.values()),
        listed=digest.count,
        unchanged=comparison.unchanged_count,
        digest=known_state or digest.hexdigest(),
        listed_at_ns=listed_at_ns,
        folders=find_listed_folders(source),
        scoped=frozenset(scoped),
        left_out=source.left_out if isinstance(source, FilteringSource) else {},
        withheld=frozenset(withheld),
    )


def successors(
    listing: SourceListing,
    documents: Iterable[CatalogDocument],
    removed: Collection[str],
    scope: str,
) -> dict[str, str]:
    """Return new documents with the content and readers of removed documents, by the removed ids.

    A removed document that was not indexed needs no successor.

    Args:
        scope: the access scope of documents without their own scope.
    """
    fresh: dict[tuple[str | None, str], Change] = {
        (change.content_sha256, change.document.source_metadata.access_scope or scope): change
        for change in listing.changes
        if change.kind == "added" and change.content_sha256 is not None
    }
    gone = frozenset(removed)
    return {
        row.document_id: found.document.document_id
        for row in documents
        if row.document_id in gone
        and row.status == "READY"
        and (found := fresh.get((row.content_sha256, row.access_scope))) is not None
    }


def changes_scope(listing: SourceListing, documents: Iterable[CatalogDocument], scope: str) -> bool:
    """Return whether a remaining document has other readers in the listing than before.

    Args:
        listing, documents, scope: see successors.
    """
    changed = {
        change.document.document_id: change.document.source_metadata.access_scope or scope
        for change in listing.changes
    }
    settled = listing.removed | (listing.scoped - changed.keys())
    return any(
        row.access_scope != changed.get(row.document_id, scope)
        for row in documents
        if row.status != "DELETED" and row.document_id not in settled
    )


def drop_pruned_changes(ctx: TenantContext, listing: SourceListing) -> SourceListing:
    """Leave out documents that were pruned or deleted and are unchanged in the source."""
    if not listing.changes:
        return listing
    buried = ctx.catalog.documents.tombstones(ctx.ref.id)
    changes = tuple(change for change in listing.changes if not _is_buried(change, buried))
    unchanged = listing.unchanged + len(listing.changes) - len(changes)
    return replace(listing, changes=changes, unchanged=unchanged)


def _collecting_scopes(
    documents: Iterable[ListedDocument], scoped: set[str]
) -> Iterator[ListedDocument]:
    for document in documents:
        if document.source_metadata.access_scope is not None:
            scoped.add(document.document_id)
        yield document


def _known_failure(change: Change, rows: Mapping[str, CatalogDocument]) -> bool:
    """Return whether a document is unreadable for the same reason as before.

    If so, its row does not change.
    """
    row = rows.get(change.document.document_id)
    return (
        change.error is not None
        and row is not None
        and row.status == "FAILED"
        and row.error_message == change.error.message
        and row.facts == change.document.facts
    )


def _is_buried(change: Change, buried: Mapping[str, str]) -> bool:
    """Return whether a document was pruned and has not changed since."""
    content = change.content_sha256 or UNREADABLE
    same = buried.get(change.document.document_id) == content
    return same and change.kind in {"added", "rejected"}


@dataclass(frozen=True, slots=True)
class Deletions:
    """Decision about the documents that a source no longer holds.

    Attributes:
        removed: ids of documents to delete, in order.
        held: ids of documents kept until a person allows their deletion, or accepts a catalog
            restored from an older dump; in order.
        reason: why they are kept; it may name a folder.
    """

    removed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The changes by a listing of one source.

    Attributes:
        known: the catalog's documents of the source, including deleted ones.
        settings: see settings_key.
        listing: None if the source could not be listed; its documents stay as they are.
        folders: the folders to store with the listing; None: keep the stored folders.
        window: the time window in which the source's deletions are judged; None without deletions.
        error: why the source could not be listed.
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


@dataclass(frozen=True, slots=True)
class RemovedSourcePlan:
    """The changes by the removal of a source from the tenant's configuration.

    Attributes:
        uris: uris of the source's documents, by id.
    """

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
    """Delete vanished documents; hold all of a source's if they are suspiciously many.

    Args:
        vanished: ids of documents that the source no longer holds.
        lost: how many of them do not appear under another name in the same listing.
        known: number of documents that the source held before.
        window: earlier losses that are judged together with these.
        allow_deletes: whether a person has allowed any number of deletions.
    """
    ids = tuple(sorted(vanished))
    if allow_deletes or not lost:
        return Deletions(removed=ids)
    if are_deletions_suspicious(lost, known):
        return Deletions(held=ids, reason=f"{lost} of {known} documents disappeared at once")
    if window is not None and are_deletions_suspicious(lost + window.left, known + window.left):
        left, of = lost + window.left, known + window.left
        return Deletions(
            held=ids, reason=f"{left} of {of} documents disappeared within {window.hours} hours"
        )
    return Deletions(removed=ids)


def plan_sources(
    ctx: TenantContext,
    *,
    allow_deletes: bool = False,
    relist: bool = True,
    reuse_listings: bool = False,
) -> Iterator[SourcePlan]:
    """List every configured source completely, one after the other, and compare each.

    Args:
        allow_deletes: whether a person has allowed any number of deletions.
        relist: list a source even if it knows that its state is unchanged since its last listing.
        reuse_listings: do not list a source again that does not know its state; a former run of
            the same sync has recorded its listing.
    """
    opened = open_sources(ctx.tenant, ctx.settings, ctx.catalog)
    syncs = ctx.catalog.syncs.all(ctx.ref.id)
    for config, source in zip(ctx.tenant.sources, opened, strict=True):
        settings = settings_key(ctx.tenant, config)
        last = syncs.get(source.name)
        if not relist and last:
            listing = _find_unchanged_listing(ctx, source, settings, last, reuse=reuse_listings)
            if listing is not None:
                yield SourcePlan(config, source, [], settings, listing)
                continue
        known = list(ctx.catalog.documents.stream(ctx.ref.id, source.name))
        try:
            compared = compare_source(source, known, settings)
        except ListingFailed as error:
            yield SourcePlan(config, source, known, settings, None, error=error)
            continue
        listing = drop_pruned_changes(ctx, compared)
        window = None
        if listing.removed or allow_deletes:
            hours = config.deletion_window_hours
            window = ctx.catalog.departures.window(ctx.ref, source.name, hours)
        former = decode_folders(last.folders or ()) if last and not allow_deletes else {}
        kept = _lost_with_their_folder(source, listing, known, former)
        if kept:
            deletions = _hold_with_folders(source, listing, kept, window)
        elif not allow_deletes and _is_emptied(ctx, config, listing):
            reason = f"no document is left in {_place(source)} (is a disk not mounted?)"
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
        folders = listing.folders and {**listing.folders, **{at: former[at] for at in kept}}
        yield SourcePlan(config, source, known, settings, listing, deletions, folders, window)


def _lost_with_their_folder(
    source: DocumentSource,
    listing: SourceListing,
    documents: Sequence[CatalogDocument],
    former: Mapping[str, FolderIdentity],
) -> dict[str, set[str]]:
    """Return the lost documents of each folder that was replaced or is missing.

    Args:
        former: the folders of the source's last listing.
    """
    if listing.folders is None or not isinstance(source, FolderSource):
        return {}
    found = {}
    for folder, identity in sorted(former.items()):
        # A folder that the configuration now excludes is not listed.
        now = listing.folders.get(folder) or FolderIdentity.from_path(source.locate_folder(folder))
        if now is None or not now.is_same(identity):
            found[folder] = {
                row.document_id
                for row in documents
                if row.document_id in listing.lost and _is_in_folder(parse_path(row.uri), folder)
            }
    return {folder: lost for folder, lost in found.items() if lost}


def _hold_with_folders(
    source: DocumentSource,
    listing: SourceListing,
    kept: Mapping[str, Collection[str]],
    window: DeletionWindow | None,
) -> Deletions:
    """Hold the lost documents of replaced folders; decide about all others as usual."""
    held = frozenset(id_ for lost in kept.values() for id_ in lost)
    others = decide_deletions(
        listing.removed - listing.withheld - held,
        lost=len(listing.lost - held),
        known=listing.known - len(held),
        window=window,
    )
    reason = (
        f"the folder at {_place(source, next(iter(kept)))} is not the same folder as at the last"
        " listing (is a different disk mounted, or none?)"
    )
    return Deletions(others.removed, tuple(sorted({*held, *others.held})), reason)


def _is_emptied(ctx: TenantContext, config: SourceConfig, listing: SourceListing) -> bool:
    """Return whether folders no longer contain any document, as with an unmounted disk."""
    of_folders = ctx.tenant.source_kind(config).reads_folders
    return of_folders and not listing.listed and bool(listing.lost)


def _place(source: DocumentSource, folder: str = "") -> str:
    return str(source.locate_folder(folder)) if isinstance(source, FolderSource) else "its folder"


def _is_in_folder(path: str, folder: str) -> bool:
    """Return whether a document is in a folder; "" contains all but those with absolute paths."""
    if not folder:
        return not path.startswith("/")
    return path.startswith(f"{folder.rstrip('/')}/")


def _find_unchanged_listing(
    ctx: TenantContext, source: DocumentSource, settings: str, last: Sync, *, reuse: bool
) -> SourceListing | None:
    """Return the listing of a source without a known change; None if it must be listed.

    Otherwise a sync of many slices would list all documents for each slice.

    Args:
        reuse: see plan_sources.
    """
    listed_at_ns = time.time_ns()
    if last.held_deletions or last.listing_digest is None or last.listed_at_ns is None:
        return None
    if reuse and not isinstance(source, StateSource):
        digest = last.listing_digest
        if digest.startswith(PARTLY) or not digest.endswith(settings[:8]):
            return None
        # Files that may have changed again since then are read by the next listing.
        listed_at_ns = last.listed_at_ns
    elif digest_without_listing(
        source, settings
    ) == last.listing_digest and not ctx.catalog.documents.reread_count(ctx.ref.id, [source.name]):
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
    """Plan the deletion of sources that are recorded and no longer configured."""
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
    """Return the failure of a listing with credentials in its path masked."""
    error = plan.error or ListingFailed(f"source {plan.config.name!r} was not listed")
    return ListingFailed(masker.text(error.message), hint=error.hint)


def require_any_listed(failures: Sequence[ListingFailed], sources: int) -> None:
    """Raise an error if every source of a tenant failed.

    Args:
        failures: the failure of each source that could not be listed; its message may be shown to
            people.
        sources: how many sources the tenant has.

    Raises:
        ListingFailed: no source could be listed.
    """
    if not failures or len(failures) < sources:
        return
    if len(failures) == 1:
        raise failures[0]
    raise ListingFailed(
        "; ".join(failure.message for failure in failures),
        hint="check that the folders are mounted",
    )
