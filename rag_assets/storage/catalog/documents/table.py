"""A tenant's documents: their listed state, their status, and tombstones of pruned documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import fields
from datetime import datetime

import sqlalchemy as sa

from rag_assets.common.batches import batched
from rag_assets.ingest.sources.model import FUTURE_NS, RACY_NS, READ_AGAIN_NS
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    matches_any,
    matches_document,
    read_row,
)
from rag_assets.storage.catalog.documents.model import (
    CatalogDocument,
    Document,
    DocumentChange,
    build_row,
    facts_columns,
    processing_order,
    read_document,
    read_facts,
    record_statement,
)
from rag_assets.storage.catalog.documents.removals import drop_superseded, forget_moves, is_moved
from rag_assets.storage.catalog.documents.status import mark_deleted_statement
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.records.model import restart_waits
from rag_assets.storage.catalog.records.pages import set_page_scopes
from rag_assets.storage.catalog.tables import document_index, documents, syncs, tombstones

_BATCH = 2_000


class DocumentTable(CatalogQueries):
    """Records and finds documents, in `documents`, and the tombstones of pruned documents."""

    def stream(self, tenant_id: str, source: str) -> Iterator[CatalogDocument]:
        """Stream all documents of a source, including deleted documents.

        Moved documents count as deleted.
        """
        stored = [field.name for field in fields(CatalogDocument) if field.name in documents.c]
        query = sa.select(
            *facts_columns(),
            *(documents.c[name] for name in stored if name != "status"),
            sa.case((is_moved(), "DELETED"), else_=documents.c.status).label("status"),
        ).where(documents.c.tenant == tenant_id, documents.c.source == source)
        with self._database.begin() as connection:
            for row in connection.execution_options(yield_per=_BATCH).execute(query):
                yield read_row(CatalogDocument, row, facts=read_facts(row))

    def record(self, ref: TenantRef, changes: Sequence[DocumentChange], *, lane: int) -> None:
        """Record the changes of a listing; a document with unchanged content keeps its status.

        Documents that were deleted on request or pushed again since the listing are left out.
        """
        statement = record_statement()
        for batch in batched(changes, _BATCH):
            with self._database.begin_tenant(ref) as connection:
                current = drop_superseded(connection, ref, batch)
                rows = [build_row(ref, c, lane) for c in set_page_scopes(connection, ref, current)]
                if rows:
                    connection.execute(statement, rows)
                    pushed = [row["document_id"] for row in rows if row["revision"] is not None]
                    if pushed:
                        restart_waits(connection, ref, pushed)
                    forget_moves(connection, ref, [row["document_id"] for row in rows])

    def mark_deleted(self, ref: TenantRef, document_ids: Sequence[str]) -> None:
        """Mark documents that left their source as deleted; searches omit them immediately."""
        for batch in batched(document_ids, _BATCH):
            self._database.write(ref, mark_deleted_statement(ref, batch))

    def find(self, tenant_id: str, document_ids: Sequence[str]) -> list[Document]:
        """Return the named documents in processing order, the most urgent first."""
        query = (
            sa.select(documents)
            .where(is_of_documents(documents.c, tenant_id, document_ids))
            .order_by(*processing_order())
        )
        return [read_document(row) for row in self._database.fetch_rows(query)]

    def all(self, tenant_id: str, *, deleted: bool = False) -> list[Document]:
        """Return a tenant's documents, sorted by uri."""
        query = sa.select(documents).where(documents.c.tenant == tenant_id).order_by("uri")
        if not deleted:
            query = query.where(documents.c.status != "DELETED")
        return [read_document(row) for row in self._database.fetch_rows(query)]

    def sources(self, tenant_id: str) -> list[str]:
        """Return the names of the sources that have documents (not counting deleted documents)."""
        query = (
            sa.select(documents.c.source)
            .where(documents.c.tenant == tenant_id, documents.c.status != "DELETED")
            .distinct()
        )
        return list(self._database.fetch_values(query))

    def counts(self, tenant_id: str) -> dict[str, int]:
        """Return the number of documents by status."""
        query = (
            sa.select(documents.c.status, sa.func.count())
            .where(documents.c.tenant == tenant_id)
            .group_by(documents.c.status)
        )
        return dict(self._database.fetch_rows(query))

    def count(self, tenant_id: str, source: str) -> int:
        """Return the number of a source's documents, without deleted documents."""
        query = sa.select(sa.func.count()).where(
            documents.c.tenant == tenant_id,
            documents.c.source == source,
            documents.c.status != "DELETED",
        )
        return self._database.fetch_value(query) or 0

    def reread_count(self, tenant_id: str, sources: Collection[str]) -> int:
        """Return the number of documents to read again; see must_be_read_again.

        Args:
            sources: names of the configured sources; documents of other sources are not counted.
        """
        query = (
            sa.select(sa.func.count())
            .select_from(documents)
            .where(
                documents.c.tenant == tenant_id,
                matches_any(documents.c.source, sources),
                must_be_read_again(),
            )
        )
        return self._database.fetch_value(query) or 0

    def tombstones(self, tenant_id: str) -> dict[str, str]:
        """Return the content hashes in a tenant's tombstones, by document id."""
        query = sa.select(tombstones.c.document_id, tombstones.c.content_sha256).where(
            tombstones.c.tenant == tenant_id
        )
        return {row.document_id: row.content_sha256 for row in self._database.fetch_rows(query)}

    def read_again(self, ref: TenantRef, document_ids: Collection[str] | None = None) -> None:
        """Make the next listing read documents again, even if their facts are unchanged."""
        chosen = (
            () if document_ids is None else (matches_any(documents.c.document_id, document_ids),)
        )
        self._database.update(ref, documents, *chosen, listed_at_ns=READ_AGAIN_NS)

    def purge_deleted(self, ref: TenantRef, before: datetime) -> int:
        """Delete the rows of documents that were deleted before a time; return their number.

        Rows that a build or a hold still needs are kept.
        """
        held = sa.exists().where(matches_document(document_index.c, documents.c))
        is_old = (documents.c.status == "DELETED", documents.c.updated_at < before)
        return self._database.delete(ref, documents, *is_old, ~held, ~is_held())


def must_be_read_again() -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document must be read, whatever its listing facts are.

    It may have changed unnoticed, or reading it was requested. Documents that the last listing
    lacks, and that are only kept because their deletion is held, are excluded: they cannot be read.
    """
    is_kept = sa.exists().where(
        syncs.c.tenant == documents.c.tenant,
        syncs.c.source == documents.c.source,
        syncs.c.held_deletions > 0,
        syncs.c.listed_at_ns > documents.c.listed_at_ns,
    )
    return sa.and_(
        documents.c.status != "DELETED",
        # Every listing reads unreadable documents again anyway.
        documents.c.content_sha256.is_not(None),
        sa.or_(
            documents.c.listed_at_ns == READ_AGAIN_NS,
            sa.and_(
                documents.c.mtime_ns + RACY_NS > documents.c.listed_at_ns,
                documents.c.mtime_ns <= documents.c.listed_at_ns + FUTURE_NS,
            ),
        ),
        ~is_kept,
    )
