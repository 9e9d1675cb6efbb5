"""List a tenant's sources and compare the listings with the catalog; read-only.

A source with an unchanged digest need not be compared again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from rag_assets.billing.master_key import find_key_file
from rag_assets.common.errors import ListingFailed
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.diff import (
    Change,
    KnownDocument,
    ListingComparison,
    hash_documents,
)
from rag_assets.ingest.sources.disk import FolderIdentity, encode_folders
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext
from rag_assets.ingest.sources.model import (
    DocumentSource,
    FilteringSource,
    FolderSource,
    ListedDocument,
    StateSource,
    WithholdingSource,
)
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.uploads import UploadedFiles
from rag_assets.privacy.masker import MASKING_VERSION
from rag_assets.privacy.secrets.scanner import rules_version
from rag_assets.storage.blobs.store import find_blobs_folder, open_blobs
from rag_assets.storage.catalog.builds.syncs import PARTLY
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
    """A digest of a listing, independent of its order and computed while streaming."""

    def __init__(self, settings: str = "") -> None:
        self._settings = settings
        self._sum = 0
        self.count = 0

    def list_source(self, source: DocumentSource) -> Iterator[ListedDocument]:
        """List a source; add its documents, and then the folders that it read, to the digest."""
        yield from self.track(source.list())
        for folder in encode_folders(source.folders if isinstance(source, FolderSource) else {}):
            self._add(f"folder/{folder}")

    def track(self, documents: Iterable[ListedDocument]) -> Iterator[ListedDocument]:
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


def compute_state_digest(source: DocumentSource, settings: str = "") -> str | None:
    """Return the digest of a source's state; None if the source does not know its state.

    A source that cannot report its state now is listed instead, so that the listing shows the
    problem.
    """
    if not isinstance(source, StateSource):
        return None
    try:
        state = source.state()
    except ListingFailed:
        return None
    return f"state-{compute_key('state', state)}{settings[:8]}"


def build_partial_digest(settings: str) -> str:
    """Return the digest of a partly recorded listing, so that its source is listed again."""
    return f"{PARTLY}{settings[:8]}"


def compute_settings_key(tenant: Tenant, config: SourceConfig) -> str:
    """Return a hash of the credential rules and of a source's settings, except name and root."""
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
    """Open the tenant's sources: folders, records in the catalog, and uploaded files."""
    key_file = find_key_file(settings, os.environ)
    state = (settings.local, key_file, find_blobs_folder(settings.blobs_url))
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
    """List a source completely, hash documents that may have changed, and compare; read-only."""
    listed_at_ns = time.time_ns()
    # Read the state first, so that changes during the listing lead to another state.
    known_state = compute_state_digest(source, settings)
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
    suspects = comparison.find_suspects(_collect_scopes(digest.list_source(source), scoped))
    found_changes = comparison.find_changes(hash_documents(source, suspects))
    changes = tuple(change for change in found_changes if not _is_known_failure(change, rows))
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
        folders=source.folders if isinstance(source, FolderSource) else None,
        scoped=frozenset(scoped),
        left_out=source.left_out if isinstance(source, FilteringSource) else {},
        withheld=frozenset(withheld),
    )


def find_successors(
    listing: SourceListing,
    documents: Iterable[CatalogDocument],
    removed: Collection[str],
    scope: str,
) -> dict[str, str]:
    """Match removed documents with new documents that have the same content and access scope."""
    fresh: dict[tuple[str | None, str], Change] = {
        (change.content_sha256, change.document.source_metadata.access_scope or scope): change
        for change in listing.changes
        if change.kind == "added" and change.content_sha256 is not None
    }
    removed_ids = frozenset(removed)
    return {
        row.document_id: found.document.document_id
        for row in documents
        if row.document_id in removed_ids
        and row.status == "READY"
        and (found := fresh.get((row.content_sha256, row.access_scope))) is not None
    }


def has_scope_changes(
    listing: SourceListing, documents: Iterable[CatalogDocument], scope: str
) -> bool:
    """Return whether the listing changes the access scope of a document that is not removed."""
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
    """Return a listing without pruned or deleted documents that are unchanged in the source."""
    if not listing.changes:
        return listing
    buried = ctx.catalog.documents.tombstones(ctx.ref.id)
    changes = tuple(change for change in listing.changes if not _is_buried(change, buried))
    unchanged = listing.unchanged + len(listing.changes) - len(changes)
    return replace(listing, changes=changes, unchanged=unchanged)


def _collect_scopes(
    documents: Iterable[ListedDocument], scoped: set[str]
) -> Iterator[ListedDocument]:
    for document in documents:
        if document.source_metadata.access_scope is not None:
            scoped.add(document.document_id)
        yield document


def _is_known_failure(change: Change, rows: Mapping[str, CatalogDocument]) -> bool:
    """Return whether a document is unreadable for the same reason as before."""
    row = rows.get(change.document.document_id)
    return (
        change.error is not None
        and row is not None
        and row.status == "FAILED"
        and row.error_message == change.error.message
        and row.facts == change.document.facts
    )


def _is_buried(change: Change, buried: Mapping[str, str]) -> bool:
    """Return whether a document was pruned or deleted, and has not changed in its source since."""
    content = change.content_sha256 or UNREADABLE
    same = buried.get(change.document.document_id) == content
    return same and change.kind in {"added", "rejected"}
