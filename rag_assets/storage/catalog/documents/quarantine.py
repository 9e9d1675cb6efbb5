"""Documents that wait: failed, deferred until a batch ends, or usable in a former version."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.failure_kinds import LEFT_OUT
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    matches_any,
    matches_document,
)
from rag_assets.storage.catalog.documents.model import Failure
from rag_assets.storage.catalog.documents.status import (
    fails_in_other_environment,
    put_off_statement,
    withhold_statement,
)
from rag_assets.storage.catalog.tables import document_index, documents, source_records, syncs

_DEFERRED = sa.and_(documents.c.status == "PROCESSING", documents.c.retry_at > sa.func.now())
_TRANSIENT = sa.and_(documents.c.status == "FAILED", documents.c.retry_at.is_not(None))


class QuarantineTable(CatalogQueries):
    """Quarantines, defers and releases documents, in `documents`."""

    def fail(self, ref: TenantRef, failures: Sequence[Failure], *, config_key: str) -> None:
        """Quarantine documents that failed; their serving version stays searchable.

        If the current version of a typed record is left out, the record is withheld instead:
        searches no longer find it.
        """
        self._put_off("failed", ref, failures, config_key)
        left_out = [failure.document_id for failure in failures if failure.kind in LEFT_OUT]
        if left_out:
            with self._database.begin_tenant(ref) as connection:
                ids = connection.scalars(_select_left_out(ref, left_out)).all()
                connection.execute(withhold_statement(ref, ids))

    def defer(self, ref: TenantRef, waits: Sequence[Failure], *, config_key: str) -> None:
        """Defer documents until their retry time, because they wait for a provider's batch."""
        self._put_off("deferred", ref, waits, config_key)

    def release(self, ref: TenantRef) -> int:
        """Make deferred documents due now; return their number."""
        return self._make_due(ref, _DEFERRED)

    def deferred_count(self, tenant_id: str) -> int:
        """Return the number of documents that wait for a provider's batch."""
        return self._count(tenant_id, _DEFERRED)

    def retry_transient_failures(self, ref: TenantRef) -> int:
        """Make documents with transient failures due now; return their number."""
        return self._make_due(ref, _TRANSIENT)

    def waiting_count(self, tenant_id: str) -> int:
        """Return the number of documents quarantined for a transient failure."""
        return self._count(tenant_id, _TRANSIENT)

    def retry_in_environment(self, tenant_ids: Collection[str], environment: str) -> set[str]:
        """Make documents due now if they failed because of a setting of a different environment.

        Args:
            environment: the current environment; see rag_assets.common.environment.

        Returns:
            the tenants with such documents. Their next sync need not wait for its retry time.
        """
        found = set[str]()
        with self._database.begin() as connection:
            for table in (documents, document_index):
                found |= {
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
            if found:
                of_tenants = matches_any(syncs.c.tenant, found)
                connection.execute(sa.update(syncs).where(of_tenants).values(retry_at=None))
        return found

    def _make_due(self, ref: TenantRef, which: sa.ColumnElement[bool]) -> int:
        row, is_waiting = document_index.c, document_index.c.retry_at > sa.func.now()
        with self._database.begin_tenant(ref) as connection:
            # Documents that wait in a build that is not configured now.
            beside = sa.update(document_index).where(row.tenant == ref.id, is_waiting)
            connection.execute(beside.values(retry_at=sa.func.now()))
            due = sa.update(documents).where(documents.c.tenant == ref.id, which)
            return connection.execute(due.values(retry_at=sa.func.now())).rowcount

    def _count(self, tenant_id: str, which: sa.ColumnElement[bool]) -> int:
        query = sa.select(sa.func.count()).where(documents.c.tenant == tenant_id, which)
        return self._database.fetch_value(query) or 0

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
            self._database.write(ref, put_off_statement(cause, ref, config_key), rows)


def _select_left_out(ref: TenantRef, document_ids: Sequence[str]) -> sa.Select[Any]:
    """Return the query for the typed records among these whose current version failed."""
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
    """A version of a document that searches can find in another build.

    Attributes:
        content_sha256: hash of the content among these inputs; None if it was not recorded.
    """

    document_id: str
    document_key: str
    parse_key: str
    content_sha256: str | None


class FormerVersionTable(CatalogQueries):
    """Finds versions of failed documents that another build has, and retries the documents."""

    def find(
        self, tenant_id: str, answering: int, lacking: int, document_ids: Sequence[str]
    ) -> list[FormerVersion]:
        """Return the versions of failed documents that one build has and another lacks.

        Args:
            answering: the build that has the versions.
            lacking: the build that lacks them.
        """
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
        """Make the permanently failed documents that find() returns due now; count them."""
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
