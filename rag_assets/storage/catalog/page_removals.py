"""Deletion of what hangs on pages, in the transaction that deletes the pages."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.record_writes import delete_records, withdraw_documents
from rag_assets.storage.catalog.tables import documents, source_records


def remove_records(connection: Connection, ref: TenantRef, uuids: Sequence[str], by: str) -> int:
    """Delete the records of pages; searches no longer return their documents.

    Args:
        connection: of a transaction that excludes others of the tenant.
        ref: the tenant.
        uuids: of the pages.
        by: the caller's name, for the events.

    Returns:
        how many documents went.
    """
    listed, record = documents.c, source_records.c
    of_documents = select(listed.document_id).where(
        listed.tenant == ref.id, among(listed.page_uuid, uuids), listed.status != "DELETED"
    )
    # A record that no listing has found yet hangs on its page, too.
    of_records = select(record.document_id).where(
        record.tenant == ref.id, among(record.page_uuid, uuids)
    )
    ids = [*connection.scalars(of_documents.union(of_records))]
    delete_records(connection, ref, ids)
    withdraw_documents(connection, ref, ids, by)
    return len(ids)
