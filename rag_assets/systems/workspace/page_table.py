"""The tree of a workspace in the catalog: changes and lists of pages.

A change takes effect when it is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeAlias

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.errors import InvalidRequest, RagAssetsError, UnknownDocument
from rag_assets.common.principals import MEMBERS
from rag_assets.ingest.sources.records import EXCLUDED, ROOT, build_page_scope
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    matches_any,
    notify,
    unnest_pairs,
)
from rag_assets.storage.catalog.documents.removals import withdraw_documents
from rag_assets.storage.catalog.journal.security_changes import record_change
from rag_assets.storage.catalog.records.pages import find_attached_documents
from rag_assets.storage.catalog.records.table import delete_records_with_contents
from rag_assets.storage.catalog.tables import (
    access_scopes,
    documents,
    page_moves,
    pages,
    scope_ancestors,
)
from rag_assets.systems.workspace.tree import (
    Page,
    TreePlan,
    create_root,
    find_pages_in_loops,
    loop_error,
    plan_tree,
)

_COLUMNS = ("uuid", "kind", "parent", "inherit", "readers", "archived", "ai")


@dataclass(frozen=True, slots=True)
class ChangedPages:
    """The result of changing pages.

    Attributes:
        scopes: access scope of the documents of each page after the change, by uuid.
        documents: number of documents whose scope changed.
        refused: errors of the rejected edits, by position of the edit.
    """

    scopes: Mapping[str, str]
    documents: int
    refused: Mapping[int, RagAssetsError]


PageEdit: TypeAlias = tuple[str, Callable[[Page | None], Page]]
"""The uuid of a page, and a function from its current to its new state.

The function may raise InvalidRequest or UnknownDocument; the page then stays unchanged.
"""


class TreeTable(CatalogQueries):
    """Changes the tables of pages and their access scopes."""

    def put(self, ref: TenantRef, page: Page) -> ChangedPages:
        """Add or replace a page; see change().

        Raises:
            InvalidRequest: the page would be below itself, or too far from the root.
        """
        changes = self.change(ref, [(page.uuid, lambda _: page)])
        for error in changes.refused.values():
            raise error
        return changes

    def change(self, ref: TenantRef, edits: Sequence[PageEdit]) -> ChangedPages:
        """Add or change pages in one transaction, with effect on all later searches.

        The edits are checked as a whole, so their order does not matter. Edits of the same page
        build on each other. The work grows with the number of affected pages.

        Raises:
            InvalidRequest: a page would be too far from the root; no page is changed.
            TenantGone: the tenant was removed.
            TenantBusy: other transactions did not end within five seconds.
        """
        with self._database.begin_exclusive(ref) as connection:
            former = _select_rows(connection, ref.id, {uuid for uuid, _ in edits})
            stored = {uuid: page_from_row(row) for uuid, row in former.items()}
            edited_pages, refused = _apply_edits(edits, stored)
            shaped = {
                uuid: page
                for uuid, page in edited_pages.items()
                if uuid not in stored or stored[uuid].shape != page.shape
            }
            known = former | _select_related_rows(connection, ref.id, shaped, stored)
            for uuid in _remove_loops(shaped, {u: page_from_row(row) for u, row in known.items()}):
                del edited_pages[uuid]
                refused |= {
                    n: loop_error() for n, (edited, _) in enumerate(edits) if edited == uuid
                }
            if edited_pages and ROOT not in known:
                _ensure_root(connection, ref.id)
                known |= _select_rows(connection, ref.id, {ROOT})
            plan = plan_tree(shaped.values(), [page_from_row(row) for row in known.values()])
            scopes = {**{uuid: row.scope for uuid, row in former.items()}, **plan.scopes}
            changed_pages = [
                page for page in edited_pages.values() if stored.get(page.uuid) != page
            ]
            _write_pages(connection, ref, changed_pages, scopes)
            moved = {
                uuid: scope
                for uuid, scope in plan.scopes.items()
                if uuid in shaped or known[uuid].scope != scope
            }
            documents_moved = _set_document_scopes(connection, ref, moved) if moved else 0
            if moved:
                _set_page_scopes(connection, ref, moved, is_followed=not documents_moved)
                _replace_ancestors(connection, ref, shaped, plan)
            narrowed = _replace_grants(connection, ref, changed_pages)
            narrowed |= {uuid for uuid in shaped if uuid in stored}
            if narrowed:
                # One event is enough, because after an earlier dump is restored, the whole tree
                # must be put again.
                record_change(connection, ref, "page_changed", min(narrowed))
            if documents_moved:
                notify(connection, ref.id)
        return ChangedPages({uuid: scopes[uuid] for uuid in edited_pages}, documents_moved, refused)

    def remove(self, ref: TenantRef, uuids: Sequence[str], by: str) -> tuple[int, Sequence[str]]:
        """Delete pages, all pages below them, and the records attached to any of them.

        Records attached to an unknown page are deleted as well.

        Returns:
            the number of deleted documents, and the hashes of their contents.
        """
        with self._database.begin_exclusive(ref) as connection:
            removed = [*dict.fromkeys((*uuids, *_select_descendants(connection, ref.id, uuids)))]
            ids = find_attached_documents(connection, ref, removed)
            _, blobs = delete_records_with_contents(connection, ref, ids)
            withdraw_documents(connection, ref, ids, by)
            table = pages.c
            statement = delete(pages).where(
                table.tenant == ref.id, matches_any(table.uuid, removed)
            )
            if connection.execute(statement).rowcount:
                record_change(connection, ref, "page_changed", uuids[0])
            scopes = [build_page_scope(uuid) for uuid in removed]
            for owned in (access_scopes, scope_ancestors):
                connection.execute(
                    delete(owned).where(
                        owned.c.tenant == ref.id, matches_any(owned.c.scope, scopes)
                    )
                )
            if ids:
                notify(connection, ref.id)
        return len(ids), blobs


def _select_descendants(connection: Connection, tenant_id: str, uuids: Sequence[str]) -> list[str]:
    below = build_tree_query(tenant_id, uuids, upwards=False).subquery()
    return [*connection.scalars(select(below.c.uuid))]


def _select_rows(
    connection: Connection, tenant_id: str, uuids: Collection[str]
) -> dict[str, Row[Any]]:
    query = select(pages).where(pages.c.tenant == tenant_id, matches_any(pages.c.uuid, [*uuids]))
    return {row.uuid: row for row in connection.execute(query)}


def _apply_edits(
    edits: Sequence[PageEdit], stored: Mapping[str, Page]
) -> tuple[dict[str, Page], dict[int, RagAssetsError]]:
    """Apply edits to the stored pages, and return the new pages by uuid.

    The second value contains the error of each rejected edit, by position of the edit.
    """
    edited_pages: dict[str, Page] = {}
    refused: dict[int, RagAssetsError] = {}
    for number, (uuid, edit) in enumerate(edits):
        try:
            edited_pages[uuid] = edit(edited_pages.get(uuid, stored.get(uuid)))
        except (InvalidRequest, UnknownDocument) as error:
            refused[number] = error
    return edited_pages, refused


def _select_related_rows(
    connection: Connection, tenant_id: str, shaped: Mapping[str, Page], stored: Mapping[str, Page]
) -> dict[str, Row[Any]]:
    """Return the rows of the pages above and below the changed pages, by uuid."""
    if not shaped:
        return {}
    former = {stored[uuid].parent for uuid in shaped if uuid in stored}
    parents = {page.parent for page in shaped.values()} | former
    rows: dict[str, Row[Any]] = {}
    for query in (
        build_tree_query(tenant_id, [uuid for uuid in parents if uuid is not None], upwards=True),
        build_tree_query(tenant_id, [*shaped], upwards=False),
    ):
        rows |= {row.uuid: row for row in connection.execute(query)}
    return rows


def _remove_loops(shaped: dict[str, Page], known: Mapping[str, Page]) -> set[str]:
    """Remove from `shaped` the pages that would be below themselves, and return their uuids."""
    removed = set[str]()
    while looping := find_pages_in_loops({**known, **shaped}) & shaped.keys():
        removed |= looping
        for uuid in looping:
            del shaped[uuid]
    return removed


def _write_pages(
    connection: Connection, ref: TenantRef, written: Sequence[Page], scopes: Mapping[str, str]
) -> None:
    if not written:
        return
    new = upsert(pages).values(tenant=ref.id, updated_at=func.now())
    names = ("kind", "parent", "inherit", "readers", "archived", "ai", "scope", "updated_at")
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant", "uuid"], set_={name: new.excluded[name] for name in names}
        ),
        [build_page_columns(page) | {"scope": scopes[page.uuid]} for page in written],
    )


def _replace_grants(connection: Connection, ref: TenantRef, pages: Sequence[Page]) -> set[str]:
    """Make the scope of each page grant access to exactly the page's readers.

    Returns:
        the pages from which readers were removed.
    """
    if not pages:
        return set()
    table = access_scopes.c
    pairs = [(build_page_scope(page.uuid), name) for page in pages for name in page.readers]
    new = unnest_pairs(pairs, name="new")
    stays = exists().where(table.scope == new.c.key, table.principal == new.c.value)
    removed = connection.scalars(
        delete(access_scopes)
        .where(
            table.tenant == ref.id,
            matches_any(table.scope, [build_page_scope(page.uuid) for page in pages]),
            ~stays,
        )
        .returning(table.scope)
    ).all()
    if pairs:
        rows = select(literal(ref.id), new.c.key, new.c.value)
        connection.execute(
            upsert(access_scopes)
            .from_select(["tenant", "scope", "principal"], rows)
            .on_conflict_do_nothing()
        )
    return {scope.removeprefix(build_page_scope("")) for scope in removed}


def _replace_ancestors(
    connection: Connection, ref: TenantRef, shaped: Collection[str], plan: TreePlan
) -> None:
    """Store the scopes from which each affected scope inherits; see TreePlan.ancestors.

    Args:
        shaped: uuids of the changed pages.
    """
    table = scope_ancestors.c
    scopes = [*dict.fromkeys((*map(build_page_scope, shaped), *plan.ancestors))]
    query = select(table.scope, table.ancestor).where(
        table.tenant == ref.id, matches_any(table.scope, scopes)
    )
    former = {(row.scope, row.ancestor) for row in connection.execute(query)}
    new_ancestors = {
        (scope, ancestor) for scope, ancestors in plan.ancestors.items() for ancestor in ancestors
    }
    if former - new_ancestors:
        removed = unnest_pairs(former - new_ancestors, name="removed")
        connection.execute(
            delete(scope_ancestors).where(
                table.tenant == ref.id,
                table.scope == removed.c.key,
                table.ancestor == removed.c.value,
            )
        )
    if new_ancestors - former:
        new = unnest_pairs(new_ancestors - former, name="new")
        rows = select(literal(ref.id), new.c.key, new.c.value)
        connection.execute(
            insert(scope_ancestors).from_select(["tenant", "scope", "ancestor"], rows)
        )


def _set_document_scopes(connection: Connection, ref: TenantRef, scopes: Mapping[str, str]) -> int:
    """Set the access scope of the documents on pages; return how many documents changed.

    Args:
        scopes: the new scope of each page, by uuid.
    """
    new = unnest_pairs(scopes.items(), name="new")
    table = documents.c
    # An excluded document has left the builds, or will soon leave them, so it is indexed again.
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


def _set_page_scopes(
    connection: Connection, ref: TenantRef, scopes: Mapping[str, str], *, is_followed: bool
) -> None:
    """Set the access scope of pages.

    Args:
        is_followed: if False, the index entries of the pages are marked for an update.
    """
    new = unnest_pairs(scopes.items(), name="new")
    table = pages.c
    move = {} if is_followed else {"moved": connection.scalar(select(page_moves.next_value()))}
    connection.execute(
        update(pages)
        .where(table.tenant == ref.id, table.uuid == new.c.key)
        .values(scope=new.c.value, **move)
    )


def _ensure_root(connection: Connection, tenant_id: str) -> None:
    """Add the root, which all members may read, if it does not exist yet."""
    root = create_root()
    created_root = connection.execute(
        upsert(pages)
        .values(tenant=tenant_id, scope=build_page_scope(ROOT), **build_page_columns(root))
        .on_conflict_do_nothing()
        .returning(pages.c.uuid)
    ).first()
    if created_root is not None:
        connection.execute(
            upsert(access_scopes)
            .values(tenant=tenant_id, scope=build_page_scope(ROOT), principal=MEMBERS)
            .on_conflict_do_nothing()
        )


def build_page_columns(page: Page) -> dict[str, Any]:
    """Return the fields of a page as columns of `pages`."""
    return {name: getattr(page, name) for name in _COLUMNS} | {"readers": list(page.readers)}


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page in a list.

    Attributes:
        has_pages: whether other pages are below it.
    """

    page: Page
    has_pages: bool


class PageLists(CatalogQueries):
    """Lists of pages, from the table `pages`."""

    def read_path(self, tenant_id: str, uuid: str) -> list[Page]:
        """Return the pages from the highest known page above a page down to the page itself."""
        return [
            page_from_row(row)
            for row in self._database.fetch_rows(_build_path_query(tenant_id, uuid))
        ]

    def list_all(self, tenant_id: str) -> list[tuple[Page, str]]:
        """Return all pages, ordered by uuid, each with the access scope of its documents."""
        query = select(pages).where(pages.c.tenant == tenant_id).order_by(pages.c.uuid)
        return [(page_from_row(row), row.scope) for row in self._database.fetch_rows(query)]

    def list_page(
        self, tenant_id: str, *, parent: str | None, after: str | None, limit: int
    ) -> list[tuple[Page, str]]:
        """Return up to `limit` pages, ordered by uuid, each with its documents' access scope.

        Args:
            parent: only return pages directly below this page; None returns all pages.
            after: the last uuid of the previous list.
        """
        query = select(pages).where(pages.c.tenant == tenant_id)
        if parent is not None:
            query = query.where(pages.c.parent == parent)
        if after is not None:
            query = query.where(pages.c.uuid > after)
        rows = self._database.fetch_rows(query.order_by(pages.c.uuid).limit(limit))
        return [(page_from_row(row), row.scope) for row in rows]

    def read_all_with_times(self, tenant_id: str) -> dict[str, tuple[Page, datetime]]:
        """Return all pages except the root by uuid, each with the time when it was last put."""
        query = select(pages).where(pages.c.tenant == tenant_id, pages.c.uuid != ROOT)
        rows = self._database.fetch_rows(query)
        return {row.uuid: (page_from_row(row), row.updated_at) for row in rows}

    def list_children(
        self, tenant_id: str, parent: str, *, after: str | None, limit: int
    ) -> list[ListedPage]:
        """Return the pages directly below a page, ordered by uuid.

        Args:
            parent: uuid of the page, which may be unknown.
        """
        return self._list_pages(tenant_id, pages.c.parent == parent, after, limit)

    def list_unplaced(self, tenant_id: str, *, after: str | None, limit: int) -> list[ListedPage]:
        """Return the pages with an unknown parent; see list_children()."""
        above = pages.alias("above")
        known = exists().where(above.c.tenant == pages.c.tenant, above.c.uuid == pages.c.parent)
        return self._list_pages(tenant_id, (pages.c.kind != "root") & ~known, after, limit)

    def read_titles(
        self, tenant_id: str, uuids: Collection[str], principals: Collection[str]
    ) -> dict[str, str]:
        """Return the titles of the pages that one of the principals may read, by uuid."""
        table = documents.c
        query = select(table.page_uuid, table.title).where(
            table.tenant == tenant_id,
            matches_any(table.page_uuid, [*uuids]),
            table.source_type == "page",
            table.status != "DELETED",
            table.title.is_not(None),
            is_readable(documents, [*principals]),
        )
        return dict(self._database.fetch_rows(query))

    def _list_pages(
        self, tenant_id: str, condition: ColumnElement[bool], after: str | None, limit: int
    ) -> list[ListedPage]:
        lower = pages.alias("lower")
        has_pages = exists().where(lower.c.tenant == pages.c.tenant, lower.c.parent == pages.c.uuid)
        query = select(pages, has_pages.label("has_pages")).where(
            pages.c.tenant == tenant_id, condition
        )
        if after is not None:
            query = query.where(pages.c.uuid > after)
        rows: Any = self._database.fetch_rows(query.order_by(pages.c.uuid).limit(limit))
        return [ListedPage(page_from_row(row), row.has_pages) for row in rows]


def page_from_row(row: Row[Any]) -> Page:
    """Return the page in a row of `pages`."""
    return Page(
        uuid=row.uuid,
        kind=row.kind,
        parent=row.parent,
        inherit=row.inherit,
        readers=tuple(row.readers),
        archived=row.archived,
        ai=row.ai,
    )


def build_tree_query(tenant_id: str, uuids: Sequence[str], *, upwards: bool) -> Select[Any]:
    """Return the query for these pages and all pages above or below them, each once."""
    start, step = (pages.c.uuid, pages.c.parent) if upwards else (pages.c.parent, pages.c.uuid)
    first = select(pages).where(pages.c.tenant == tenant_id, matches_any(start, uuids))
    tree = first.cte("walk", recursive=True)
    further = select(pages).where(pages.c.tenant == tenant_id, start == tree.c[step.name])
    return select(tree.union(further))


def _build_path_query(tenant_id: str, uuid: str) -> Select[Any]:
    """Return the query for the pages from the highest known page above a page down to itself."""
    first = select(pages, literal(0).label("distance")).where(
        pages.c.tenant == tenant_id, pages.c.uuid == uuid
    )
    path = first.cte("path", recursive=True)
    upwards = select(pages, path.c.distance + 1).where(
        pages.c.tenant == tenant_id, pages.c.uuid == path.c.parent
    )
    path = path.union_all(upwards)
    return select(path).order_by(path.c.distance.desc())
