"""Endpoints that write: records, deletions, reindexing.

A write is stored in the catalog before the response is sent. The next sync, which the daemon's file
sensor requests, applies it. Only a removal takes effect before the sync: at the time of the
response.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query, Request

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.problems import documented
from rag_assets.api.reindexing import reindexed
from rag_assets.api.responses import Reindexed, Written
from rag_assets.api.write_model import DeleteQuery, DocumentId, Reindex
from rag_assets.common.clock import Clock

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

    Searches omit it at once. A deleted file stays in its source, and is indexed again when it
    changes. A purge continues in the background: it removes the document from every store and file,
    verifies this, and ends with the receipt that the response names. Documents on hold are not
    purged.
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
    """Read, parse and index documents again, including failed documents. For admins.

    The present versions of the documents stay searchable until then. Texts that already have a
    vector keep it.
    """
    tenant_id = request.state.tenant = identity.administered(body.tenant_id)
    return await backend.write(
        tenant_id, partial(reindexed, backend.catalog, tenant_id, body, identity.name)
    )
