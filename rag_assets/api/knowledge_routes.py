"""Endpoints that read a tenant's knowledge: searches, documents, status."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers
from rag_assets.api.model import Page, QueryRequest, TenantQuery
from rag_assets.api.problems import documented
from rag_assets.api.responses import Document, Documents, Status
from rag_assets.api.status import tenant_status
from rag_assets.api.workspace_responses import WorkspaceStatus
from rag_assets.common.principals import WRITER
from rag_assets.search.model import SearchAnswer
from rag_assets.storage.catalog.documents.readable import ReadableDocument

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)

knowledge = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED, route_class=Guarded)


@knowledge.post("/query", responses=documented(400, 402, 408, 409, 413, 502))
async def query(
    request: Request, body: QueryRequest, identity: IdentityDependency, backend: BackendDependency
) -> SearchAnswer:
    """Search a tenant's knowledge.

    For a disabled tenant, the response has no hits and says that the tenant is disabled. If no
    passage is near enough, the response has no hits, and `needs_clarification` is true.
    """
    tenant = request.state.tenant = identity.tenant(body.tenant)
    return await backend.retriever.search(tenant, body.search_for(identity))


@knowledge.get("/documents")
async def documents(
    request: Request,
    page: Annotated[Page, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Documents:
    """List the documents that are searchable and that the caller may read, by uri."""
    tenant = request.state.tenant = identity.tenant(page.tenant)

    def read() -> Documents:
        limit = page.limit
        found = backend.reader.list(tenant, identity.caller, limit=limit + 1, after=page.after)
        return Documents(
            documents=tuple(_document(one) for one in found[:limit]),
            next=found[limit - 1].place if len(found) > limit else None,
            disabled=not found and backend.catalog.tenants.get(tenant).state != "ACTIVE",
        )

    return await backend.run(tenant, identity.name, read)


@knowledge.get("/status")
@open_to_writers
async def status(
    request: Request,
    parameters: Annotated[TenantQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> WorkspaceStatus | Status:
    """Return how far a tenant's index is behind its documents, as of their last listing.

    A workspace also reports excluded, failed and waiting documents, its model and its back end. All
    numbers count the documents that the caller may read; for admins and writers, all documents.
    """
    tenant = request.state.tenant = identity.tenant(parameters.tenant)

    def read() -> WorkspaceStatus | Status:
        # This call refuses a tenant that no longer exists, as a search does.
        record = backend.catalog.tenants.get(tenant)
        readers = identity.caller.principals if identity.role not in {"admin", WRITER} else None
        return tenant_status(backend.catalog, record, readers=readers)

    return await backend.run(tenant, identity.name, read)


def _document(found: ReadableDocument) -> Document:
    return Document(found.document_id, found.uri, found.title, found.media_type)
