"""Access scopes of documents whose record changed: the former scope ends at once."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, Update, bindparam, func, update

from rag_assets.common.hashing import key_of
from rag_assets.ingest.sources.pages import NOBODY
from rag_assets.storage.catalog.access import PUBLIC
from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.pushed_records import PushedRecord
from rag_assets.storage.catalog.record_plans import RecordPut
from rag_assets.storage.catalog.tables import documents, source_records


def leave_scopes(connection: Connection, ref: TenantRef, puts: Sequence[RecordPut]) -> None:
    """Withdraw documents from their former scope, before the next listing does so.

    Args:
        connection: the connection of the transaction that stores the records.
        ref: the tenant.
        puts: stored records that are new or changed.
    """
    of_pages = [put.record.document_id for put in puts if put.scope is None]
    if of_pages:
        connection.execute(_leave_page_statement(ref, of_pages))
    rows = [
        {"of_record": put.record.document_id, "scope": put.scope, "key": _moved_key(put.record)}
        for put in puts
        if put.scope not in {None, PUBLIC}
    ]
    if rows:
        connection.execute(_change_scope_statement(ref), rows)


def _moved_key(record: PushedRecord) -> str:
    """Return a document_key that no listing makes, so that the next listing finds a change."""
    return key_of("moved", record.key)


def _change_scope_statement(ref: TenantRef) -> Update:
    scope: ColumnElement[str] = bindparam("scope")
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            documents.c.document_id == bindparam("of_record"),
            documents.c.access_scope != scope,
        )
        .values(access_scope=scope, document_key=bindparam("key"))
    )


def _leave_page_statement(ref: TenantRef, document_ids: Sequence[str]) -> Update:
    """Hide documents that are now attached to another page, until it is listed."""
    record = source_records.c
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            among(documents.c.document_id, document_ids),
            record.tenant == documents.c.tenant,
            record.document_id == documents.c.document_id,
            record.page_uuid.is_distinct_from(documents.c.page_uuid),
        )
        .values(
            access_scope=NOBODY,
            document_key=func.concat("moved ", documents.c.document_key),
        )
    )
