"""Requests to read, parse and index documents again.

Their number is one of the inputs that decide whether a document is due, like its content. So a
request survives any run under way, and is fulfilled when a version made after it is in the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, insert, update
from sqlalchemy.sql import func

from rag_assets.ingest.sources.model import READ_AGAIN_NS
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.document_rows import numbered_key
from rag_assets.storage.catalog.tables import documents, events


class ReindexRequestTable:
    """Requests reindexing, by raising documents' number of requests (the column `edition`)."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def request_tenant(self, ref: TenantRef, by: str) -> int:
        """Request all of a tenant's documents; returns how many, as the others do.

        Args:
            ref: whose.
            by: who requests it, for the event.
        """
        return self._request(ref, {"scope": "tenant", "by": by})

    def request_source(self, ref: TenantRef, source: str, by: str) -> int:
        """Request all documents of one source."""
        scope = {"scope": "source", "id": source, "by": by}
        return self._request(ref, scope, documents.c.source == source)

    def request_document(self, ref: TenantRef, document_id: str, by: str) -> int:
        """Request one document; none if there is none of that id, or no longer."""
        scope = {"scope": "document", "id": document_id, "by": by}
        return self._request(ref, scope, documents.c.document_id == document_id)

    def _request(
        self, ref: TenantRef, scope: Mapping[str, Any], *which: ColumnElement[bool]
    ) -> int:
        table = documents.c
        next_number = table.edition + 1
        statement = (
            update(documents)
            .where(table.tenant == ref.id, table.status != "DELETED", *which)
            .values(
                edition=next_number,
                document_key=numbered_key(table.document_key, next_number),
                listed_at_ns=READ_AGAIN_NS,
                status="PROCESSING",
                lane=0 if scope["scope"] == "document" else 1,
                error_message=None,
                failed_document_key=None,
                failed_config_key=None,
                attempts=0,
                retry_at=None,
                updated_at=func.now(),
            )
        )
        # Exclusive: this and a sync that writes many of the same rows would wait for each other.
        with self._database.begin_exclusive(ref) as connection:
            count = connection.execute(statement).rowcount
            payload = {**scope, "documents": count}
            event = {"tenant": ref.id, "kind": "reindex_requested", "payload": payload}
            if count or not which:
                connection.execute(insert(events).values(event))
        return count
