"""A tenant's documents: their listed state, their status, and tombstones of pruned documents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.common.failure_kinds import LEFT_OUT
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
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
    Failure,
    build_document_upsert,
    build_row,
    list_facts_columns,
    list_processing_order,
    read_document,
    read_facts,
)
from rag_assets.storage.catalog.documents.removals import drop_superseded, forget_moves, is_moved
from rag_assets.storage.catalog.documents.status import (
    build_deletion_update,
    build_put_off_update,
    build_withholding_update,
    fails_in_other_environment,
)
from rag_assets.storage.catalog.erasure.holds import is_held
from rag_assets.storage.catalog.records.model import restart_waits
from rag_assets.storage.catalog.records.pages import set_page_scopes
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    source_records,
    syncs,
    tombstones,
)

_BATCH_DOCUMENTS = 2_000


class DocumentTable(CatalogQueries):
    """Records and finds documents, in `documents`, and the tombstones of pruned documents."""

    def stream(self, tenant_id: str, source: str) -> Iterator[CatalogDocument]:
        """Stream all documents of a source, including deleted documents.

        Moved documents count as deleted.
        """
        stored = [field.name for field in fields(CatalogDocument) if field.name in documents.c]
        query = sa.select(
            *list_facts_columns(),
            *(documents.c[name] for name in stored if name != "status"),
            sa.case((is_moved(), "DELETED"), else_=documents.c.status).label("status"),
        ).where(documents.c.tenant == tenant_id, documents.c.source == source)
        with self._database.begin() as connection:
            for row in connection.execution_options(yield_per=_BATCH_DOCUMENTS).execute(query):
                yield read_row(CatalogDocument, row, facts=read_facts(row))

    def record(self, ref: TenantRef, changes: Sequence[DocumentChange], *, lane: int) -> None:
        """Record the changes of a listing; a document with unchanged content keeps its status.

        Documents that were deleted on request or pushed again since the listing are left out.
        """
        statement = build_document_upsert()
        for batch in batched(changes, _BATCH_DOCUMENTS):
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
        for batch in batched(document_ids, _BATCH_DOCUMENTS):
            self._database.write(ref, build_deletion_update(ref, batch))

    def find(self, tenant_id: str, document_ids: Sequence[str]) -> list[Document]:
        """Return the named documents in processing order, the most urgent first."""
        query = (
            sa.select(documents)
            .where(is_of_documents(documents.c, tenant_id, document_ids))
            .order_by(*list_processing_order())
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

    def count_by_status(self, tenant_id: str) -> dict[str, int]:
        """Return the number of documents by status."""
        query = (
            sa.select(documents.c.status, sa.func.count())
            .where(documents.c.tenant == tenant_id)
            .group_by(documents.c.status)
        )
        return dict(self._database.fetch_rows(query))

    def count(self, tenant_id: str, source: str) -> int:
        """Return the number of a source's documents, without deleted documents."""
        row = documents.c
        is_living = (row.source == source, row.status != "DELETED")
        return self._database.count(tenant_id, documents, *is_living)

    def count_documents_to_reread(self, tenant_id: str, sources: Collection[str]) -> int:
        """Return the number of documents to read again; see must_be_read_again.

        Args:
            sources: names of the configured sources; documents of other sources are not counted.
        """
        of_sources = matches_any(documents.c.source, sources)
        return self._database.count(tenant_id, documents, of_sources, must_be_read_again())

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
        in_build = sa.exists().where(matches_document(document_index.c, documents.c))
        is_old = (documents.c.status == "DELETED", documents.c.updated_at < before)
        return self._database.delete(ref, documents, *is_old, ~in_build, ~is_held())


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


_DEFERRED = sa.and_(documents.c.status == "PROCESSING", documents.c.retry_at > sa.func.now())
_TRANSIENT = sa.and_(documents.c.status == "FAILED", documents.c.retry_at.is_not(None))


class QuarantineTable(CatalogQueries):
    """Quarantines, defers and releases documents, in `documents`."""

    def fail(self, ref: TenantRef, failures: Sequence[Failure], *, config_key: str) -> None:
        """Quarantine documents that failed; their serving version stays searchable.

        If the document is a typed record (such as a page) whose current version failed, the record
        is withheld instead: searches no longer find it.
        """
        self._put_off("failed", ref, failures, config_key)
        left_out = [failure.document_id for failure in failures if failure.kind in LEFT_OUT]
        if left_out:
            with self._database.begin_tenant(ref) as connection:
                ids = connection.scalars(_select_left_out(ref, left_out)).all()
                connection.execute(build_withholding_update(ref, ids))

    def defer(self, ref: TenantRef, waits: Sequence[Failure], *, config_key: str) -> None:
        """Defer documents until their retry time, because they wait for a provider's batch."""
        self._put_off("deferred", ref, waits, config_key)

    def release(self, ref: TenantRef) -> int:
        """Make deferred documents due now; return their number."""
        return self._make_due(ref, _DEFERRED)

    def count_deferred(self, tenant_id: str) -> int:
        """Return the number of documents that wait for a provider's batch."""
        return self._database.count(tenant_id, documents, _DEFERRED)

    def retry_transient_failures(self, ref: TenantRef) -> int:
        """Make documents with transient failures due now; return their number."""
        return self._make_due(ref, _TRANSIENT)

    def count_waiting_for_retry(self, tenant_id: str) -> int:
        """Return the number of documents quarantined for a transient failure."""
        return self._database.count(tenant_id, documents, _TRANSIENT)

    def retry_in_environment(self, tenant_ids: Collection[str], environment: str) -> set[str]:
        """Make documents due now if they failed because of a setting of a different environment.

        Returns:
            the tenants with such documents. Their next sync need not wait for its retry time.
        """
        retried = set[str]()
        with self._database.begin() as connection:
            for table in (documents, document_index):
                retried |= {
                    *connection.scalars(
                        sa.update(table)
                        .where(
                            matches_any(table.c.tenant, tenant_ids),
                            fails_in_other_environment(table, environment),
                        )
                        .values(retry_at=sa.func.now())
                        .returning(table.c.tenant)
                    )
                }
            if retried:
                of_tenants = matches_any(syncs.c.tenant, retried)
                connection.execute(sa.update(syncs).where(of_tenants).values(retry_at=None))
        return retried

    def _make_due(self, ref: TenantRef, condition: sa.ColumnElement[bool]) -> int:
        row, is_waiting = document_index.c, document_index.c.retry_at > sa.func.now()
        with self._database.begin_tenant(ref) as connection:
            # Documents that wait in a build that is not configured now.
            beside = sa.update(document_index).where(row.tenant == ref.id, is_waiting)
            connection.execute(beside.values(retry_at=sa.func.now()))
            due = sa.update(documents).where(documents.c.tenant == ref.id, condition)
            return connection.execute(due.values(retry_at=sa.func.now())).rowcount

    def _put_off(
        self,
        cause: Literal["failed", "deferred"],
        ref: TenantRef,
        waits: Sequence[Failure],
        config_key: str,
    ) -> None:
        rows = [
            {
                "waiting": wait.document_id,
                "waiting_key": wait.document_key,
                "message": wait.message,
                "kind": wait.kind,
                "again": wait.retry_at,
                "environment": wait.environment,
            }
            for wait in waits
        ]
        if rows:
            self._database.write(ref, build_put_off_update(cause, ref, config_key), rows)


def _select_left_out(ref: TenantRef, document_ids: Sequence[str]) -> sa.Select[Any]:
    """Return the query for the typed records among these documents that have failed."""
    record, row = source_records.c, documents.c
    return (
        sa.select(row.document_id)
        .join(source_records, matches_document(record, row))
        .where(
            is_of_documents(row, ref.id, document_ids),
            row.status == "FAILED",
            row.failed_document_key == row.document_key,
            record.media_type == TYPED_RECORD,
        )
    )


_FORMER = document_index.alias("former")
_OWN = document_index.alias("own")
_FORMER_KEY = sa.func.coalesce(_FORMER.c.document_key, _FORMER.c.indexed_key)
"""The document_key of a former version, which is null if the version is to be written again."""


@dataclass(frozen=True, slots=True)
class FormerVersion:
    """A version of a document that searches can find in another build."""

    document_id: str
    document_key: str
    parse_key: str
    content_sha256: str | None


class FormerVersionTable(CatalogQueries):
    """Finds versions of failed documents that another build has, and retries the documents."""

    def find(
        self, tenant_id: str, answering: int, lacking: int, document_ids: Sequence[str]
    ) -> list[FormerVersion]:
        """Return the versions of failed documents that one build has and another lacks."""
        # A rejected text that is retried may be rejected again.
        failed = sa.or_(documents.c.retry_at.is_(None), documents.c.error_kind == "text-rejected")
        row = _FORMER.c
        columns = (row.document_id, _FORMER_KEY, row.parse_key, row.content_sha256)
        query = _select_lacking(tenant_id, answering, lacking, *columns)
        rows = self._database.fetch_rows(
            query.where(failed, matches_any(_FORMER.c.document_id, document_ids))
        )
        return [FormerVersion(*tuple(row)) for row in rows]

    def retry(self, ref: TenantRef, answering: int, lacking: int) -> int:
        """Make permanently failed documents that find() returns due now; return their number."""
        final = documents.c.retry_at.is_(None)
        ids = _select_lacking(ref.id, answering, lacking, _FORMER.c.document_id).where(final)
        is_one = documents.c.document_id.in_(ids)
        return self._database.update(ref, documents, is_one, retry_at=sa.func.now())

    def give_up(self, ref: TenantRef, lacking: int, document_id: str, document_key: str) -> None:
        """Record that a document's former version cannot be added to the build that lacks it."""
        row = {"tenant": ref.id, "generation": lacking, "document_id": document_id}
        failed = {"failed_document_key": document_key}
        statement = upsert(document_index).values(**row, dirty=False, **failed)
        self._database.write(
            ref,
            statement.on_conflict_do_update(
                index_elements=["tenant", "generation", "document_id"], set_=failed
            ),
        )


def _select_lacking(
    tenant_id: str, answering: int, lacking: int, *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    state = documents.c
    own = sa.and_(matches_document(_OWN.c, _FORMER.c), _OWN.c.generation == lacking)
    its_document = matches_document(state, _FORMER.c)
    return (
        sa.select(*columns)
        .select_from(_FORMER)
        .join(documents, its_document)
        .outerjoin(_OWN, own)
        .where(
            _FORMER.c.tenant == tenant_id,
            _FORMER.c.generation == answering,
            _FORMER.c.indexed_key.is_not(None),
            _FORMER.c.parse_key.is_not(None),
            state.status == "FAILED",
            state.failed_document_key == state.document_key,
            # A document that its source cannot provide is not parsed, and therefore never retried.
            state.content_sha256.is_not(None),
            _OWN.c.indexed_key.is_(None),
            _OWN.c.failed_document_key.is_distinct_from(_FORMER_KEY),
        )
    )
