"""What happened to a tenant, for whoever may know."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field, StringConstraints

from rag_assets.api.guard import Guarded
from rag_assets.api.identity import Identity
from rag_assets.api.knowledge_routes import TheBackend, WhoAsks
from rag_assets.api.model import OfTenant
from rag_assets.api.problems import documented
from rag_assets.storage.catalog.events import SEARCHES, Event

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)
journal = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED, route_class=Guarded)


class EventsPage(OfTenant):
    """Which events are wanted.

    Attributes:
        after: the `next` of the page before.
        kind: only of this kind, such as document_indexed.
        limit: events at most.
    """

    after: int | None = Field(default=None, ge=1, le=2**63 - 1)
    kind: Annotated[str, StringConstraints(pattern="^[a-z_]+$", max_length=64)] | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


class ShownEvent(BaseModel):
    """Something that happened.

    Attributes:
        id: rises with time.
        payload: what the kind tells.
    """

    id: int
    kind: str
    at: datetime
    payload: dict[str, Any]


class Events(BaseModel):
    """A page of events, the newest first.

    Attributes:
        next: what to give as `after` for the next page; null on the last.
    """

    events: list[ShownEvent]
    next: int | None


@journal.get("/events")
async def events(
    request: Request,
    asked: Annotated[EventsPage, Query()],
    identity: WhoAsks,
    backend: TheBackend,
) -> Events:
    """List what happened, the newest first: to an admin all, to a member their own searches."""
    tenant_id = request.state.tenant = identity.tenant(asked.tenant)

    def read() -> list[Event]:
        backend.catalog.tenants.get(tenant_id)
        return backend.catalog.events.page(
            tenant_id,
            kinds=_kinds(identity, asked.kind),
            caller=None if identity.role == "admin" else identity.name,
            before=asked.after,
            limit=asked.limit + 1,
        )

    found = await backend.run(tenant_id, identity.name, read)
    page = found[: asked.limit]
    return Events(
        events=[ShownEvent(**_fields(event)) for event in page],
        next=page[-1].id if len(found) > asked.limit else None,
    )


def _kinds(identity: Identity, wanted: str | None) -> frozenset[str] | None:
    """Which kinds are shown; None: all."""
    if identity.role == "admin":
        return None if wanted is None else frozenset({wanted})
    return frozenset(kind for kind in SEARCHES if wanted in {None, kind})


def _fields(event: Event) -> dict[str, Any]:
    return {"id": event.id, "kind": event.kind, "at": event.at, "payload": dict(event.payload)}
