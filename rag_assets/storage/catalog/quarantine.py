"""Waiting documents: quarantined after a failure, or deferred until a provider's batch ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import Select, Text, Update, and_, bindparam, select, update
from sqlalchemy.sql import func

from rag_assets.common.failure_kinds import LEFT_OUT
from rag_assets.ingest.parsing.media_types import TYPED_RECORD
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.document_rows import Failure
from rag_assets.storage.catalog.index_rows import failed_key, fails_elsewhere, withhold_statement
from rag_assets.storage.catalog.tables import document_index, documents, source_records, syncs


class QuarantineTable:
    """Queries on waiting rows of `documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def fail(self, ref: TenantRef, failures: Sequence[Failure], *, config_key: str) -> None:
        """Quarantine documents; their serving version stays searchable.

        The exception is a typed record that is left out in its current version: searches no longer
        find it.
        """
        attempts = documents.c.attempts + 1
        self._put_off(ref, failures, config_key, {"status": "FAILED", "attempts": attempts})
        left_out = [one.document_id for one in failures if one.kind in LEFT_OUT]
        if left_out:
            with self._database.begin_for(ref) as connection:
                ids = connection.scalars(_left_out(ref, left_out)).all()
                connection.execute(withhold_statement(ref, ids))

    def defer(self, ref: TenantRef, waits: Sequence[Failure], *, config_key: str) -> None:
        """Defer documents that did not fail, until their retry time."""
        self._put_off(ref, waits, config_key, {"status": "PROCESSING"})

    def release(self, ref: TenantRef) -> int:
        """Make deferred documents due now; return their number."""
        with self._database.begin_for(ref) as connection:
            connection.execute(_try_again_beside(ref))
            return connection.execute(
                update(documents)
                .where(
                    documents.c.tenant == ref.id,
                    documents.c.status == "PROCESSING",
                    documents.c.retry_at > func.now(),
                )
                .values(retry_at=func.now())
            ).rowcount

    def deferred_count(self, tenant_id: str) -> int:
        """Return the number of documents that wait for a provider's batch."""
        query = select(func.count()).where(
            documents.c.tenant == tenant_id,
            documents.c.status == "PROCESSING",
            documents.c.retry_at > func.now(),
        )
        with self._database.begin() as connection:
            return connection.scalar(query) or 0

    def retry_transient_failures(self, ref: TenantRef) -> int:
        """Make documents with transient failures due now; return their number."""
        with self._database.begin_for(ref) as connection:
            connection.execute(_try_again_beside(ref))
            return connection.execute(
                update(documents)
                .where(
                    documents.c.tenant == ref.id,
                    documents.c.status == "FAILED",
                    documents.c.retry_at.is_not(None),
                )
                .values(retry_at=func.now())
            ).rowcount

    def retry_in_environment(self, tenant_ids: Collection[str], environment: str) -> set[str]:
        """Make documents due now that failed because of a setting in another environment.

        Args:
            tenant_ids: the tenants of the documents.
            environment: the present environment; see rag_assets.common.environment.

        Returns:
            the tenants with such documents. Their next sync does not need to wait either.
        """
        found = set[str]()
        with self._database.begin() as connection:
            for table in (documents, document_index):
                found |= {
                    *connection.scalars(
                        update(table)
                        .where(
                            among(table.c.tenant, tenant_ids), fails_elsewhere(table, environment)
                        )
                        .values(retry_at=func.now())
                        .returning(table.c.tenant)
                    )
                }
            if found:
                of_tenants = among(syncs.c.tenant, found)
                connection.execute(update(syncs).where(of_tenants).values(retry_at=None))
        return found

    def waiting_count(self, tenant_id: str) -> int:
        """Return the number of documents quarantined for a transient failure."""
        query = select(func.count()).where(
            documents.c.tenant == tenant_id,
            documents.c.status == "FAILED",
            documents.c.retry_at.is_not(None),
        )
        with self._database.begin() as connection:
            return connection.scalar(query) or 0

    def _put_off(
        self, ref: TenantRef, waits: Sequence[Failure], config_key: str, values: dict[str, Any]
    ) -> None:
        statement = (
            update(documents)
            .where(
                documents.c.tenant == ref.id,
                documents.c.document_id == bindparam("waiting"),
                # A document that changed in the meantime is processed in its current version.
                documents.c.document_key == bindparam("key"),
                documents.c.status != "DELETED",
            )
            .values(
                **values,
                error_message=bindparam("message"),
                error_kind=bindparam("kind"),
                failed_document_key=documents.c.document_key,
                failed_config_key=failed_key(
                    documents,
                    config_key,
                    bindparam("environment", type_=Text),
                    documents.c.document_key,
                ),
                retry_at=bindparam("again"),
                updated_at=func.now(),
            )
        )
        rows = [
            {
                "waiting": wait.document_id,
                "key": wait.document_key,
                "message": wait.message,
                "kind": wait.kind,
                "again": wait.retry_at,
                "environment": wait.environment,
            }
            for wait in waits
        ]
        if rows:
            with self._database.begin_for(ref) as connection:
                connection.execute(statement, rows)


def _left_out(ref: TenantRef, document_ids: Sequence[str]) -> Select[Any]:
    """Return those of the documents that are typed records and failed in their current version."""
    record, row = source_records.c, documents.c
    return (
        select(row.document_id)
        .join(
            source_records, and_(record.tenant == row.tenant, record.document_id == row.document_id)
        )
        .where(
            row.tenant == ref.id,
            among(row.document_id, document_ids),
            row.status == "FAILED",
            row.failed_document_key == row.document_key,
            record.media_type == TYPED_RECORD,
        )
    )


def _try_again_beside(ref: TenantRef) -> Update:
    """Return the statement that makes documents due that wait in a second build."""
    return (
        update(document_index)
        .where(document_index.c.tenant == ref.id, document_index.c.retry_at > func.now())
        .values(retry_at=func.now())
    )
