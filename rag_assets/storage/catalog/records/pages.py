"""Pages of records in the catalog: the documents attached to them, and their access scopes.

A record on a page has the page's access scope. A page that is moved gives its documents their new
scope immediately; the entries in the index follow with the next run.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.types import TypeEngine

from rag_assets.ingest.sources.record_bodies import PageBody
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY, ROOT, build_page_scope
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    Texts,
    is_of_documents,
    matches_any,
)
from rag_assets.storage.catalog.documents.model import DocumentChange
from rag_assets.storage.catalog.documents.status import is_excluded_from_builds
from rag_assets.storage.catalog.tables import documents, pages, source_records


@dataclass(frozen=True, slots=True)
class MovedPages:
    """Pages whose entries may have another access scope than their documents."""

    uuids: tuple[str, ...]
    move: int


class PageTable(CatalogQueries):
    """Finds pages, title paths of pages, and pages whose index entries have a former scope."""

    def find_kind(self, tenant_id: str, uuid: str) -> str | None:
        """Return the kind of a page: root, page or database; None if the page is unknown."""
        query = sa.select(pages.c.kind).where(pages.c.tenant == tenant_id, pages.c.uuid == uuid)
        return self._database.fetch_value(query)

    def find_title_paths(
        self, tenant_id: str, uuids: Collection[str], principals: Collection[str]
    ) -> dict[str, tuple[tuple[str, str], ...]]:
        """Return, by page, its path: (uuid, title) of each page from the root down to it.

        Pages without a title, or that none of the principals may read, are left out.
        """
        first = sa.select(
            pages.c.uuid.label("origin"),
            pages.c.uuid,
            pages.c.parent,
            sa.literal(0).label("distance"),
        ).where(pages.c.tenant == tenant_id, matches_any(pages.c.uuid, [*uuids]))
        path = first.cte("path", recursive=True)
        upwards = sa.select(path.c.origin, pages.c.uuid, pages.c.parent, path.c.distance + 1).where(
            pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
        )
        path = path.union_all(upwards)
        table = documents.c
        query = (
            sa.select(path.c.origin, path.c.uuid, table.title)
            .join(documents, sa.and_(table.tenant == tenant_id, table.page_uuid == path.c.uuid))
            .where(
                table.source_type == "page",
                table.status != "DELETED",
                table.title.is_not(None),
                is_readable(documents, [*principals]),
            )
            .order_by(path.c.origin, path.c.distance.desc(), table.document_id)
        )
        titles_by_page: dict[str, dict[str, str]] = {}
        for row in self._database.fetch_rows(query):
            titles_by_page.setdefault(row.origin, {}).setdefault(row.uuid, row.title)
        return {origin: tuple(titles.items()) for origin, titles in titles_by_page.items()}

    def find_moved(self, tenant_id: str) -> MovedPages | None:
        """Return the pages whose entries still lack their documents' scope; None if none do."""
        query = sa.select(pages.c.uuid, pages.c.moved).where(
            pages.c.tenant == tenant_id, pages.c.moved.is_not(None)
        )
        rows = self._database.fetch_rows(query)
        if not rows:
            return None
        return MovedPages(tuple(row.uuid for row in rows), max(row.moved for row in rows))

    def find_document_scopes(self, tenant_id: str, uuids: Sequence[str]) -> dict[str, str]:
        """Return, by document id, the access scope of the living documents of these pages."""
        table = documents.c
        query = sa.select(table.document_id, table.access_scope).where(
            table.tenant == tenant_id,
            matches_any(table.page_uuid, uuids),
            ~is_excluded_from_builds(),
        )
        return {row.document_id: row.access_scope for row in self._database.fetch_rows(query)}

    def mark_scopes_updated(self, ref: TenantRef, moved: MovedPages) -> None:
        """Record that entries of moved pages now have their documents' scope.

        Args:
            moved: the pages as they were read; pages that moved again since stay marked.
        """
        table = pages.c
        were_moved = (matches_any(table.uuid, moved.uuids), table.moved <= moved.move)
        self._database.update(ref, pages, *were_moved, moved=None)


def select_descendants(
    tenant_id: str | sa.ColumnElement[str], uuids: Texts, *, itself: bool = False
) -> sa.FromClause:
    """Return the query for all pages below these pages, with their distance."""
    start = pages.c.uuid if itself else pages.c.parent
    first = sa.select(pages, sa.literal(1, sa.Integer).label("distance")).where(
        pages.c.tenant == tenant_id, matches_any(start, uuids)
    )
    tree = first.cte("below", recursive=True)
    downwards = sa.select(pages, tree.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.parent == tree.c.uuid
    )
    return tree.union_all(downwards)


def find_descendants(
    connection: sa.Connection, ref: TenantRef, uuids: Collection[str]
) -> dict[str, set[str]]:
    """Return all pages below each of these pages, by page."""
    if not uuids:
        return {}
    table = pages.c
    first = sa.select(table.parent.label("above"), table.uuid).where(
        table.tenant == ref.id, matches_any(table.parent, [*uuids])
    )
    tree = first.cte("below", recursive=True)
    downwards = sa.select(tree.c.above, table.uuid).where(
        table.tenant == ref.id, table.parent == tree.c.uuid
    )
    tree = tree.union_all(downwards)
    descendants: dict[str, set[str]] = {}
    for row in connection.execute(sa.select(tree)):
        descendants.setdefault(row.above, set()).add(row.uuid)
    return descendants


def select_readable_within(
    tenant: sa.ColumnElement[str], uuids: Texts, principals: Texts
) -> sa.Select[Any]:
    """Return the query for the readable pages among these pages and the pages below them."""
    below = select_descendants(tenant, uuids, itself=True)
    return sa.select(below.c.uuid).where(is_readable(below, principals, column="scope")).distinct()


def find_attached_documents(
    connection: sa.Connection, ref: TenantRef, uuids: Sequence[str]
) -> list[str]:
    """Return the ids of the documents attached to these pages, and of the pages themselves."""
    if not uuids:
        return []
    listed, record = documents.c, source_records.c
    of_documents = sa.select(listed.document_id).where(
        listed.tenant == ref.id, matches_any(listed.page_uuid, uuids), listed.status != "DELETED"
    )
    # A record that was not listed yet is attached to its page, too.
    of_records = sa.select(record.document_id).where(
        record.tenant == ref.id, matches_any(record.page_uuid, uuids)
    )
    return [*connection.scalars(of_documents.union(of_records))]


def has_moved_page(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a document's page was moved and its entries not updated yet."""
    return sa.exists().where(
        pages.c.tenant == table.c.tenant,
        pages.c.uuid == table.c.page_uuid,
        pages.c.moved.is_not(None),
    )


def find_page_scopes(
    connection: sa.Connection, tenant_id: str, uuids: Sequence[str]
) -> Mapping[str, str]:
    """Return the access scope of each page's documents, as the transaction sees them.

    Documents attached to an unknown page are readable by nobody.
    """
    query = sa.select(pages.c.uuid, pages.c.scope).where(
        pages.c.tenant == tenant_id, matches_any(pages.c.uuid, uuids)
    )
    return dict.fromkeys(uuids, NOBODY) | dict(connection.execute(query).all())


def set_page_scopes(
    connection: sa.Connection, ref: TenantRef, changes: Sequence[DocumentChange]
) -> list[DocumentChange]:
    """Return the changes of a listing with the present access scopes of their pages.

    A page may have been moved since its documents were listed.
    """
    uuids = {change.page_uuid for change in changes if change.page_uuid is not None}
    if not uuids:
        return [*changes]
    scopes = find_page_scopes(connection, ref.id, [*uuids])
    return [
        change
        if change.page_uuid is None
        else replace(change, access_scope=scopes[change.page_uuid])
        for change in changes
    ]


def select_excluded_pages(tenant_id: str, uuids: sa.Select[Any] | None = None) -> sa.FromClause:
    """Return the query for the pages excluded from search.

    Returns:
        columns `uuid`; `scope`, which the page would have if it were not excluded; `is_archived`,
        whether it is excluded because it is archived.
    """
    own = ("uuid", "parent", "kind", "inherit", "readers", "archived", "ai")
    columns = [pages.c[name] for name in own]
    first = sa.select(
        pages.c.uuid.label("origin"), *columns, sa.literal(0).label("distance")
    ).where(pages.c.tenant == tenant_id, pages.c.scope == EXCLUDED)
    if uuids is not None:
        first = first.where(pages.c.uuid.in_(uuids))
    path = first.cte("above", recursive=True)
    upwards = sa.select(path.c.origin, *columns, path.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
    )
    path = path.union_all(upwards)
    above, distance = path.c, path.c.distance
    says = sa.or_(~above.inherit, sa.func.cardinality(above.readers) > 0)
    nearest = _select_first_value(sa.case((says, above.uuid)), distance, sa.Text())
    out = sa.or_(above.archived, ~above.ai)
    highest = _select_first_value(sa.case((out, above.archived)), distance.desc(), sa.Boolean())
    known = sa.func.bool_or(above.kind == "root")
    scope = sa.func.coalesce(sa.case((known, sa.literal(build_page_scope("")) + nearest)), NOBODY)
    return (
        sa.select(above.origin.label("uuid"), scope.label("scope"), highest.label("is_archived"))
        .group_by(above.origin)
        .subquery("excluded_pages")
    )


def _select_first_value(
    value: sa.ColumnElement[Any], order: sa.ColumnElement[Any], type_: TypeEngine[Any]
) -> sa.ColumnElement[Any]:
    """Return the SQL expression of the first value of a group, in this order, that is not null."""
    all_: sa.ColumnElement[Any] = sa.func.array_agg(aggregate_order_by(value, order))
    return sa.func.array_remove(all_, sa.null(), type_=sa.ARRAY(type_))[1]


def find_pages_of_records(
    connection: sa.Connection, ref: TenantRef, document_ids: Collection[str]
) -> set[str]:
    """Return the pages whose own record belongs to one of these documents."""
    record = source_records.c
    query = sa.select(record.page_uuid).where(
        is_of_documents(record, ref.id, [*document_ids]),
        record.source_type == PageBody.TYPE,
        record.page_uuid.is_not(None),
    )
    return {*connection.scalars(query)}


def find_remaining_pages(
    connection: sa.Connection, ref: TenantRef, uuids: Collection[str], removals: Collection[str]
) -> set[str]:
    """Return which of these pages have a record that is not being removed."""
    if not uuids:
        return set()
    record = source_records.c
    query = sa.select(record.page_uuid).where(
        record.tenant == ref.id,
        matches_any(record.page_uuid, [*uuids]),
        record.source_type == PageBody.TYPE,
        ~matches_any(record.document_id, [*removals]),
    )
    return {*connection.scalars(query)}


def find_documents_of_removed_pages(
    connection: sa.Connection,
    ref: TenantRef,
    uuids: Collection[str],
    removals: Collection[str],
    *,
    spared: Collection[str] = (),
    keep_stored: bool = False,
) -> set[str]:
    """Return the documents to remove with pages: those attached to them and to pages below.

    A page that still has another record stays, with the documents attached to it.

    Args:
        removals: documents with records to remove, including the pages' own.
        spared: pages below that stay, with their documents and the pages below them.
        keep_stored: whether to keep all pages with stored records that are not being removed.
    """
    if not uuids:
        return set()
    removed_pages = {*uuids} - find_remaining_pages(connection, ref, uuids, removals)
    # A record may have the id of the root; then everything else in the tree stays.
    below = _find_pages_below_all(connection, ref, removed_pages - {ROOT}) - removed_pages
    kept = below & {*spared}
    if keep_stored:
        kept |= find_remaining_pages(connection, ref, below, removals)
    below -= kept | _find_pages_below_all(connection, ref, kept)
    return {*find_attached_documents(connection, ref, [*removed_pages, *below])} - {*removals}


def _find_pages_below_all(
    connection: sa.Connection, ref: TenantRef, uuids: Collection[str]
) -> set[str]:
    """Return all pages below these pages, as one set."""
    if not uuids:
        return set()
    tree = select_descendants(ref.id, [*uuids])
    return {*connection.scalars(sa.select(tree.c.uuid))}
