"""Taking documents out of answers while a sync may be under way.

A sync holds the tenant's lock for minutes, and a request cannot wait for it. So a request excludes
no sync, only the sync's transactions while its own lasts (Database.begin_exclusive). What it leaves
behind each later one sees: a tombstone, a record that is gone, a document's status. So a sync that
listed a document before its deletion neither records it anew nor makes a version of it count.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import Connection, Update, delete, insert, select, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.document_rows import DocumentChange
from rag_assets.storage.catalog.index_rows import withheld
from rag_assets.storage.catalog.tables import documents, events, source_records, tombstones

UNREADABLE = ""
"""In a tombstone, the content of a document that could not be read."""


class RemovalTable:
    """Removes documents by request."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remove(self, ref: TenantRef, document_id: str, by: str) -> bool:
        """Leave a document out of answers from now on; the next sync takes it out of the index.

        What its source still has is not added again before it changes.

        Args:
            ref: whose.
            document_id: which.
            by: who asked for it, for the event.

        Returns:
            whether it was there still.

        Raises:
            UnknownDocument: there is none of that id, and was none lately.
        """
        table = documents.c
        known = select(table.content_sha256, table.status).where(
            table.tenant == ref.id, table.document_id == document_id
        )
        with self._database.begin_exclusive(ref) as connection:
            pushed = forget_record(connection, ref, document_id)
            row = connection.execute(known).first()
            if row is None and not pushed:
                raise UnknownDocument(
                    f"tenant {ref.id!r} has no such document",
                    hint="the list of documents names those there are",
                )
            living = row is not None and row.status != "DELETED"
            if row is not None and living and not pushed:
                _bury(connection, ref, document_id, row.content_sha256 or UNREADABLE)
            take_out(connection, ref, document_id, by)
        return living or pushed


def forget_record(connection: Connection, ref: TenantRef, document_id: str) -> bool:
    """Drop the pushed record that a document is; returns whether there was one."""
    statement = delete(source_records).where(
        source_records.c.tenant == ref.id, source_records.c.document_id == document_id
    )
    return connection.execute(statement).rowcount > 0


def take_out(connection: Connection, ref: TenantRef, document_id: str, by: str) -> None:
    """Mark a document deleted, if it lives, and let no version of it be returned any more."""
    uri = connection.scalar(marked_deleted(ref, [document_id]).returning(documents.c.uri))
    if uri is not None:
        connection.execute(withheld(ref, [document_id]))
        event = {"tenant": ref.id, "kind": "document_removed", "payload": {"uri": uri, "by": by}}
        connection.execute(insert(events).values(event))


def marked_deleted(ref: TenantRef, document_ids: Sequence[str]) -> Update:
    """Says of living documents that they are deleted, and forgets what was said of them.

    Their addresses stay, by which people ask what became of them.
    """
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            among(documents.c.document_id, document_ids),
            documents.c.status != "DELETED",
        )
        .values(
            status="DELETED",
            title=None,
            said_title=None,
            tags=[],
            metadata={},
            path=b"",
            error_message=None,
            failed_document_key=None,
            failed_config_key=None,
            changed_at=func.now(),
            updated_at=func.now(),
        )
    )


def not_overtaken(
    connection: Connection, ref: TenantRef, changes: Sequence[DocumentChange]
) -> list[DocumentChange]:
    """Those of a listing's documents that were not deleted, or pushed anew, since it was taken."""
    buried = _buried(connection, ref, [change.document_id for change in changes])
    pushed = [change.document_id for change in changes if change.facts.revision is not None]
    revisions = _revisions(connection, ref, pushed) if pushed else {}
    return [
        change
        for change in changes
        if revisions.get(change.document_id) == change.facts.revision
        and buried.get(change.document_id) != (change.content_sha256 or UNREADABLE)
    ]


def _buried(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> dict[str, str]:
    """Content of those that are deleted or were never there, and must not be added again so."""
    table = tombstones.c
    lives = documents.c.document_id.is_not(None) & (documents.c.status != "DELETED")
    query = (
        select(table.document_id, table.content_sha256)
        .outerjoin(
            documents,
            (documents.c.tenant == table.tenant) & (documents.c.document_id == table.document_id),
        )
        .where(table.tenant == ref.id, among(table.document_id, document_ids), ~lives)
    )
    return dict(connection.execute(query).all())


def _revisions(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, int]:
    query = select(source_records.c.document_id, source_records.c.revision).where(
        source_records.c.tenant == ref.id, among(source_records.c.document_id, document_ids)
    )
    return dict(connection.execute(query).all())


def _bury(connection: Connection, ref: TenantRef, document_id: str, content_sha256: str) -> None:
    content = {"content_sha256": content_sha256, "pruned_at": func.now()}
    connection.execute(
        upsert(tombstones)
        .values(tenant=ref.id, document_id=document_id, **content)
        .on_conflict_do_update(index_elements=["tenant", "document_id"], set_=content)
    )
