"""Deletion of documents on request, while a sync may be running.

A sync holds the tenant's lock for minutes, which is too long for a request to wait. A deletion
therefore only excludes the sync's transactions for the duration of its own transaction
(Database.begin_exclusive). Later transactions see its result: a tombstone, a missing record, the
document's status. A sync that listed a document before its deletion therefore neither records it
again nor publishes it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import (
    ARRAY,
    Connection,
    LargeBinary,
    Row,
    Text,
    Update,
    case,
    delete,
    insert,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.sql import func

from rag_assets.common.errors import UnknownDocument
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.document_rows import DocumentChange
from rag_assets.storage.catalog.former_contents import readable_contents
from rag_assets.storage.catalog.holds import is_held
from rag_assets.storage.catalog.index_rows import withhold_statement
from rag_assets.storage.catalog.tables import (
    documents,
    events,
    record_texts,
    source_records,
    tombstones,
)
from rag_assets.storage.catalog.upload_rows import delete_uploads
from rag_assets.storage.catalog.upload_tables import uploads

UNREADABLE = ""
"""The content hash in the tombstone of a document that could not be read."""


class RemovalTable:
    """Deletes documents on request."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def remove(
        self, ref: TenantRef, document_id: str, by: str, *, invalidate: bool = False
    ) -> bool:
        """Mark a document deleted: searches omit it at once, and the next sync deletes its entries.

        A document that its source still has is not added again until it changes.

        Args:
            ref: the tenant.
            document_id: the document to delete.
            by: the caller's name, for the event.
            invalidate: whether a later request may add the document again unchanged. If it was
                removed before, it can be added again only if both removals allow this.

        Returns:
            whether the document existed; False if it was deleted before.

        Raises:
            UnknownDocument: no document has that id, not even a recently deleted one.
        """
        table = documents.c
        known = select(table.content_sha256, table.status).where(
            table.tenant == ref.id, table.document_id == document_id
        )
        with self._database.begin_exclusive(ref) as connection:
            pushed = delete_record(connection, ref, document_id)
            pushed = bool(delete_uploads(connection, ref, [document_id])) or pushed
            row = connection.execute(known).first()
            if row is None and not pushed:
                raise UnknownDocument(
                    f"tenant {ref.id!r} has no such document",
                    hint="take an id from the list of documents",
                )
            exists = row is not None and row.status != "DELETED"
            if row is not None and exists and not pushed:
                content = row.content_sha256 or UNREADABLE
                _add_tombstone(connection, ref, document_id, content, invalidate)
            elif not invalidate:
                _keep_out(connection, ref, document_id)
            withdraw_document(connection, ref, document_id, by)
        return exists or pushed


def delete_record(connection: Connection, ref: TenantRef, document_id: str) -> bool:
    """Delete the pushed record of a document; return whether it existed."""
    for table in (record_texts, source_records):
        gone = connection.execute(
            delete(table).where(table.c.tenant == ref.id, table.c.document_id == document_id)
        ).rowcount
    return gone > 0


def withdraw_document(connection: Connection, ref: TenantRef, document_id: str, by: str) -> None:
    """Mark a document deleted, unless it already is, and withhold its versions from searches."""
    uri = connection.scalar(mark_deleted_statement(ref, [document_id]).returning(documents.c.uri))
    if uri is not None:
        connection.execute(withhold_statement(ref, [document_id]))
        event = {"tenant": ref.id, "kind": "document_removed", "payload": {"uri": uri, "by": by}}
        connection.execute(insert(events).values(event))


def mark_deleted_statement(ref: TenantRef, document_ids: Sequence[str]) -> Update:
    """Return the statement that marks documents deleted and clears titles, tags and metadata.

    Their URIs stay, so that a deleted document can still be looked up. Held documents are not
    cleared.
    """
    nothing = {"title": null(), "said_title": null(), "tags": literal([], ARRAY(Text))}
    nothing |= {"source_id": null(), "page_uuid": null()}
    nothing |= {"metadata": literal({}, JSONB), "path": literal(b"", LargeBinary)}
    cleared = {
        name: case((is_held(), documents.c[name]), else_=value) for name, value in nothing.items()
    }
    return (
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            among(documents.c.document_id, document_ids),
            documents.c.status != "DELETED",
        )
        .values(
            status="DELETED",
            **cleared,
            error_message=None,
            error_kind=None,
            failed_document_key=None,
            failed_config_key=None,
            changed_at=func.now(),
            updated_at=func.now(),
        )
    )


def not_superseded(
    connection: Connection, ref: TenantRef, changes: Sequence[DocumentChange]
) -> list[DocumentChange]:
    """Return a listing's changes without documents that were deleted since or are unreadable.

    A record that was pushed again since is recorded as it was listed, if that content is kept and
    its page and access scope are unchanged. So, however often it is pushed, each run indexes it
    once.
    """
    tombstoned = _tombstone_contents(connection, ref, [change.document_id for change in changes])
    pushed = [change.document_id for change in changes if change.facts.revision is not None]
    present = _present(connection, ref, pushed) if pushed else {}
    again = [
        change
        for change in changes
        if (found := present.get(change.document_id)) is not None
        and found.revision != change.facts.revision
    ]
    ids = [change.document_id for change in again]
    kept = readable_contents(connection, ref, ids) if again else frozenset[tuple[str, str]]()
    return [
        change
        for change in changes
        if _may_be_recorded(change, present.get(change.document_id), kept)
        and tombstoned.get(change.document_id) != (change.content_sha256 or UNREADABLE)
    ]


def _may_be_recorded(
    change: DocumentChange, present: Row[Any] | None, kept: Collection[tuple[str, str]]
) -> bool:
    if change.facts.revision is None:
        return present is None
    if present is None:
        return False
    if present.revision == change.facts.revision:
        return True
    readable = (change.document_id, change.content_sha256) in kept
    return readable and present.place in {None, change.page_uuid or change.access_scope}


def _tombstone_contents(
    connection: Connection, ref: TenantRef, document_ids: Sequence[str]
) -> dict[str, str]:
    """Return, by document id, the content that must not be added again after a deletion."""
    table = tombstones.c
    exists = documents.c.document_id.is_not(None) & (documents.c.status != "DELETED")
    query = (
        select(table.document_id, table.content_sha256)
        .outerjoin(
            documents,
            (documents.c.tenant == table.tenant) & (documents.c.document_id == table.document_id),
        )
        .where(table.tenant == ref.id, among(table.document_id, document_ids), ~exists)
    )
    return dict(connection.execute(query).all())


def _present(
    connection: Connection, ref: TenantRef, document_ids: Collection[str]
) -> dict[str, Row[Any]]:
    """Return the revisions of pushed records and uploads, with what determines access to a record.

    `place` of a record is its page, or else its own access scope.
    """
    columns = source_records.c
    records = select(
        columns.document_id,
        columns.revision,
        func.coalesce(columns.page_uuid, columns.said["access_scope"].astext).label("place"),
    ).where(columns.tenant == ref.id, among(columns.document_id, document_ids))
    files = select(uploads.c.document_id, uploads.c.revision, null().label("place")).where(
        uploads.c.tenant == ref.id, among(uploads.c.document_id, document_ids), uploads.c.enabled
    )
    # The content of a file record is an upload, but the listing listed the record.
    found = {row.document_id: row for row in connection.execute(files)}
    return found | {row.document_id: row for row in connection.execute(records)}


def _add_tombstone(
    connection: Connection,
    ref: TenantRef,
    document_id: str,
    content_sha256: str,
    invalidated: bool,
) -> None:
    content = {
        "content_sha256": content_sha256,
        "pruned_at": func.now(),
        "invalidated": invalidated,
    }
    connection.execute(
        upsert(tombstones)
        .values(tenant=ref.id, document_id=document_id, **content)
        .on_conflict_do_update(index_elements=["tenant", "document_id"], set_=content)
    )


def _keep_out(connection: Connection, ref: TenantRef, document_id: str) -> None:
    """Prevent requests from adding back a document that was invalidated before."""
    table = tombstones.c
    of_document = (table.tenant == ref.id, table.document_id == document_id)
    connection.execute(update(tombstones).where(*of_document).values(invalidated=False))
