"""A workspace's tree of pages: every change holds with its transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, delete, func, insert, literal, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.changes import notify
from rag_assets.storage.catalog.database import Database, TenantRef, among
from rag_assets.storage.catalog.index_rows import has_left
from rag_assets.storage.catalog.page_rows import (
    above_query,
    as_rows,
    below_query,
    ensure_root,
    hanging_documents,
    page_of,
    page_query,
    values_of,
)
from rag_assets.storage.catalog.record_writes import delete_records, withdraw_documents
from rag_assets.storage.catalog.security_changes import record_change
from rag_assets.storage.catalog.tables import access_scopes, documents
from rag_assets.storage.catalog.tree_tables import page_moves, pages, scope_ancestors
from rag_assets.workspace.tree import EXCLUDED, NOBODY, Page, TreePlan, planned, scope_of


@dataclass(frozen=True, slots=True)
class TreeChange:
    """What a change of the tree did.

    Attributes:
        scope: of what hangs on the page now.
        documents: that have another scope by it, or went with a page.
        blobs: hashes of contents that were theirs.
    """

    scope: str
    documents: int
    blobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MovedPages:
    """Pages whose entries may have another scope than their documents.

    Attributes:
        uuids: of the pages.
        move: the last one among their moves.
    """

    uuids: tuple[str, ...]
    move: int


class PageTable:
    """Queries on `pages` and `scope_ancestors`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, ref: TenantRef, page: Page) -> TreeChange:
        """Put a page, or what it is now; holds for every search that begins afterwards.

        The work grows with the pages below it, and only where they depend on what changed.

        Raises:
            InvalidRequest: it would be below itself, or too far from the root.
            TenantGone: the tenant was removed.
            TenantBusy: other transactions did not end within five seconds.
        """
        with self._database.begin_exclusive(ref) as connection:
            ensure_root(connection, ref.id)
            row = connection.execute(page_query(ref.id, page.uuid)).first()
            former = None if row is None else page_of(row)
            if row is not None and former is not None and former.shape == page.shape:
                _write_page(connection, ref, page, row.scope)
                change = TreeChange(row.scope, 0)
            else:
                change = _put_anew(connection, ref, page)
            removed = _grant(connection, ref, page)
            if removed or (former is not None and former.shape != page.shape):
                record_change(connection, ref, "page_changed", page.uuid)
            if change.documents:
                notify(connection, ref.id)
        return change

    def remove(self, ref: TenantRef, uuid: str, by: str) -> TreeChange:
        """Delete a page, all pages below it, and the records that hang on any of them.

        What hangs on a page that is not known is deleted as well.

        Args:
            ref: the tenant.
            uuid: of the page.
            by: the caller's name, for the events.
        """
        with self._database.begin_exclusive(ref) as connection:
            gone = [uuid, *_uuids_below(connection, ref.id, uuid)]
            ids = hanging_documents(connection, ref, gone)
            _, blobs = delete_records(connection, ref, ids)
            withdraw_documents(connection, ref, ids, by)
            table = pages.c
            its = (table.tenant == ref.id, among(table.uuid, gone))
            if connection.execute(delete(pages).where(*its)).rowcount:
                record_change(connection, ref, "page_changed", uuid)
            scopes = [scope_of(one) for one in gone]
            for owned in (access_scopes, scope_ancestors):
                connection.execute(
                    delete(owned).where(owned.c.tenant == ref.id, among(owned.c.scope, scopes))
                )
            if ids:
                notify(connection, ref.id)
        return TreeChange(NOBODY, len(ids), blobs)

    def find(self, tenant_id: str, uuid: str) -> Page | None:
        """One page; None if it is not known."""
        with self._database.begin() as connection:
            row = connection.execute(page_query(tenant_id, uuid)).first()
        return None if row is None else page_of(row)

    def path(self, tenant_id: str, uuid: str) -> list[Page]:
        """A page after the pages above it, from the highest one that is known."""
        with self._database.begin() as connection:
            return [page_of(row) for row in connection.execute(above_query(tenant_id, uuid))]

    def all(self, tenant_id: str) -> list[tuple[Page, str]]:
        """All pages by uuid, each with the scope of what hangs on it."""
        query = select(pages).where(pages.c.tenant == tenant_id).order_by(pages.c.uuid)
        with self._database.begin() as connection:
            return [(page_of(row), row.scope) for row in connection.execute(query)]

    def within(self, tenant_id: str, uuid: str) -> list[str]:
        """A page, known or not, and all pages below it."""
        with self._database.begin() as connection:
            return [uuid, *_uuids_below(connection, tenant_id, uuid)]

    def moved(self, tenant_id: str) -> MovedPages | None:
        """The pages whose entries have to follow their documents; None if there are none."""
        query = select(pages.c.uuid, pages.c.moved).where(
            pages.c.tenant == tenant_id, pages.c.moved.is_not(None)
        )
        with self._database.begin() as connection:
            rows = connection.execute(query).all()
        if not rows:
            return None
        return MovedPages(tuple(row.uuid for row in rows), max(row.moved for row in rows))

    def scopes_of_documents(self, tenant_id: str, uuids: Sequence[str]) -> dict[str, str]:
        """The access scope of each document that hangs on one of these pages, by its id.

        Those are left out that leave the builds.
        """
        table = documents.c
        query = select(table.document_id, table.access_scope).where(
            table.tenant == tenant_id, among(table.page_uuid, uuids), ~has_left()
        )
        with self._database.begin() as connection:
            return {row.document_id: row.access_scope for row in connection.execute(query)}

    def followed(self, ref: TenantRef, moved: MovedPages) -> None:
        """Record that the entries of pages have the scope of their documents, as of a move."""
        table = pages.c
        statement = (
            update(pages)
            .where(table.tenant == ref.id, among(table.uuid, moved.uuids))
            .where(table.moved <= moved.move)
            .values(moved=None)
        )
        with self._database.begin_for(ref) as connection:
            connection.execute(statement)


def _uuids_below(connection: Connection, tenant_id: str, uuid: str) -> list[str]:
    below = below_query(tenant_id, [uuid])
    return [*connection.scalars(select(below.c.uuid))]


def _put_anew(connection: Connection, ref: TenantRef, page: Page) -> TreeChange:
    """Put a page that is new, or that changes what the pages below it depend on."""
    above = connection.execute(above_query(ref.id, page.parent)) if page.parent else ()
    below = below_query(ref.id, [page.uuid])
    lower = connection.execute(select(below).order_by(below.c.distance)).all()
    plan = planned(page, [page_of(row) for row in above], [page_of(row) for row in lower])
    scopes = {row.uuid: plan.scopes[row.uuid] for row in lower}
    lasting = {row.uuid for row in lower if row.scope == scopes[row.uuid]}
    moved = {uuid: scope for uuid, scope in scopes.items() if uuid not in lasting}
    moved[page.uuid] = plan.scope
    _write_page(connection, ref, page, plan.scope)
    documents_moved = _move_documents(connection, ref, moved)
    _move_pages(connection, ref, moved, followed=not documents_moved)
    _write_ancestors(connection, ref, page, plan)
    return TreeChange(plan.scope, documents_moved)


def _write_page(connection: Connection, ref: TenantRef, page: Page, scope: str) -> None:
    values = values_of(page) | {"scope": scope, "updated_at": func.now()}
    connection.execute(
        upsert(pages)
        .values(tenant=ref.id, **values)
        .on_conflict_do_update(index_elements=["tenant", "uuid"], set_=values)
    )


def _grant(connection: Connection, ref: TenantRef, page: Page) -> bool:
    """Make a page's readers those of its scope; a page that says nothing has no grants.

    Returns:
        whether readers were removed.
    """
    scope, table = scope_of(page.uuid), access_scopes.c
    removed = connection.execute(
        delete(access_scopes).where(
            table.tenant == ref.id,
            table.scope == scope,
            ~among(table.principal, page.readers),
        )
    ).rowcount
    rows = [{"tenant": ref.id, "scope": scope, "principal": name} for name in page.readers]
    if rows:
        connection.execute(upsert(access_scopes).values(rows).on_conflict_do_nothing())
    return removed > 0


def _write_ancestors(connection: Connection, ref: TenantRef, page: Page, plan: TreePlan) -> None:
    """Store which scopes those from a page on downwards inherit from, as far as it changed."""
    table = scope_ancestors.c
    scopes = [*dict.fromkeys((scope_of(page.uuid), *plan.ancestors))]
    query = select(table.scope, table.ancestor).where(
        table.tenant == ref.id, among(table.scope, scopes)
    )
    former = {(row.scope, row.ancestor) for row in connection.execute(query)}
    wanted = {(scope, one) for scope, ancestors in plan.ancestors.items() for one in ancestors}
    if former - wanted:
        gone = as_rows(former - wanted, name="gone")
        connection.execute(
            delete(scope_ancestors).where(
                table.tenant == ref.id,
                table.scope == gone.c.key,
                table.ancestor == gone.c.value,
            )
        )
    if wanted - former:
        new = as_rows(wanted - former, name="new")
        rows = select(literal(ref.id), new.c.key, new.c.value)
        connection.execute(
            insert(scope_ancestors).from_select(["tenant", "scope", "ancestor"], rows)
        )


def _move_documents(connection: Connection, ref: TenantRef, scopes: Mapping[str, str]) -> int:
    """Give the documents of pages their scope; returns how many had another."""
    new = as_rows(scopes.items(), name="new")
    table = documents.c
    # What comes back to the knowledge has left the builds, or is about to.
    is_back = and_(table.access_scope == EXCLUDED, new.c.value != EXCLUDED)
    status = case((and_(is_back, table.status == "READY"), "PROCESSING"), else_=table.status)
    return connection.execute(
        update(documents)
        .where(
            table.tenant == ref.id,
            table.page_uuid == new.c.key,
            table.access_scope != new.c.value,
            table.status != "DELETED",
        )
        .values(access_scope=new.c.value, status=status)
    ).rowcount


def _move_pages(
    connection: Connection, ref: TenantRef, scopes: Mapping[str, str], *, followed: bool
) -> None:
    """Give pages their scope; unless there are no entries to follow, these follow later."""
    new = as_rows(scopes.items(), name="new")
    table = pages.c
    move = {} if followed else {"moved": connection.scalar(select(page_moves.next_value()))}
    connection.execute(
        update(pages)
        .where(table.tenant == ref.id, table.uuid == new.c.key)
        .values(scope=new.c.value, **move)
    )
