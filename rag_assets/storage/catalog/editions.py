"""Having documents read, parsed and indexed anew, because somebody asks for it.

An edition is one of the inputs that decide whether a document is due, like its content. So the
demand survives whatever is under way, and is over when a version of that edition is in the index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, insert, update
from sqlalchemy.sql import func

from rag_assets.ingest.sources.model import READ_AGAIN_NS
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.document_rows import in_edition
from rag_assets.storage.catalog.tables import documents, events


class EditionTable:
    """Asks for new editions of documents."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def renew_all(self, ref: TenantRef, by: str) -> int:
        """Ask for all of a tenant's documents; returns how many, as the others do.

        Args:
            ref: whose.
            by: who asks, for the event.
        """
        return self._renew(ref, {"scope": "tenant", "by": by})

    def renew_source(self, ref: TenantRef, source: str, by: str) -> int:
        """Ask for all documents of one source."""
        told = {"scope": "source", "id": source, "by": by}
        return self._renew(ref, told, documents.c.source == source)

    def renew_document(self, ref: TenantRef, document_id: str, by: str) -> int:
        """Ask for one document; none if there is none of that id, or no longer."""
        told = {"scope": "document", "id": document_id, "by": by}
        return self._renew(ref, told, documents.c.document_id == document_id)

    def _renew(self, ref: TenantRef, told: Mapping[str, Any], *which: ColumnElement[bool]) -> int:
        table = documents.c
        next_edition = table.edition + 1
        statement = (
            update(documents)
            .where(table.tenant == ref.id, table.status != "DELETED", *which)
            .values(
                edition=next_edition,
                document_key=in_edition(table.document_key, next_edition),
                listed_at_ns=READ_AGAIN_NS,
                status="PROCESSING",
                lane=0 if told["scope"] == "document" else 1,
                error_message=None,
                failed_document_key=None,
                failed_config_key=None,
                attempts=0,
                retry_at=None,
                updated_at=func.now(),
            )
        )
        # Alone: a sync that writes to many of the same rows would wait for this, and this for it.
        with self._database.begin_alone(ref) as connection:
            count = connection.execute(statement).rowcount
            payload = {**told, "documents": count}
            event = {"tenant": ref.id, "kind": "reindex_requested", "payload": payload}
            if count or not which:
                connection.execute(insert(events).values(event))
        return count
