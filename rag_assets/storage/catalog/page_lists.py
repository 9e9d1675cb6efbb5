"""Pages of a workspace, one level at a time, with the titles that the caller may read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, literal, select

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.page_rows import page_of
from rag_assets.storage.catalog.tables import documents
from rag_assets.storage.catalog.tree_tables import pages
from rag_assets.workspace.tree import Page


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in a list.

    Attributes:
        has_pages: whether it has pages below it.
    """

    page: Page
    has_pages: bool


class PageLists:
    """Queries on `pages`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def below(
        self, tenant_id: str, parent: str, *, after: str | None, limit: int
    ) -> list[ListedPage]:
        """Return the pages directly below a known or unknown page, by uuid.

        Args:
            tenant_id: the tenant.
            parent: the page above them.
            after: the last uuid of the previous list.
            limit: the most to return.
        """
        return self._list(tenant_id, pages.c.parent == parent, after, limit)

    def unplaced(self, tenant_id: str, *, after: str | None, limit: int) -> list[ListedPage]:
        """Return the pages with an unknown parent; see below()."""
        above = pages.alias("above")
        known = exists().where(above.c.tenant == pages.c.tenant, above.c.uuid == pages.c.parent)
        return self._list(tenant_id, (pages.c.kind != "root") & ~known, after, limit)

    def titles(
        self, tenant_id: str, uuids: Collection[str], principals: Collection[str]
    ) -> dict[str, str]:
        """Return the titles of the pages that one of the principals may read, by uuid."""
        table = documents.c
        query = select(table.page_uuid, table.title).where(
            table.tenant == tenant_id,
            among(table.page_uuid, [*uuids]),
            table.source_type == "page",
            table.status != "DELETED",
            table.title.is_not(None),
            is_readable(documents, [*principals]),
        )
        with self._database.begin() as connection:
            return dict(connection.execute(query).all())

    def paths(
        self, tenant_id: str, uuids: Collection[str], principals: Collection[str]
    ) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return, by uuid, the pages from the root down to each given page, with their titles.

        Pages without a title, or that none of the principals may read, are left out.
        """
        first = select(
            pages.c.uuid.label("origin"), pages.c.uuid, pages.c.parent, literal(0).label("distance")
        ).where(pages.c.tenant == tenant_id, among(pages.c.uuid, [*uuids]))
        path = first.cte("path", recursive=True)
        upwards = select(path.c.origin, pages.c.uuid, pages.c.parent, path.c.distance + 1).where(
            pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
        )
        path = path.union_all(upwards)
        table = documents.c
        query = (
            select(path.c.origin, path.c.uuid, table.title)
            .join(documents, and_(table.tenant == tenant_id, table.page_uuid == path.c.uuid))
            .where(
                table.source_type == "page",
                table.status != "DELETED",
                table.title.is_not(None),
                is_readable(documents, [*principals]),
            )
            .order_by(path.c.origin, path.c.distance.desc(), table.document_id)
        )
        found: dict[str, dict[str, str]] = {}
        with self._database.begin() as connection:
            for row in connection.execute(query):
                found.setdefault(row.origin, {}).setdefault(row.uuid, row.title)
        return {origin: tuple(titles.items()) for origin, titles in found.items()}

    def _list(
        self, tenant_id: str, which: ColumnElement[bool], after: str | None, limit: int
    ) -> list[ListedPage]:
        lower = pages.alias("lower")
        has_pages = exists().where(lower.c.tenant == pages.c.tenant, lower.c.parent == pages.c.uuid)
        query = select(pages, has_pages.label("has_pages")).where(
            pages.c.tenant == tenant_id, which
        )
        if after is not None:
            query = query.where(pages.c.uuid > after)
        with self._database.begin() as connection:
            rows: Any = connection.execute(query.order_by(pages.c.uuid).limit(limit))
            return [ListedPage(page_of(row), row.has_pages) for row in rows]
