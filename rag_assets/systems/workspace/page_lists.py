"""Lists of the pages of a workspace's tree, with the titles that the caller may read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, exists, literal, select

from rag_assets.ingest.sources.records import ROOT
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import Database, is_any_of
from rag_assets.storage.catalog.tables import documents, pages
from rag_assets.systems.workspace.tree import Page


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

    def path(self, tenant_id: str, uuid: str) -> list[Page]:
        """Return a page, preceded by the pages above it from the highest known page down."""
        with self._database.begin() as connection:
            return [page_from_row(row) for row in connection.execute(_above_query(tenant_id, uuid))]

    def all(self, tenant_id: str) -> list[tuple[Page, str]]:
        """Return all pages by uuid, each with the access scope of its documents."""
        query = select(pages).where(pages.c.tenant == tenant_id).order_by(pages.c.uuid)
        with self._database.begin() as connection:
            return [(page_from_row(row), row.scope) for row in connection.execute(query)]

    def page(
        self, tenant_id: str, *, parent: str | None, after: str | None, limit: int
    ) -> list[tuple[Page, str]]:
        """Return pages by uuid, each with the access scope of its documents.

        Args:
            parent: only return pages directly below this page; None returns all pages.
            after: the last uuid of the previous list.
            limit: maximum number of pages to return.
        """
        query = select(pages).where(pages.c.tenant == tenant_id)
        if parent is not None:
            query = query.where(pages.c.parent == parent)
        if after is not None:
            query = query.where(pages.c.uuid > after)
        with self._database.begin() as connection:
            rows = connection.execute(query.order_by(pages.c.uuid).limit(limit))
            return [(page_from_row(row), row.scope) for row in rows]

    def all_with_times(self, tenant_id: str) -> dict[str, tuple[Page, datetime]]:
        """Return all pages except the root by uuid, each with the time when it was last put."""
        query = select(pages).where(pages.c.tenant == tenant_id, pages.c.uuid != ROOT)
        with self._database.begin() as connection:
            rows = connection.execute(query)
            return {row.uuid: (page_from_row(row), row.updated_at) for row in rows}

    def directly_below(
        self, tenant_id: str, parent: str, *, after: str | None, limit: int
    ) -> list[ListedPage]:
        """Return the pages directly below a page, by uuid; that page itself may be unknown.

        Args:
            tenant_id: the tenant.
            parent: the page above them.
            after: the last uuid of the previous list.
            limit: maximum number of pages to return.
        """
        return self._list(tenant_id, pages.c.parent == parent, after, limit)

    def unplaced(self, tenant_id: str, *, after: str | None, limit: int) -> list[ListedPage]:
        """Return the pages with an unknown parent; see directly_below()."""
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
            is_any_of(table.page_uuid, [*uuids]),
            table.source_type == "page",
            table.status != "DELETED",
            table.title.is_not(None),
            is_readable(documents, [*principals]),
        )
        with self._database.begin() as connection:
            return dict(connection.execute(query).all())

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
            return [ListedPage(page_from_row(row), row.has_pages) for row in rows]


def page_from_row(row: Row[Any]) -> Page:
    """Return the page in a row."""
    return Page(
        uuid=row.uuid,
        kind=row.kind,
        parent=row.parent,
        inherit=row.inherit,
        readers=tuple(row.readers),
        archived=row.archived,
        ai=row.ai,
    )


def tree_query(tenant_id: str, uuids: Sequence[str], *, upwards: bool) -> Select[Any]:
    """Return the query of pages and all pages above them, or below them; each page occurs once."""
    start, step = (pages.c.uuid, pages.c.parent) if upwards else (pages.c.parent, pages.c.uuid)
    first = select(pages).where(pages.c.tenant == tenant_id, is_any_of(start, uuids))
    tree = first.cte("walk", recursive=True)
    further = select(pages).where(pages.c.tenant == tenant_id, start == tree.c[step.name])
    return select(tree.union(further))


def _above_query(tenant_id: str, uuid: str) -> Select[Any]:
    """Return the query of a page and the pages above it, from the highest known page down."""
    first = select(pages, literal(0).label("distance")).where(
        pages.c.tenant == tenant_id, pages.c.uuid == uuid
    )
    path = first.cte("path", recursive=True)
    upwards = select(pages, path.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
    )
    path = path.union_all(upwards)
    return select(path).order_by(path.c.distance.desc())
