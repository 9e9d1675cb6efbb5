"""Rows of pages, and the statements on a workspace's tree that other tables' statements join."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import (
    ARRAY,
    Boolean,
    ColumnElement,
    Connection,
    FromClause,
    Integer,
    Row,
    Select,
    Text,
    case,
    exists,
    func,
    literal,
    null,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.types import TypeEngine

from rag_assets.common.principals import MEMBERS
from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import TenantRef, Texts, among
from rag_assets.storage.catalog.document_rows import DocumentChange
from rag_assets.storage.catalog.tables import access_scopes, documents, source_records
from rag_assets.storage.catalog.tree_tables import pages
from rag_assets.workspace.tree import EXCLUDED, NOBODY, ROOT, Page, new_root, scope_of

_COLUMNS = ("uuid", "kind", "parent", "inherit", "readers", "archived", "ai")


def page_of(row: Row[Any]) -> Page:
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


def values_of(page: Page) -> dict[str, Any]:
    """Return a page's own fields as columns."""
    return {name: getattr(page, name) for name in _COLUMNS} | {"readers": list(page.readers)}


def page_query(tenant_id: str, uuid: str) -> Select[Any]:
    """Return the query of one page."""
    return select(pages).where(pages.c.tenant == tenant_id, pages.c.uuid == uuid)


def above_query(tenant_id: str, uuid: str) -> Select[Any]:
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


def tree_query(tenant_id: str, uuids: Sequence[str], *, upwards: bool) -> Select[Any]:
    """Return some pages and all above them, or all pages below some; each page once."""
    start, step = (pages.c.uuid, pages.c.parent) if upwards else (pages.c.parent, pages.c.uuid)
    first = select(pages).where(pages.c.tenant == tenant_id, among(start, uuids))
    tree = first.cte("walk", recursive=True)
    further = select(pages).where(pages.c.tenant == tenant_id, start == tree.c[step.name])
    return select(tree.union(further))


def below_query(
    tenant_id: str | ColumnElement[str], uuids: Texts, *, itself: bool = False
) -> FromClause:
    """Return all pages below others, each with its distance; with `itself`, also the others."""
    begun = pages.c.uuid if itself else pages.c.parent
    first = select(pages, literal(1, Integer).label("distance")).where(
        pages.c.tenant == tenant_id, among(begun, uuids)
    )
    tree = first.cte("below", recursive=True)
    downwards = select(pages, tree.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.parent == tree.c.uuid
    )
    return tree.union_all(downwards)


def pages_below(
    connection: Connection, ref: TenantRef, uuids: Collection[str]
) -> dict[str, set[str]]:
    """Return all pages below each of some pages."""
    if not uuids:
        return {}
    table = pages.c
    first = select(table.parent.label("above"), table.uuid).where(
        table.tenant == ref.id, among(table.parent, [*uuids])
    )
    tree = first.cte("below", recursive=True)
    downwards = select(tree.c.above, table.uuid).where(
        table.tenant == ref.id, table.parent == tree.c.uuid
    )
    tree = tree.union_all(downwards)
    found: dict[str, set[str]] = {}
    for row in connection.execute(select(tree)):
        found.setdefault(row.above, set()).add(row.uuid)
    return found


def readable_within(tenant: ColumnElement[str], uuids: Texts, principals: Texts) -> Select[Any]:
    """Return some pages and all below them that one of these principals may read."""
    below = below_query(tenant, uuids, itself=True)
    return select(below.c.uuid).where(is_readable(below, principals, column="scope")).distinct()


def hanging_documents(connection: Connection, ref: TenantRef, uuids: Sequence[str]) -> list[str]:
    """Return the ids of the documents attached to some pages, including the pages' own."""
    if not uuids:
        return []
    listed, record = documents.c, source_records.c
    of_documents = select(listed.document_id).where(
        listed.tenant == ref.id, among(listed.page_uuid, uuids), listed.status != "DELETED"
    )
    # A record that was not listed yet is attached to its page, too.
    of_records = select(record.document_id).where(
        record.tenant == ref.id, among(record.page_uuid, uuids)
    )
    return [*connection.scalars(of_documents.union(of_records))]


def is_moved(table: FromClause) -> ColumnElement[bool]:
    """Return the condition that the entries of a row's document may have another scope than it."""
    return exists().where(
        pages.c.tenant == table.c.tenant,
        pages.c.uuid == table.c.page_uuid,
        pages.c.moved.is_not(None),
    )


def scopes_of_pages(
    connection: Connection, tenant_id: str, uuids: Sequence[str]
) -> Mapping[str, str]:
    """Return the access scope of each page's documents, as the transaction sees them.

    Documents attached to an unknown page are readable by nobody.
    """
    query = select(pages.c.uuid, pages.c.scope).where(
        pages.c.tenant == tenant_id, among(pages.c.uuid, uuids)
    )
    return dict.fromkeys(uuids, NOBODY) | dict(connection.execute(query).all())


def with_scopes(
    connection: Connection, ref: TenantRef, changes: Sequence[DocumentChange]
) -> list[DocumentChange]:
    """Return the changes of a listing, with the pages' current access scopes.

    A page may have been moved since its documents were listed.
    """
    uuids = {change.page_uuid for change in changes if change.page_uuid is not None}
    if not uuids:
        return [*changes]
    scopes = scopes_of_pages(connection, ref.id, [*uuids])
    return [
        change
        if change.page_uuid is None
        else replace(change, access_scope=scopes[change.page_uuid])
        for change in changes
    ]


def excluded_pages(tenant_id: str, uuids: Select[Any] | None = None) -> FromClause:
    """Return the pages excluded from the knowledge, each with the scope that it would have in it.

    Args:
        tenant_id: the tenant.
        uuids: only these pages.

    Returns:
        their `uuid`, that `scope`, and whether archiving excludes them: `is_archived`.
    """
    own = ("uuid", "parent", "kind", "inherit", "readers", "archived", "ai")
    columns = [pages.c[name] for name in own]
    first = select(pages.c.uuid.label("origin"), *columns, literal(0).label("distance")).where(
        pages.c.tenant == tenant_id, pages.c.scope == EXCLUDED
    )
    if uuids is not None:
        first = first.where(pages.c.uuid.in_(uuids))
    path = first.cte("above", recursive=True)
    upwards = select(path.c.origin, *columns, path.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
    )
    path = path.union_all(upwards)
    above, distance = path.c, path.c.distance
    says = or_(~above.inherit, func.cardinality(above.readers) > 0)
    nearest = _first(case((says, above.uuid)), distance, Text())
    out = or_(above.archived, ~above.ai)
    highest = _first(case((out, above.archived)), distance.desc(), Boolean())
    known = func.bool_or(above.kind == "root")
    scope = func.coalesce(case((known, literal(scope_of("")) + nearest)), NOBODY)
    return (
        select(above.origin.label("uuid"), scope.label("scope"), highest.label("is_archived"))
        .group_by(above.origin)
        .subquery("excluded_pages")
    )


def _first(
    value: ColumnElement[Any], order: ColumnElement[Any], type_: TypeEngine[Any]
) -> ColumnElement[Any]:
    """Return the first value of a group that is not null."""
    all_: ColumnElement[Any] = func.array_agg(aggregate_order_by(value, order))
    return func.array_remove(all_, null(), type_=ARRAY(type_))[1]


def ensure_root(connection: Connection, tenant_id: str) -> None:
    """Add the root, which all members may read, unless it exists."""
    root = new_root()
    made = connection.execute(
        upsert(pages)
        .values(tenant=tenant_id, scope=scope_of(ROOT), **values_of(root))
        .on_conflict_do_nothing()
        .returning(pages.c.uuid)
    ).first()
    if made is not None:
        connection.execute(
            upsert(access_scopes)
            .values(tenant=tenant_id, scope=scope_of(ROOT), principal=MEMBERS)
            .on_conflict_do_nothing()
        )


def as_rows(pairs: Collection[tuple[str, str]], *, name: str) -> FromClause:
    """Return pairs as rows of `key` and `value`, in two parameters regardless of their number."""
    keys, values = ([pair[at] for pair in pairs] for at in (0, 1))
    return (
        func.unnest(literal(keys, ARRAY(Text)), literal(values, ARRAY(Text)))
        .table_valued("key", "value", name=name)
        .render_derived()
    )
