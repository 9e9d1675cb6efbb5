"""What can be asked over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import StringConstraints

from rag_assets.catalog.freshness import Freshness
from rag_assets.retrieval.model import Caller, SearchAnswer
from rag_assets.service.backend import Backend
from rag_assets.service.identity import Identity
from rag_assets.service.model import Documents, Health, QueryRequest, TenantName
from rag_assets.service.problems import documented

_MOST_DOCUMENTS = 1_000
_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)

knowledge = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED)
operation = APIRouter(tags=["operation"])

_bearer = HTTPBearer(auto_error=False, description="A JWT, or a service token.")

_TenantQuery = Annotated[
    TenantName | None,
    Query(description="The tenant that is asked; may be left out if the token is for one only."),
]
_After = Annotated[
    str | None,
    StringConstraints(max_length=8_000, pattern=r"^[^\x00]*$"),
    Query(description="The `next` of the page before."),
]


def _backend(request: Request) -> Backend:
    backend: Backend = request.app.state.backend
    return backend


async def _identity(
    request: Request,
    backend: Annotated[Backend, Depends(_backend)],
    _: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Identity:
    """Who asks; counted against the rate of the token."""
    header = request.headers.get("authorization")
    identity = await backend.run(lambda: backend.authenticator.identity(header))
    request.state.caller = identity.name
    backend.rates.take(identity.name)
    return identity


@dataclass(frozen=True, slots=True)
class Asked:
    """Which tenant is asked, by whom."""

    tenant: str
    caller: Caller


async def _asked(
    request: Request,
    identity: Annotated[Identity, Depends(_identity)],
    tenant: _TenantQuery = None,
) -> Asked:
    request.state.tenant = identity.tenant(tenant)
    return Asked(request.state.tenant, Caller(principals=identity.principals))


TheBackend = Annotated[Backend, Depends(_backend)]
WhoAsks = Annotated[Identity, Depends(_identity)]
WhatIsAsked = Annotated[Asked, Depends(_asked)]


@knowledge.post("/query", responses=documented(400, 402, 413, 502))
async def query(
    request: Request, asked: QueryRequest, identity: WhoAsks, backend: TheBackend
) -> SearchAnswer:
    """Search a tenant's knowledge.

    A tenant that is disabled has no hits, and says so. Nothing near enough is an answer, too: no
    hits, and `needs_clarification`.
    """
    tenant = request.state.tenant = identity.tenant(asked.tenant)
    search = asked.asked_by(identity)
    return await backend.run(lambda: backend.retriever.search(tenant, search))


@knowledge.get("/documents")
async def documents(
    asked: WhatIsAsked,
    backend: TheBackend,
    after: _After = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_DOCUMENTS)] = 100,
) -> Documents:
    """List the documents that are searchable and that the caller may read, by uri."""
    found = await backend.run(
        lambda: backend.reader.list(asked.tenant, asked.caller, limit=limit + 1, after=after)
    )
    page = found[:limit]
    return Documents(documents=page, next=page[-1].uri if len(found) > limit else None)


@knowledge.get("/status")
async def status(asked: WhatIsAsked, backend: TheBackend) -> Freshness:
    """How far a tenant's index is behind its documents, as they were listed last."""
    # Refuses a tenant that is gone, as a search does.
    await backend.run(lambda: backend.catalog.tenants.get(asked.tenant))
    return await backend.run(lambda: backend.catalog.freshness.of(asked.tenant))


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
