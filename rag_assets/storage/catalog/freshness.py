"""Freshness: the lag of a tenant's index behind its documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, literal, or_, select

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.index_rows import (
    has_left,
    is_behind_source,
    is_excluded,
    same_document,
)
from rag_assets.storage.catalog.record_conditions import is_found
from rag_assets.storage.catalog.tables import document_index, documents, serving, source_records
from rag_assets.storage.catalog.upload_rows import is_of_record, is_pushed_again
from rag_assets.storage.catalog.upload_tables import uploads


@dataclass(frozen=True, slots=True)
class Freshness:
    """The freshness of a tenant's serving generation.

    Attributes:
        chunks: the number of chunks in the serving generation.
        stale: the number of documents with an indexed content that differs from their source.
        last_indexed_at: when a document was last indexed; None before the first.
        queue_depth: the number of documents that wait to be indexed or to be removed from the
            index. Records and uploads count from their arrival, other documents from their listing.
    """

    chunks: int = 0
    stale: int = 0
    last_indexed_at: datetime | None = None
    queue_depth: int = 0


class FreshnessQuery:
    """Queries on `documents` and `document_index`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(
        self,
        tenant_id: str,
        sources: Collection[str],
        *,
        readers: Collection[str] | None = None,
    ) -> Freshness:
        """Return a tenant's freshness, in one query.

        Args:
            sources: names of its sources; records of a removed source are not counted.
            readers: count only documents that one of these principals may read, so that the
                figures do not reveal other documents; None for all.
        """
        waits = or_(is_processing(), leaves_index(), is_pushed_again())
        # The readers of documents that were never listed are not known yet.
        unlisted = literal(0) if readers is not None else never_listed(tenant_id, sources)
        query = documents_with_entries(
            tenant_id, readers, *figures(), document_count().filter(waits) + unlisted
        )
        with self._database.begin() as connection:
            chunks, stale, last, waiting = connection.execute(query).one()
        return Freshness(int(chunks), int(stale), last, int(waiting))


def documents_with_entries(
    tenant_id: str, readers: Collection[str] | None, *columns: ColumnElement[Any]
) -> Select[Any]:
    """Return a query on a tenant's documents and their versions; see FreshnessQuery.of()."""
    is_serving = and_(
        serving.c.tenant == documents.c.tenant,
        serving.c.generation == document_index.c.generation,
    )
    told = () if readers is None else (is_readable(documents, readers),)
    return (
        select(*columns)
        .select_from(documents)
        .outerjoin(document_index, same_document())
        .outerjoin(serving, is_serving)
        .where(documents.c.tenant == tenant_id, *told)
    )


def figures() -> tuple[ColumnElement[Any], ...]:
    """Return columns of documents_with_entries(): chunks, stale documents, last indexing time."""
    held, left = document_index.c, has_left()
    indexed = and_(serving.c.tenant.is_not(None), held.indexed_key.is_not(None))
    return (
        func.coalesce(func.sum(held.chunk_count).filter(indexed, ~left), 0),
        document_count().filter(indexed, ~left, is_behind_source()),
        func.max(case((indexed, held.indexed_at))),
    )


def document_count() -> Any:
    """Return the number of documents, each counted once for all builds, as a column."""
    return func.count(documents.c.document_id.distinct())


def is_processing() -> ColumnElement[bool]:
    """Return the condition that a listed document waits to be indexed."""
    return and_(documents.c.status == "PROCESSING", ~is_excluded())


def leaves_index() -> ColumnElement[bool]:
    """Return the condition that a build has entries of a document that are to be removed."""
    return and_(has_left(), document_index.c.document_id.is_not(None))


def never_listed(tenant_id: str, sources: Collection[str]) -> ColumnElement[int]:
    """Return the number of records and uploads that only the next listing finds."""
    counts = [
        rows.with_only_columns(func.count(), maintain_column_froms=True).scalar_subquery()
        for rows in unlisted_rows(tenant_id, sources)
    ]
    return counts[0] + counts[1]


def unlisted_rows(tenant_id: str, sources: Collection[str]) -> tuple[Select[Any], Select[Any]]:
    """Return queries on the arrival times of the records and uploads in never_listed()."""
    of_files = (uploads.c.enabled, ~is_of_record())
    came = source_records.c.waiting_since, uploads.c.updated_at
    found = (is_found(),), of_files
    rows = []
    for table, at, which in zip((source_records, uploads), came, found, strict=True):
        pushed = table.c
        known = exists().where(
            documents.c.tenant == pushed.tenant, documents.c.document_id == pushed.document_id
        )
        of_sources = (pushed.tenant == tenant_id, among(pushed.source, sources))
        rows.append(select(at).select_from(table).where(*of_sources, ~known, *which))
    return rows[0], rows[1]
