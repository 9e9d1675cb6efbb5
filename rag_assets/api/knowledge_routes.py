"""What can be asked over HTTP."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from rag_assets.api.backend import Backend
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import Identity
from rag_assets.api.model import Documents, Health, OfTenant, Page, QueryRequest, Status
from rag_assets.api.problems import documented
from rag_assets.retrieval.model import SearchAnswer

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)

knowledge = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED, route_class=Guarded)
operation = APIRouter(tags=["operation"])

_bearer = HTTPBearer(auto_error=False, description="A JWT, or a service token.")


async def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _identity(
    request: Request, _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
) -> Identity:
    """Who asks, as the guard has found."""
    identity: Identity = request.state.identity
    return identity


TheBackend = Annotated[Backend, Depends(_backend)]
WhoAsks = Annotated[Identity, Depends(_identity)]


@knowledge.post("/query", responses=documented(400, 402, 408, 409, 413, 502))
async def query(
    request: Request, asked: QueryRequest, identity: WhoAsks, backend: TheBackend
) -> SearchAnswer:
    """Search a tenant's knowledge.

    A tenant that is disabled has no hits, and says so. Nothing near enough is an answer, too: no
    hits, and `needs_clarification`.
    """
    tenant = request.state.tenant = identity.tenant(asked.tenant)
    search = asked.asked_by(identity)
    return await backend.retriever.search(tenant, search)


@knowledge.get("/documents")
async def documents(
    request: Request, asked: Annotated[Page, Query()], identity: WhoAsks, backend: TheBackend
) -> Documents:
    """List the documents that are searchable and that the caller may read, by uri."""
    tenant = request.state.tenant = identity.tenant(asked.tenant)

    def read() -> Documents:
        most = asked.limit
        found = backend.reader.list(tenant, identity.caller, limit=most + 1, after=asked.after)
        return Documents(
            documents=found[:most],
            next=found[most - 1].place if len(found) > most else None,
            disabled=not found and backend.catalog.tenants.get(tenant).state != "ACTIVE",
        )

    return await backend.run(tenant, identity.name, read)


@knowledge.get("/status")
async def status(
    request: Request, asked: Annotated[OfTenant, Query()], identity: WhoAsks, backend: TheBackend
) -> Status:
    """How far a tenant's index is behind its documents, as they were listed last."""
    tenant = request.state.tenant = identity.tenant(asked.tenant)

    def read() -> Status:
        # Refuses a tenant that is gone, as a search does.
        record = backend.catalog.tenants.get(tenant)
        sources = [source["name"] for source in record.config.get("sources", [])]
        found = backend.catalog.freshness.of(tenant, sources)
        return Status(**asdict(found), disabled=record.state != "ACTIVE")

    return await backend.run(tenant, identity.name, read)


@operation.get("/health/live")
async def live() -> Health:
    """Tell that the process answers."""
    return Health()


@operation.get("/health/ready", responses=documented(503))
async def ready(backend: TheBackend) -> Health:
    """Tell that Postgres and Elasticsearch answer, too."""
    await backend.require_ready()
    return Health()


@operation.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request) -> Response:
    """Figures of requests for Prometheus; of no tenant's in particular."""
    registry = request.app.state.figures.registry
    return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)
