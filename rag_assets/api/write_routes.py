"""Endpoints that write: records, deletions, reindexing.

A write is stored in the catalog before it is answered, and applied by the next sync, which the
file sensor of the daemon requests. Only a removal holds before that: with the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import APIRouter, Query, Request

from rag_assets.api.backend import Backend
from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.problems import documented
from rag_assets.api.responses import Reindexed, Written
from rag_assets.api.write_model import (
    DeleteQuery,
    DocumentId,
    Reindex,
    ReindexDocument,
    ReindexPage,
    ReindexSource,
)
from rag_assets.common.clock import Clock
from rag_assets.common.errors import UnknownDocument, UnknownSource
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.tenants.model import Tenant

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)

writing = APIRouter(prefix="/rag", tags=["writing"], responses=_REFUSED, route_class=Guarded)


@writing.delete("/documents/{document_id}", status_code=202, responses=documented(409))
async def delete_document(
    request: Request,
    document_id: DocumentId,
    parameters: Annotated[DeleteQuery, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Written:
    """Delete a document of any source. For admins.

    It is found no more from now on. A file stays where it is, and comes back when it changes. A
    purge goes on in the background: it takes the document out of every store and file, proves it,
    and ends with the receipt that is named here. What is held is not purged.
    """
    tenant_id = request.state.tenant = identity.administered(parameters.tenant)

    def delete() -> Written:
        known = backend.catalog.tenants.get(tenant_id)
        if parameters.purge:
            erasure = backend.catalog.erasures.begin_purge(
                known.ref, [document_id], by=identity.name, at=Clock().now()
            )
            return Written(document_id, "removed", receipt=str(erasure.id))
        gone = backend.uploads.remove(known.ref, document_id, identity.name)
        if not gone:
            gone = backend.catalog.removals.remove(known.ref, document_id, identity.name)
        return Written(document_id=document_id, outcome="removed" if gone else "unchanged")

    return await backend.write(tenant_id, delete)


@writing.post("/reindex", status_code=202, responses=documented(400, 408, 413))
async def reindex(
    request: Request, body: Reindex, identity: IdentityDependency, backend: BackendDependency
) -> Reindexed:
    """Have documents read, parsed and indexed anew, failed ones too. For admins.

    They are found as they are until then. Texts that have a vector keep it.
    """
    tenant_id = request.state.tenant = identity.administered(body.tenant)
    return await backend.write(tenant_id, _reindexing(backend, tenant_id, body, identity.name))


def _reindexing(
    backend: Backend, tenant_id: str, body: Reindex, by: str
) -> Callable[[], Reindexed]:
    def renew() -> Reindexed:
        tenant, known = _tenant(backend, tenant_id)
        requests = backend.catalog.reindex_requests
        if isinstance(body, ReindexDocument):
            documents = requests.request_document(known.ref, body.id, by)
            if not documents:
                raise UnknownDocument(
                    f"tenant {tenant_id!r} has no such document",
                    hint="take an id from the list of documents",
                )
        elif isinstance(body, ReindexPage):
            documents = requests.request_page(known.ref, body.id, body.scope, by)
            if not documents and backend.catalog.pages.find(tenant_id, body.id) is None:
                raise UnknownDocument(
                    f"tenant {tenant_id!r} has no such {body.scope}",
                    hint="take the id that the application pushes it by",
                )
        elif isinstance(body, ReindexSource):
            names = [source.name for source in tenant.sources]
            if body.id not in names:
                raise UnknownSource(
                    f"tenant {tenant_id!r} has no such source",
                    hint=f"its sources are: {', '.join(names) or 'none'}",
                )
            documents = requests.request_source(known.ref, body.id, by)
        else:
            # A model that waits for this is paid for from now on.
            backend.catalog.workspace_settings.take_pending_model(known.ref, by)
            documents = requests.request_tenant(known.ref, by)
        return Reindexed(documents=documents)

    return renew


def _tenant(backend: Backend, tenant_id: str) -> tuple[Tenant, TenantRecord]:
    record = backend.catalog.tenants.get(tenant_id)
    return Tenant.from_config(record.config), record
