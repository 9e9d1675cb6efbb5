"""The mark of each tenant's catalog: counts the commits of versions, and never goes back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.storage.catalog.tables import catalog_marks


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of versions.

    Attributes:
        mark: of the catalog from then on.
        at: Postgres's time.
    """

    mark: int
    at: datetime


class MarkTable:
    """Queries on `catalog_marks`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str) -> int:
        """The number of commits of a tenant's versions."""
        query = select(catalog_marks.c.mark).where(catalog_marks.c.tenant == tenant_id)
        with self._database.begin() as connection:
            return connection.scalar(query) or 0


def next_mark(connection: Connection, ref: TenantRef) -> Commit:
    """Count one more commit of versions."""
    statement = (
        upsert(catalog_marks)
        .values(tenant=ref.id, mark=1)
        .on_conflict_do_update(index_elements=["tenant"], set_={"mark": catalog_marks.c.mark + 1})
        .returning(catalog_marks.c.mark, func.clock_timestamp())
    )
    return Commit(*connection.execute(statement).one())
