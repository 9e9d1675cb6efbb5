"""Read-only summaries of all tenants, one tenant and one document, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from rag_assets.common.errors import UnknownTenant
from rag_assets.storage.catalog.database import CatalogQueries
from rag_assets.storage.catalog.documents.model import Document, read_document
from rag_assets.storage.catalog.documents.status import Status, is_same_document
from rag_assets.storage.catalog.tables import (
    check_results,
    document_index,
    documents,
    events,
    generations,
    serving,
    syncs,
    tenants,
)


@dataclass(frozen=True, slots=True)
class TenantSummary:
    """The state of a tenant.

    Attributes:
        generation, index_name: number and index of the serving generation; None before the first
            build is complete.
        synced_at: when its least recently synced source was last synced.
    """

    tenant_id: str
    state: str
    documents: Mapping[Status, int] = field(default_factory=dict)
    entries: int = 0
    generation: int | None = None
    index_name: str | None = None
    synced_at: datetime | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class FormatSummary:
    """The state of a tenant's documents of one format."""

    media_type: str | None
    documents: Mapping[Status, int]
    chunks: int
    bytes: int


@dataclass(frozen=True, slots=True)
class HeldEntries:
    """The entries of a document in one generation.

    Attributes:
        current: whether they were made from the document's last listed version.
    """

    generation: int
    state: str
    index_name: str
    entries: int
    indexed_at: datetime | None
    current: bool


class Overview(CatalogQueries):
    """Summarizes tenants and documents, with read-only queries over several tables."""

    def tenants(
        self,
        *,
        containing: str = "",
        in_trouble: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[TenantSummary]:
        """Return the state of tenants, sorted by id.

        Args:
            in_trouble: only tenants with a failed document, check or last sync, or that were never
                checked.
        """
        chosen = sa.select(tenants.c.id).order_by(tenants.c.id).limit(limit).offset(offset)
        if containing:
            chosen = chosen.where(tenants.c.id.icontains(containing, autoescape=True))
        if in_trouble:
            of_check = check_results.c.tenant == tenants.c.id
            failed = check_results.c.passed.is_(False) | check_results.c.error.is_not(None)
            chosen = chosen.where(
                sa.or_(
                    sa.exists().where(
                        documents.c.tenant == tenants.c.id, documents.c.status == "FAILED"
                    ),
                    sa.exists().where(
                        syncs.c.tenant == tenants.c.id, syncs.c.last_error.is_not(None)
                    ),
                    sa.exists().where(of_check, failed),
                    sa.and_(tenants.c.state == "ACTIVE", ~sa.exists().where(of_check)),
                )
            )
        return self._fetch_summaries(chosen)

    def list_not_compacted_since(self, since: datetime) -> list[str]:
        """Return the ids of active tenants with documents that were not compacted since a time."""
        compacted = sa.exists().where(
            events.c.tenant == tenants.c.id, events.c.kind == "compacted", events.c.at >= since
        )
        query = sa.select(tenants.c.id).where(
            tenants.c.state == "ACTIVE",
            tenants.c.created_at < since,
            sa.exists().where(documents.c.tenant == tenants.c.id),
            ~compacted,
        )
        return list(self._database.fetch_values(query.order_by(tenants.c.id)))

    def tenant(self, tenant_id: str) -> TenantSummary:
        """Return the state of one tenant.

        Raises:
            UnknownTenant: no tenant has that id.
        """
        summaries = self._fetch_summaries(sa.select(tenants.c.id).where(tenants.c.id == tenant_id))
        if not summaries:
            raise UnknownTenant(
                f"no tenant {tenant_id!r}", hint="the page /documents lists the tenants"
            )
        return summaries[0]

    def _fetch_summaries(self, chosen: sa.Select[tuple[str]]) -> list[TenantSummary]:
        """Return the state of the chosen tenants, in one query that reads only their rows."""
        ids = chosen.cte("chosen")
        counts, entries, last = (
            _select_status_counts(ids),
            _select_entry_counts(ids),
            _select_last_syncs(ids),
        )
        query = (
            sa.select(
                *(tenants.c.id, tenants.c.state, counts.c.documents),
                *(sa.func.coalesce(entries.c.entries, 0), serving.c.generation),
                *(serving.c.index_name, last.c.synced_at, last.c.error),
            )
            .join(ids, ids.c.id == tenants.c.id)
            .outerjoin(counts, counts.c.tenant == tenants.c.id)
            .outerjoin(entries, entries.c.tenant == tenants.c.id)
            .outerjoin(serving, serving.c.tenant == tenants.c.id)
            .outerjoin(last, last.c.tenant == tenants.c.id)
            .order_by(tenants.c.id)
        )
        return [
            TenantSummary(id_, state, counted or {}, int(entry_count), *rest)
            for id_, state, counted, entry_count, *rest in self._database.fetch_rows(query)
        ]

    def formats(self, tenant_id: str) -> list[FormatSummary]:
        """Return the state of a tenant's documents of each format, the most frequent first."""
        not_deleted = sa.and_(documents.c.tenant == tenant_id, documents.c.status != "DELETED")
        query = (
            sa.select(
                *(documents.c.media_type, documents.c.status, sa.func.count()),
                *(sa.func.sum(documents.c.chunk_count), sa.func.sum(documents.c.size)),
            )
            .where(not_deleted)
            .group_by(documents.c.media_type, documents.c.status)
        )
        by_type: dict[str | None, list[Any]] = {}
        for row in self._database.fetch_rows(query):
            by_type.setdefault(row.media_type, []).append(row)
        summaries = [
            FormatSummary(
                media_type,
                {status: count for _, status, count, _, _ in rows},
                sum(int(chunks) for *_, chunks, _ in rows),
                sum(int(size) for *_, size in rows),
            )
            for media_type, rows in by_type.items()
        ]
        return sorted(summaries, key=lambda f: (-sum(f.documents.values()), f.media_type or ""))

    def page(
        self,
        tenant_id: str,
        *,
        status: Status | None = None,
        containing: str = "",
        limit: int,
        offset: int = 0,
    ) -> list[Document]:
        """Return a tenant's documents, sorted by URI, one page at a time."""
        wanted = documents.c.status == status if status else documents.c.status != "DELETED"
        query = sa.select(documents).where(documents.c.tenant == tenant_id, wanted)
        if containing:
            query = query.where(documents.c.uri.icontains(containing, autoescape=True))
        ordered = query.order_by(documents.c.uri, documents.c.document_id)
        rows = self._database.fetch_rows(ordered.limit(limit).offset(offset))
        return [read_document(row) for row in rows]

    def list_failed(self, tenant_id: str, limit: int) -> list[Document]:
        """Return the first `limit` quarantined documents of a tenant, sorted by URI."""
        return self.page(tenant_id, status="FAILED", limit=limit)

    def list_held_entries(self, tenant_id: str, document_id: str) -> list[HeldEntries]:
        """Return the entries of a document in each generation, the newest generation first."""
        indexed = document_index.c
        current = sa.func.coalesce(indexed.document_key == documents.c.document_key, False)
        query = (
            sa.select(
                *(generations.c.generation, generations.c.state, generations.c.index_name),
                *(indexed.chunk_count, indexed.indexed_at, current),
            )
            .select_from(document_index)
            .join(documents, is_same_document())
            .join(
                generations,
                sa.tuple_(generations.c.tenant, generations.c.generation)
                == sa.tuple_(indexed.tenant, indexed.generation),
            )
            .where(
                indexed.tenant == tenant_id,
                indexed.document_id == document_id,
                indexed.indexed_key.is_not(None),
            )
            .order_by(generations.c.generation.desc())
        )
        return [HeldEntries(*row) for row in self._database.fetch_rows(query)]


def _select_status_counts(ids: sa.CTE) -> sa.Subquery:
    """Return the query for the number of documents by status, as a JSON object, by tenant."""
    by_status = (
        sa.select(documents.c.tenant, documents.c.status, sa.func.count().label("documents"))
        .where(documents.c.tenant.in_(sa.select(ids.c.id)))
        .group_by(documents.c.tenant, documents.c.status)
        .subquery()
    )
    return (
        sa.select(
            by_status.c.tenant,
            sa.func.jsonb_object_agg(by_status.c.status, by_status.c.documents).label("documents"),
        )
        .group_by(by_status.c.tenant)
        .subquery()
    )


def _select_entry_counts(ids: sa.CTE) -> sa.Subquery:
    """Return the query for the expected number of entries in the serving generation, by tenant."""
    is_serving: sa.ColumnElement[bool] = sa.and_(
        serving.c.tenant == document_index.c.tenant,
        serving.c.generation == document_index.c.generation,
    )
    return (
        sa.select(
            document_index.c.tenant, sa.func.sum(document_index.c.chunk_count).label("entries")
        )
        .join(serving, is_serving)
        .join(documents, is_same_document())
        .where(document_index.c.tenant.in_(sa.select(ids.c.id)), documents.c.status != "DELETED")
        .group_by(document_index.c.tenant)
        .subquery()
    )


def _select_last_syncs(ids: sa.CTE) -> sa.Subquery:
    """Return the query for the earliest last sync of a tenant's sources, and an error if any."""
    return (
        sa.select(
            syncs.c.tenant,
            sa.func.min(syncs.c.succeeded_at).label("synced_at"),
            sa.func.max(syncs.c.last_error).label("error"),
        )
        .where(syncs.c.tenant.in_(sa.select(ids.c.id)))
        .group_by(syncs.c.tenant)
        .subquery()
    )
