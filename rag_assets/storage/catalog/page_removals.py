"""Deletion of what hangs on pages, in the transaction that deletes the pages."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, delete, insert, select

from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.index_rows import withhold_statement
from rag_assets.storage.catalog.removals import mark_deleted_statement
from rag_assets.storage.catalog.tables import documents, events, source_records


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
    listed = select(documents.c.document_id).where(
        documents.c.tenant == ref.id,
        among(documents.c.page_uuid, uuids),
        documents.c.status != "DELETED",
    )
    ids = [*connection.scalars(listed)]
    connection.execute(
        delete(source_records).where(
            source_records.c.tenant == ref.id, among(source_records.c.document_id, ids)
        )
    )
    if not ids:
        return 0
    uris = connection.scalars(mark_deleted_statement(ref, ids).returning(documents.c.uri))
    gone = [
        {"tenant": ref.id, "kind": "document_removed", "payload": {"uri": uri, "by": by}}
        for uri in uris
    ]
    connection.execute(insert(events), gone)
    connection.execute(withhold_statement(ref, ids))
    return len(ids)
