"""Documents that moved within their source: the former one answers until the new one is indexed.

A document is identified by its location, so a moved document is deleted and added. Until the
document at the new location is indexed, searches return the former document. So a renamed folder
can be found at any moment.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ForeignKeyConstraint,
    Table,
    Text,
    and_,
    delete,
    exists,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.columns import metadata
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.removals import mark_deleted_statement
from rag_assets.storage.catalog.tables import documents

_BATCH = 2_000

moved_documents = Table(
    "moved_documents",
    metadata,
    Column("tenant", Text, primary_key=True),
    Column("document_id", Text, primary_key=True),
    # The document at its new location; a listing records it right afterwards.
    Column("successor", Text, nullable=False),
    ForeignKeyConstraint(
        ["tenant", "document_id"],
        ["documents.tenant", "documents.document_id"],
        ondelete="CASCADE",
    ),
)


class MovedDocuments:
    """Queries on `moved_documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def record(self, ref: TenantRef, successors: Mapping[str, str]) -> None:
        """Record documents that their source moved to another location.

        Args:
            ref: the tenant.
            successors: maps each former document to the document at its new location.

        Raises:
            TenantGone: the tenant was removed.
        """
        moved = moved_documents.c
        new = upsert(moved_documents)
        statement = new.on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"successor": new.excluded.successor}
        )
        for batch in batched(sorted(successors), _BATCH):
            with self._database.begin_for(ref) as connection:
                rows = [
                    {"tenant": ref.id, "document_id": id_, "successor": successors[id_]}
                    for id_ in batch
                ]
                connection.execute(statement, rows)
                for id_ in _awaited(connection, ref, batch):
                    # Documents that moved to this location have now moved on from it.
                    there = and_(moved.tenant == ref.id, moved.successor == id_)
                    connection.execute(
                        update(moved_documents).where(there).values(successor=successors[id_])
                    )

    def end(self, ref: TenantRef) -> int:
        """Mark those moved documents deleted that need not wait; return how many.

        A document waits until its new location is indexed.

        Raises:
            TenantGone: the tenant was removed.
        """
        moved = moved_documents.c
        waits = exists().where(
            documents.c.tenant == moved.tenant,
            documents.c.document_id == moved.successor,
            documents.c.status == "PROCESSING",
        )
        query = select(moved.document_id).where(moved.tenant == ref.id, ~waits)
        with self._database.begin() as connection:
            ended = sorted(connection.scalars(query))
        for batch in batched(ended, _BATCH):
            ids = list(batch)
            with self._database.begin_for(ref) as connection:
                connection.execute(mark_deleted_statement(ref, ids))
                forget_moves(connection, ref, ids)
        return len(ended)


def is_moved() -> ColumnElement[bool]:
    """Return the condition that a document's content is now at another location."""
    moved = moved_documents.c
    return exists().where(
        moved.tenant == documents.c.tenant, moved.document_id == documents.c.document_id
    )


def forget_moves(connection: Connection, ref: TenantRef, document_ids: Collection[str]) -> None:
    """Delete the record of moves of documents that are gone, or back at their former location."""
    moved = moved_documents.c
    wanted = moved.tenant == ref.id, among(moved.document_id, [*document_ids])
    connection.execute(delete(moved_documents).where(*wanted))


def _awaited(connection: Connection, ref: TenantRef, document_ids: Collection[str]) -> list[str]:
    moved = moved_documents.c
    wanted = moved.tenant == ref.id, among(moved.successor, [*document_ids])
    return [*connection.scalars(select(moved.successor).where(*wanted).distinct())]
