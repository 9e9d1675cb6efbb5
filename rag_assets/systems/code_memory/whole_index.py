"""Reading and indexing a project's repositories again, and taking files out of the index."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rag_assets.api.run_responses import IndexedProject, InvalidatedFiles
from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.git import GitSource
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.code_memory.paths import documents_of, named_documents
from rag_assets.tenants.model import Tenant


def index_again(
    catalog: Catalog,
    settings: Settings,
    record: TenantRecord,
    *,
    paths: Sequence[str] = (),
    by: str,
) -> IndexedProject:
    """Have documents of a tenant read, parsed and indexed again; no vector is paid twice.

    Files that were taken out with `invalidate` come back; those that were deleted, purged or past
    their retention do not.

    Args:
        catalog: of the installation.
        settings: of the installation.
        record: the tenant.
        paths: of files, within a repository or as hits name them; none: all documents. One that no
            listing has found yet is listed soon.
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
    # Without documents nothing is told of: files that no listing has found are to be found, too.
    catalog.changes.tell([record.id])
    commit = next(iter(commits.values())) if len(commits) == 1 else None
    return IndexedProject(record.id, commit, commits, documents)


def invalidate(
    catalog: Catalog, record: TenantRecord, paths: Sequence[str], *, by: str
) -> InvalidatedFiles:
    """Take files out of the index, until they change or are indexed again by index_again.

    Args:
        catalog: of the installation.
        record: the tenant.
        paths: see index_again.
        by: name of the caller, for the events.

    Raises:
        OnHold: one of them is held.
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
    """The commit that each repository is at; one that cannot be read has none."""
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
