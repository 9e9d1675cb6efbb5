"""The mark of each tenant's catalog: a count of changes that never decreases.

It is raised by every change that a restored catalog must not forget: published versions, uploads,
purges, tokens, grants and holds. The stores keep the mark as well; see
rag_assets/pipeline/mark_keeper.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sqlalchemy import Connection, func, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef, note_raised
from rag_assets.storage.catalog.tables import catalog_marks, tenants


@dataclass(frozen=True, slots=True)
class Mark:
    """The number of changes in a tenant's catalog.

    Attributes:
        tag: a random tag of the last change; None for a mark of an earlier version of the program.
    """

    number: int
    tag: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogMark:
    """The mark in the catalog.

    Attributes:
        was_kept: whether a store has kept a mark of the tenant at any time.
    """

    mark: Mark
    was_kept: bool


class MarkTable:
    """Queries on `catalog_marks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, ref: TenantRef) -> CatalogMark | None:
        """Return the mark; None if this incarnation is removed or being removed."""
        columns = catalog_marks.c
        query = (
            select(columns.mark, columns.tag, columns.kept)
            .select_from(tenants)
            .outerjoin(catalog_marks, columns.tenant == tenants.c.id)
            .where(
                tenants.c.id == ref.id,
                tenants.c.incarnation == ref.incarnation,
                tenants.c.state != "REMOVING",
            )
        )
        with self._database.begin() as connection:
            row = connection.execute(query).first()
        if row is None:
            return None
        return CatalogMark(Mark(row.mark or 0, row.tag), bool(row.kept))

    def record_kept(self, ref: TenantRef) -> None:
        """Record that a store has kept the mark."""
        of_tenant = catalog_marks.c.tenant == ref.id
        with self._database.begin_for(ref) as connection:
            connection.execute(update(catalog_marks).where(of_tenant).values(kept=True))

    def raise_above(self, ref: TenantRef, number: int) -> None:
        """Raise the mark above a number that a store has kept."""
        with self._database.begin_for(ref) as connection:
            next_mark(connection, ref)
            of_tenant = catalog_marks.c.tenant == ref.id
            above = func.greatest(catalog_marks.c.mark, number + 1)
            connection.execute(update(catalog_marks).where(of_tenant).values(mark=above))


def next_mark(connection: Connection, ref: TenantRef) -> datetime:
    """Raise the mark in the transaction of a change; return Postgres's time.

    After the commit, the stores keep the mark too. Changes of one tenant wait for each other here.
    """
    tag = uuid4().hex[:16]
    raised = {"mark": catalog_marks.c.mark + 1, "tag": tag}
    statement = (
        upsert(catalog_marks)
        .values(tenant=ref.id, mark=1, tag=tag)
        .on_conflict_do_update(index_elements=["tenant"], set_=raised)
        .returning(func.clock_timestamp())
    )
    note_raised(connection, ref)
    at: datetime = connection.execute(statement).scalar_one()
    return at
