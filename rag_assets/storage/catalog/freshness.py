"""How far a tenant's index is behind its documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ScalarSelect, and_, case, exists, func, or_, select

from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.index_rows import is_behind_source, is_pushed_anew, same_document
from rag_assets.storage.catalog.tables import document_index, documents, serving, source_records


@dataclass(frozen=True, slots=True)
class Freshness:
    """What answers now, and what waits.

    Attributes:
        chunks: that the serving generation holds.
        stale: documents of which it holds another content than their source has.
        last_indexed_at: when a document last came into it; None before the first.
        queue_depth: documents that wait for work: to be indexed, or to be taken out; records
            count from their push on, all else from its listing.
    """

    chunks: int = 0
    stale: int = 0
    last_indexed_at: datetime | None = None
    queue_depth: int = 0


class FreshnessQuery:
    """Reads `documents` and `document_index`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str, sources: Collection[str]) -> Freshness:
        """How a tenant stands now, in one query.

        Args:
            tenant_id: whose.
            sources: names of its sources; records of one that was taken away wait for nothing.
        """
        held, listed = document_index.c, documents.c
        answers = and_(
            serving.c.tenant == listed.tenant,
            serving.c.generation == held.generation,
        )
        deleted = listed.status == "DELETED"
        indexed = and_(serving.c.tenant.is_not(None), held.indexed_key.is_not(None))
        waits = or_(
            listed.status == "PROCESSING",
            and_(deleted, held.document_id.is_not(None)),
            is_pushed_anew(),
        )
        documents_that = func.count(listed.document_id.distinct())
        query = (
            select(
                func.coalesce(func.sum(held.chunk_count).filter(indexed, ~deleted), 0),
                documents_that.filter(indexed, ~deleted, is_behind_source()),
                func.max(case((indexed, held.indexed_at))),
                documents_that.filter(waits) + _never_listed(tenant_id, sources),
            )
            .select_from(documents)
            .outerjoin(document_index, same_document())
            .outerjoin(serving, answers)
            .where(listed.tenant == tenant_id)
        )
        with self._database.begin() as connection:
            chunks, stale, last, waiting = connection.execute(query).one()
        return Freshness(int(chunks), int(stale), last, int(waiting))


def _never_listed(tenant_id: str, sources: Collection[str]) -> ScalarSelect[int]:
    """How many records no listing has found yet."""
    pushed = source_records.c
    known = and_(documents.c.tenant == pushed.tenant, documents.c.document_id == pushed.document_id)
    return (
        select(func.count())
        .select_from(source_records)
        .where(pushed.tenant == tenant_id, among(pushed.source, sources), ~exists().where(known))
        .scalar_subquery()
    )
