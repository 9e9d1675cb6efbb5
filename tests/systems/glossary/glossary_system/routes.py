"""`GET /rag/glossary/{term}`: the definition of a term."""

from __future__ import annotations

from fastapi import APIRouter, Request

from glossary_system.tables import record_lookup
from rag_assets.api.backend import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.search.model import SearchRequest

router = APIRouter(prefix="/rag/glossary", tags=["glossary"], route_class=Guarded)


@router.get("/{term}")
async def define(
    term: str, request: Request, identity: IdentityDependency, backend: BackendDependency
) -> dict[str, str | int | None]:
    """Look up a term."""
    tenant = request.state.tenant = identity.require_tenant(None)
    search = SearchRequest.of(query=term, top_k=1, mode="text", caller=identity.caller)
    answer = await backend.retriever.search(tenant, search)

    def count() -> int:
        ref = backend.catalog.tenants.get(tenant).ref
        return record_lookup(backend.catalog.database, ref, term)

    lookups = await backend.write(tenant, count)
    return {"text": answer.hits[0].text if answer.hits else None, "lookups": lookups}
