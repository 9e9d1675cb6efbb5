"""The endpoint for a tenant's events."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from rag_assets.api.dependencies import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded
from rag_assets.api.identity import Identity
from rag_assets.api.model import TenantQuery
from rag_assets.api.problems import documented
from rag_assets.api.responses import Event, Events
from rag_assets.storage.catalog.journal.events import SEARCHES, EventKind
from rag_assets.storage.catalog.journal.events import Event as StoredEvent
from rag_assets.tenants.profiles import profile_of

_REFUSED = documented(401, 403, 404, 422, 429, 500, 503)
journal = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED, route_class=Guarded)


class EventsPage(TenantQuery):
    """A page of events.

    Attributes:
        after: the `next` of the previous page.
        kind: only events of this kind, such as document_indexed.
        limit: maximum number of events.
    """

    after: int | None = Field(default=None, ge=1, le=2**63 - 1)
    kind: EventKind | None = None
    limit: int = Field(default=100, ge=1, le=1_000)


@journal.get("/events")
async def events(
    request: Request,
    page: Annotated[EventsPage, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Events:
    """List events, newest first: an admin sees all events, a member only their own searches.

    In a workspace, an admin sees the events of the documents that they may read. Of other
    documents, an admin sees only events about credentials. Searches of other callers are listed
    without question and hits.
    """
    tenant_id = request.state.tenant = identity.tenant(page.tenant)

    def read() -> list[StoredEvent]:
        record = backend.catalog.tenants.get(tenant_id)
        hidden = profile_of(record.profile).tells_readers_alone
        return backend.catalog.events.page(
            tenant_id,
            kinds=_kinds(identity, page.kind),
            caller=None if identity.role == "admin" else identity.name,
            before=page.after,
            limit=page.limit + 1,
            readers=identity.caller.principals if hidden else None,
            asker=identity.name,
        )

    found = await backend.run(tenant_id, identity.name, read)
    shown = found[: page.limit]
    return Events(
        events=tuple(Event(e.id, e.kind, e.at, dict(e.payload)) for e in shown),
        next=shown[-1].id if len(found) > page.limit else None,
    )


def _kinds(identity: Identity, wanted: EventKind | None) -> frozenset[str] | None:
    """Return the kinds of events to show; None shows all."""
    if identity.role == "admin":
        return None if wanted is None else frozenset({wanted})
    return frozenset(kind for kind in SEARCHES if wanted in {None, kind})
