"""Requests to read, parse and index documents again.

The number of requests is part of a document's key, like its content. A request made during a run
therefore stays pending until a version that was built after it is in the index.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, delete, insert, update
from sqlalchemy.sql import func

from rag_assets.ingest.sources.model import READ_AGAIN_NS
from rag_assets.ingest.sources.record_bodies import DbRowBody
from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.document_rows import numbered_key
from rag_assets.storage.catalog.tables import documents, events, syncs, tombstones


class ReindexRequestTable:
    """Requests reindexing by incrementing the column `edition` of documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def request_tenant(self, ref: TenantRef, by: str) -> int:
        """Reindex all documents of a tenant; return their number, like the other methods.

        Args:
            ref: the tenant.
            by: the caller's name, for the event.
        """
        return self._request(ref, {"scope": "tenant", "by": by})

    def request_source(self, ref: TenantRef, source: str, by: str) -> int:
        """Reindex all documents of one source."""
        scope = {"scope": "source", "id": source, "by": by}
        return self._request(ref, scope, documents.c.source == source)

    def request_document(self, ref: TenantRef, document_id: str, by: str) -> int:
        """Reindex one document; return 0 if it does not exist or was deleted."""
        scope = {"scope": "document", "id": document_id, "by": by}
        return self._request(ref, scope, documents.c.document_id == document_id)

    def request_page(
        self, ref: TenantRef, uuid: str, kind: Literal["page", "database"], by: str
    ) -> int:
        """Reindex a page of the tree with its attached documents, or the rows of a database."""
        scope = {"scope": kind, "id": uuid, "by": by}
        is_row = documents.c.source_type == DbRowBody.TYPE
        of_kind = is_row if kind == "database" else ~is_row
        return self._request(ref, scope, documents.c.page_uuid == uuid, of_kind)

    def readmit(self, ref: TenantRef, document_ids: Collection[str] | None = None) -> int:
        """Let the next listing add invalidated documents again; return their number.

        Documents that were deleted, purged or past their retention stay excluded.

        Args:
            ref: the tenant.
            document_ids: ids of the documents; all documents by default.
        """
        wanted = [tombstones.c.tenant == ref.id, tombstones.c.invalidated]
        if document_ids is not None:
            wanted.append(among(tombstones.c.document_id, document_ids))
        with self._database.begin_exclusive(ref) as connection:
            readmitted = connection.execute(delete(tombstones).where(*wanted)).rowcount
            if readmitted:
                # Otherwise the next sync would treat an unchanged source as listed.
                of_tenant = syncs.c.tenant == ref.id
                connection.execute(update(syncs).where(of_tenant).values(listing_digest=None))
                notify(connection, ref.id)
        return readmitted

    def _request(
        self, ref: TenantRef, scope: Mapping[str, Any], *conditions: ColumnElement[bool]
    ) -> int:
        # The transaction is exclusive, because a sync that updates the same rows in another order
        # could deadlock.
        with self._database.begin_exclusive(ref) as connection:
            return request_reindex(connection, ref, scope, *conditions)


def request_reindex(
    connection: Connection,
    ref: TenantRef,
    scope: Mapping[str, Any],
    *conditions: ColumnElement[bool],
) -> int:
    """Reindex documents of a tenant; return their number.

    Args:
        connection: a connection in a transaction that excludes others of the tenant.
        ref: the tenant.
        scope: the scope of the request and the caller, for the event.
        conditions: which documents; none: all.
    """
    table = documents.c
    next_number = table.edition + 1
    statement = (
        update(documents)
        .where(table.tenant == ref.id, table.status != "DELETED", *conditions)
        .values(
            edition=next_number,
            document_key=numbered_key(table.document_key, next_number),
            listed_at_ns=READ_AGAIN_NS,
            status="PROCESSING",
            lane=0 if scope["scope"] == "document" else 1,
            error_message=None,
            error_kind=None,
            failed_document_key=None,
            failed_config_key=None,
            attempts=0,
            retry_at=None,
            updated_at=func.now(),
        )
    )
    count = connection.execute(statement).rowcount
    payload = {**scope, "documents": count}
    event = {"tenant": ref.id, "kind": "reindex_requested", "payload": payload}
    if count or not conditions:
        connection.execute(insert(events).values(event))
    if count:
        notify(connection, ref.id)
    return count
