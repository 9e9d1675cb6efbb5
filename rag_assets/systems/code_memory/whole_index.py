"""Indexes a project's repositories again, and removes files from the index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rag_assets.api.run_responses import IndexedProject, InvalidatedFiles
from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.common.settings import Settings
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.code_memory.paths import documents_of, named_documents
from rag_assets.systems.code_memory.sources.git import GitSource
from rag_assets.tenants.model import Tenant


def index_again(
    catalog: Catalog,
    settings: Settings,
    record: TenantRecord,
    *,
    paths: Sequence[str] = (),
    by: str,
) -> IndexedProject:
    """Request that documents are read, parsed and indexed again; existing embeddings are reused.

    Files that were removed with `invalidate` return. Files that were deleted, purged or past their
    retention do not.

    Args:
        record: the tenant.
        paths: paths of files, within a repository or as hits show them; empty: all documents. New
            files, which the index does not know yet, are listed soon.
        by: name of the caller, for the event.

    Raises:
        TenantGone: the tenant was removed.
    """
    tenant = Tenant.from_config(record.config)
    commits = _commits(catalog, settings, tenant)
    requests = catalog.reindex_requests
    if paths:
        ids = _documents(catalog, tenant, paths)
        documents = sum(requests.request_document(record.ref, one, by) for one in sorted(ids))
        documents += requests.readmit(record.ref, named_documents(tenant, paths))
    else:
        documents = requests.request_tenant(record.ref, by) + requests.readmit(record.ref)
    # Announce the request even if no document is known: a listing must find new files.
    catalog.changes.notify([record.id])
    commit = next(iter(commits.values())) if len(commits) == 1 else None
    return IndexedProject(record.id, commit, commits, documents)


def invalidate(
    catalog: Catalog, record: TenantRecord, paths: Sequence[str], *, by: str
) -> InvalidatedFiles:
    """Remove files from the index until they change, or until index_again indexes them.

    Args:
        record: the tenant.
        paths: see index_again.
        by: name of the caller, for the events.

    Raises:
        OnHold: one of the files is on hold.
        TenantGone: the tenant was removed.
    """
    ids = _documents(catalog, Tenant.from_config(record.config), paths)
    remove = partial(catalog.removals.remove, record.ref, by=by, invalidate=True)
    gone = [one for one in sorted(ids) if remove(one)]
    return InvalidatedFiles(record.id, len(gone))


def _documents(catalog: Catalog, tenant: Tenant, paths: Sequence[str]) -> frozenset[str]:
    with catalog.database.begin() as connection:
        return documents_of(connection, tenant, paths)


def _commits(catalog: Catalog, settings: Settings, tenant: Tenant) -> dict[str, str | None]:
    """Return the current commit of each repository; None if it cannot be read."""
    found: dict[str, str | None] = {}
    try:
        sources = open_sources(tenant, settings, catalog)
    except ConfigurationError:
        return found
    for source in sources:
        if isinstance(source, GitSource):
            try:
                found[source.name] = source.describe().commit
            except ListingFailed:
                found[source.name] = None
    return found
