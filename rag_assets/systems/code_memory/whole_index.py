"""Reading and indexing a project's repositories again, as a whole."""

from __future__ import annotations

from rag_assets.api.run_responses import IndexedProject
from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.git import GitSource
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant


def index_again(
    catalog: Catalog, settings: Settings, record: TenantRecord, *, by: str
) -> IndexedProject:
    """Have all documents of a tenant read, parsed and indexed again; no vector is paid twice.

    Args:
        catalog: of the installation.
        settings: of the installation.
        record: the tenant.
        by: name of the caller, for the event.

    Raises:
        TenantGone: the tenant was removed.
    """
    commits = _commits(catalog, settings, Tenant.from_config(record.config))
    documents = catalog.reindex_requests.request_tenant(record.ref, by)
    # Without documents nothing is told of: files that no listing has found are to be found, too.
    catalog.changes.tell([record.id])
    commit = next(iter(commits.values())) if len(commits) == 1 else None
    return IndexedProject(record.id, commit, commits, documents)


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
