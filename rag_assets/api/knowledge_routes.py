"""Endpoints that search a tenant's knowledge, answer questions, and report status and events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, replace
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import Field

from rag_assets.api.backend import BackendDependency, IdentityDependency
from rag_assets.api.guard import Guarded, open_to_writers
from rag_assets.api.identity import Identity
from rag_assets.api.model import Page, QueryRequest, TenantQuery
from rag_assets.api.problems import document_problems
from rag_assets.api.responses import Document, Documents, Event, Events, Status
from rag_assets.api.workspace_responses import EmbeddingModel, WorkspaceStatus
from rag_assets.common.principals import WRITER
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.model_folder import DEFAULT_MODEL
from rag_assets.plugins.registry import installed_systems
from rag_assets.search.answers import AnswerLength, AnswerRequest, AnswerResult, ContextBudget
from rag_assets.search.model import SearchAnswer
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.journal.events import SEARCHES, EventKind
from rag_assets.storage.catalog.journal.events import Event as StoredEvent
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.tenants.application_settings import (
    SECTION,
    find_wanted_embedder,
    is_pending,
    overlay_settings,
)
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import get_configured_embedder, get_configured_sources, get_profile


def read_status(
    catalog: Catalog, record: TenantRecord, *, readers: Collection[str] | None
) -> WorkspaceStatus | Status:
    """Read the status of a tenant with one SQL statement.

    Args:
        readers: counts only documents that one of these principals may read; None counts all.
    """
    profile = installed_systems().profiles.get(record.profile)
    if profile is not None and profile.typed_records:
        return read_status_of_records(catalog, record, readers=readers)
    freshness = catalog.freshness.read(record.id, _list_sources(record), readers=readers)
    return Status(**asdict(freshness), disabled=record.state != "ACTIVE")


def read_status_of_records(
    catalog: Catalog, record: TenantRecord, *, readers: Collection[str] | None
) -> WorkspaceStatus:
    """Read the status of a tenant whose documents are typed records; see read_status()."""
    records = catalog.record_freshness.read(record.id, _list_sources(record), readers=readers)
    backend = record.config.get(SECTION, {}).get("vector_backend", "elasticsearch")
    return WorkspaceStatus(
        **asdict(records.freshness),
        disabled=record.state != "ACTIVE",
        excluded=records.excluded,
        failed=records.failed,
        oldest_wait_seconds=records.oldest_wait_seconds,
        pending_model=find_pending_model(record) if readers is None else None,
        vector_backend=backend,
        backfilled=records.backfilled if backend == "pgvector" else None,
    )


def find_pending_model(record: TenantRecord) -> EmbeddingModel | None:
    """Return the model that takes effect when the whole tenant is indexed again, if any."""
    operators = get_configured_embedder(record.configured)
    if not get_profile(record.profile).keeps_model or not is_pending(record.settings, operators):
        return None
    settings = record.settings
    wanted_settings = replace(settings, embedder=find_wanted_embedder(settings, operators))
    embedder = Tenant.from_config(overlay_settings(record.configured, wanted_settings)).embedder
    return EmbeddingModel(
        settings.provider or embedder.provider, get_model_name(embedder), embedder.dimensions
    )


def get_model_name(embedder: EmbedderConfig) -> str:
    """Return the display name of an embedder's model."""
    return embedder.model_name or (embedder.path.name if embedder.path else DEFAULT_MODEL)


def _list_sources(record: TenantRecord) -> list[str]:
    return [source["name"] for source in get_configured_sources(record.config)]


_REFUSED = document_problems(401, 403, 404, 422, 429, 500, 503)

knowledge = APIRouter(prefix="/rag", tags=["knowledge"], responses=_REFUSED, route_class=Guarded)


@knowledge.post("/query", responses=document_problems(400, 402, 408, 409, 413, 502))
async def query(
    request: Request, body: QueryRequest, identity: IdentityDependency, backend: BackendDependency
) -> SearchAnswer:
    """Search a tenant's knowledge.

    The response has no hits if the tenant is disabled (`disabled`), or if no passage is near enough
    (`needs_clarification`).
    """
    tenant = request.state.tenant = identity.require_tenant(body.tenant)
    return await backend.retriever.search(tenant, body.build_search_request(identity))


@knowledge.get("/documents")
async def documents(
    request: Request,
    page: Annotated[Page, Query()],
    identity: IdentityDependency,
    backend: BackendDependency,
) -> Documents:
    """List the searchable documents that the caller may read, by uri."""
    tenant = request.state.tenant = identity.require_tenant(page.tenant)

    def read() -> Documents:
        limit = page.limit
        documents = backend.reader.list(tenant, identity.caller, limit=limit + 1, after=page.after)
        return Documents(
            documents=tuple(
                Document(d.document_id, d.uri, d.title, d.media_type) for d in documents[:limit]
            ),
            next=documents[limit - 1].place if len(documents) > limit else None,
            disabled=not documents and backend.catalog.tenants.get(tenant).state != "ACTIVE",
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
    tenant = request.state.tenant = identity.require_tenant(parameters.tenant)

    def read() -> WorkspaceStatus | Status:
        # This refuses a tenant that no longer exists, as a search does.
        record = backend.catalog.tenants.get(tenant)
        readers = identity.caller.principals if identity.role not in {"admin", WRITER} else None
        return read_status(backend.catalog, record, readers=readers)

    return await backend.run(tenant, identity.name, read)


_PROBLEMS = document_problems(400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504)

answers = APIRouter(prefix="/rag", tags=["knowledge"], responses=_PROBLEMS, route_class=Guarded)


class AnswerQuestion(QueryRequest):
    """A question to answer in sentences, on behalf of the token's subject.

    Attributes:
        token_budget: maximum tokens of the passages that the model gets, 4,000 by default.
        max_tokens: maximum tokens that the model may write, including hidden reasoning.
    """

    token_budget: ContextBudget | None = None
    max_tokens: AnswerLength | None = None

    def build_answer_request(self, identity: Identity) -> AnswerRequest:
        """Return the internal request, with the principals of the token."""
        search = self.build_search_request(identity)
        fields = {name: getattr(search, name) for name in type(search).model_fields}
        return AnswerRequest(**fields, max_tokens=self.max_tokens)


@answers.post("/answer")
async def answer(
    request: Request, body: AnswerQuestion, identity: IdentityDependency, backend: BackendDependency
) -> AnswerResult:
    """Answer a question with the tenant's chat model, from the tenant's knowledge.

    Sentences that cite no passage are removed. If no sentence remains, or no passage was found, the
    answer is empty, with `needs_clarification` and the `reason`.
    """
    tenant = request.state.tenant = identity.require_tenant(body.tenant)
    return await backend.answerer.answer(tenant, body.build_answer_request(identity))


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

    In a workspace, an admin sees all events of the documents that they may read, and events about
    credentials of all other documents. Searches of other callers are listed without question and
    hits.
    """
    tenant_id = request.state.tenant = identity.require_tenant(page.tenant)

    def read() -> list[StoredEvent]:
        record = backend.catalog.tenants.get(tenant_id)
        hidden = get_profile(record.profile).tells_readers_alone
        return backend.catalog.events.page(
            tenant_id,
            kinds=_select_kinds(identity, page.kind),
            caller=None if identity.role == "admin" else identity.name,
            before=page.after,
            limit=page.limit + 1,
            readers=identity.caller.principals if hidden else None,
            asker=identity.name,
        )

    listed_events = await backend.run(tenant_id, identity.name, read)
    shown_events = listed_events[: page.limit]
    return Events(
        events=tuple(Event(e.id, e.kind, e.at, dict(e.payload)) for e in shown_events),
        next=shown_events[-1].id if len(listed_events) > page.limit else None,
    )


def _select_kinds(identity: Identity, wanted_kind: EventKind | None) -> frozenset[str] | None:
    """Return the kinds of events that the caller may list; None if all kinds.

    An admin gets the wanted kind, or all kinds. Other callers get only searches.
    """
    if identity.role == "admin":
        return None if wanted_kind is None else frozenset({wanted_kind})
    return frozenset(kind for kind in SEARCHES if wanted_kind in {None, kind})
