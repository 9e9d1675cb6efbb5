"""Requests to index documents again, for HTTP endpoints and panel pages."""

from __future__ import annotations

from rag_assets.api.responses import Reindexed
from rag_assets.api.write_model import Reindex, ReindexDocument, ReindexPage, ReindexSource
from rag_assets.common.errors import UnknownDocument, UnknownSource
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.tenants.model import Tenant


def reindexed(catalog: Catalog, tenant_id: str, body: Reindex, by: str) -> Reindexed:
    """Request that documents are read, parsed and indexed again, including failed documents.

    Args:
        body: the documents.
        by: the caller's name, for the event.

    Raises:
        UnknownTenant, UnknownDocument, UnknownSource: the id is unknown.
    """
    record = catalog.tenants.get(tenant_id)
    requests = catalog.reindex_requests
    if isinstance(body, ReindexDocument):
        documents = requests.request_document(record.ref, body.id, by)
        if not documents:
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such document",
                hint="use an id from the list of documents",
            )
    elif isinstance(body, ReindexPage):
        documents = requests.request_page(record.ref, body.id, body.scope, by)
        if not documents and not _is_in_tree(catalog, tenant_id, body):
            raise UnknownDocument(
                f"tenant {tenant_id!r} has no such {body.scope}",
                hint="use the id with which the application pushes it",
            )
    elif isinstance(body, ReindexSource):
        names = [source.name for source in Tenant.from_config(record.config).sources]
        if body.id not in names:
            raise UnknownSource(
                f"tenant {tenant_id!r} has no such source",
                hint=f"its sources are: {', '.join(names) or 'none'}",
            )
        documents = requests.request_source(record.ref, body.id, by)
    else:
        # With this request, a pending embedding model takes effect and starts to cost money.
        catalog.application_settings.take_pending_model(record.ref, by)
        documents = requests.request_tenant(record.ref, by)
    return Reindexed(documents=documents)


def _is_in_tree(catalog: Catalog, tenant_id: str, body: ReindexPage) -> bool:
    """Return whether the tree contains the page or database, which may have no records."""
    kind = catalog.pages.find_kind(tenant_id, body.id)
    return kind is not None and (kind == "database") == (body.scope == "database")
