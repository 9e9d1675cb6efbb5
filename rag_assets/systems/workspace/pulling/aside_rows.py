"""Rows that were set aside: which still exist, and which could become records now."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, func, or_, select, update

from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.tables import source_records
from rag_assets.systems.workspace.tables import pulled_rows


class AsideRows:
    """Queries on batches of rows that were set aside."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def among(self, ref: TenantRef, source: str, keys: Collection[str]) -> set[str]:
        """Return which of these rows of a source were set aside."""
        query = select(pulled_rows.c.row_key).where(*among_rows(ref, source, keys))
        with self._database.begin() as connection:
            return set(connection.scalars(query))

    def seen(self, ref: TenantRef, source: str, keys: Collection[str]) -> set[str]:
        """Return which of these rows were set aside, and record that they still exist."""
        noted = update(pulled_rows).where(*among_rows(ref, source, keys)).values(seen_at=func.now())
        with self._database.begin_for(ref) as connection:
            return set(connection.scalars(noted.returning(pulled_rows.c.row_key)))

    def forget_unseen(self, ref: TenantRef, source: str, since: datetime) -> None:
        """Forget rows that were set aside before a time and not seen since."""
        columns = pulled_rows.c
        unseen = delete(pulled_rows).where(
            columns.tenant == ref.id,
            columns.source == source,
            columns.set_aside_at < since,
            or_(columns.seen_at.is_(None), columns.seen_at < since),
        )
        with self._database.begin_for(ref) as connection:
            connection.execute(unseen)

    def awaited_pages(self, ref: TenantRef, source: str, limit: int) -> list[str]:
        """Return pages that exist now, but did not when their blocks were set aside."""
        columns, records = pulled_rows.c, source_records.c
        query = (
            select(columns.awaited_page)
            .distinct()
            .where(
                columns.tenant == ref.id,
                columns.source == source,
                columns.awaited_page.is_not(None),
                exists().where(
                    records.tenant == columns.tenant,
                    records.source == columns.source,
                    records.source_type == "page",
                    records.source_id == columns.awaited_page,
                ),
            )
            .limit(limit)
        )
        with self._database.begin() as connection:
            return [*connection.scalars(query)]

    def await_no_more(self, ref: TenantRef, source: str, pages: Collection[str]) -> None:
        """Record that the blocks that waited for these pages were read again."""
        columns = pulled_rows.c
        waiting = update(pulled_rows).where(
            columns.tenant == ref.id,
            columns.source == source,
            among(columns.awaited_page, pages),
        )
        with self._database.begin_for(ref) as connection:
            connection.execute(waiting.values(awaited_page=None))


def among_rows(
    ref: TenantRef, source: str, keys: Collection[str]
) -> tuple[ColumnElement[bool], ...]:
    """Return the condition for rows of a source that were set aside."""
    columns = pulled_rows.c
    return columns.tenant == ref.id, columns.source == source, among(columns.row_key, keys)
