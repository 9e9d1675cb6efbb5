"""A workspace's tree in Postgres: effects of changes on documents, grants and scopes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from sqlalchemy import select, text

from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.common.principals import GUESTS, MEMBERS
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.ingest.sources.records import EXCLUDED, NOBODY, ROOT, build_page_scope
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.model import DocumentChange
from rag_assets.storage.catalog.tables import scope_ancestors
from rag_assets.systems.workspace.page_table import PageLists, TreeTable
from rag_assets.systems.workspace.tree import Page
from tests.installation import FAST, Installation

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Tree:
    """A tenant's tree, and documents of its pages."""

    def __init__(self, catalog: Catalog, ref: TenantRef) -> None:
        self.catalog, self.ref = catalog, ref
        self.table, self.lists = TreeTable(catalog.database), PageLists(catalog.database)

    def put(self, uuid: str, parent: str = ROOT, **said: object) -> tuple[str, int]:
        page = Page(uuid=uuid, parent=parent, **said)  # type: ignore[arg-type]
        done = self.table.put(self.ref, page)
        return done.scopes[uuid], done.documents

    def hang(self, *uuids: str, each: int = 1) -> None:
        changes = [
            DocumentChange(
                document_id=f"{uuid}-{number}",
                source="pushed",
                source_type="page",
                path=b"",
                uri=f"pushed/{uuid}/{number}",
                facts=ListingFacts(1, 1, 1, 1),
                listed_at_ns=1,
                content_sha256="0" * 64,
                modified_at=NOW,
                page_uuid=uuid,
            )
            for uuid in uuids
            for number in range(each)
        ]
        self.catalog.documents.record(self.ref, changes, lane=0)

    def scopes(self) -> dict[str, str]:
        """Return the scope of each page, as its documents have it."""
        return {
            one.page_uuid or "": one.access_scope for one in self.catalog.documents.all(self.ref.id)
        }

    def ancestors(self) -> set[tuple[str, str]]:
        query = select(scope_ancestors.c.scope, scope_ancestors.c.ancestor).where(
            scope_ancestors.c.tenant == self.ref.id
        )
        with self.catalog.database.begin() as connection:
            return {(row.scope, row.ancestor) for row in connection.execute(query)}


@pytest.fixture
def tree(request: pytest.FixtureRequest, shared_installation: Installation) -> Iterator[Tree]:
    tenant = f"tree-{abs(hash(request.node.name)) % 10**8}"
    source = {"name": "pushed", "type": "records"}
    shared_installation.add_tenant(tenant, profile="workspace", sources=[source], **FAST)
    session = shared_installation.session()
    session.reconcile()
    yield Tree(session.catalog, session.catalog.tenants.get(tenant).ref)
    session.close()


def test_a_document_has_the_scope_of_its_page_whichever_comes_first(tree: Tree) -> None:
    tree.hang("a", "b")
    assert tree.scopes() == {"a": NOBODY, "b": NOBODY}
    assert tree.put("b", "a", readers=("ada",), inherit=False) == (NOBODY, 0)
    assert tree.put("a") == (build_page_scope(ROOT), 2)
    assert tree.scopes() == {"a": build_page_scope(ROOT), "b": build_page_scope("b")}
    tree.put("c", "b")
    tree.hang("c")
    assert tree.scopes()["c"] == build_page_scope("b")


def test_a_moved_subtree_takes_its_documents_along(tree: Tree) -> None:
    tree.put("team", readers=("ada",))
    tree.put("a")
    tree.put("b", "a")
    tree.put("c", "b", readers=("bob",))
    tree.hang("a", "b", "c", each=3)
    assert tree.put("a", "team") == (build_page_scope("team"), 6)
    assert tree.scopes() == {
        "a": build_page_scope("team"),
        "b": build_page_scope("team"),
        "c": build_page_scope("c"),
    }
    assert (build_page_scope("c"), build_page_scope("team")) in tree.ancestors()
    assert (build_page_scope("c"), build_page_scope(ROOT)) in tree.ancestors()
    assert tree.put("team", readers=("ada",), inherit=False) == (build_page_scope("team"), 0)
    assert tree.ancestors() == {(build_page_scope("c"), build_page_scope("team"))}
    # The page is already in this state.
    assert tree.put("a", "team") == (build_page_scope("team"), 0)


def test_each_move_is_planned_for_the_pages_that_it_has(
    tree: Tree, shared_installation: Installation
) -> None:
    tree.put("team", readers=("ada",))
    tree.put("a")
    tree.hang("a")
    # This catalog has one connection, which prepares statements after a few executions.
    catalog = Catalog.open(shared_installation.environment["RAG_ASSETS_DATABASE_URL"])
    try:
        for number in range(12):
            page = Page(uuid="a", parent=("team", ROOT)[number % 2])
            assert TreeTable(catalog.database).put(tree.ref, page).documents == 1
        with catalog.database.begin() as connection:
            rows = connection.execute(
                text(
                    "SELECT custom_plans, generic_plans FROM pg_prepared_statements"
                    " WHERE statement LIKE 'UPDATE rag_catalog.documents%'"
                )
            ).all()
    finally:
        catalog.close()
    assert sum(row.custom_plans for row in rows) > 0, "it was prepared"
    assert sum(row.generic_plans for row in rows) == 0


def test_readers_are_rows_of_the_page_alone(tree: Tree) -> None:
    tree.put("a", readers=("ada", "bob"))
    tree.hang("a")
    assert tree.catalog.access.grants(tree.ref.id) == {
        build_page_scope(ROOT): [MEMBERS],
        build_page_scope("a"): ["ada", "bob"],
    }
    assert tree.put("a", readers=("bob", "eve")) == (build_page_scope("a"), 0)
    assert tree.catalog.access.grants(tree.ref.id, [build_page_scope("a")]) == {
        build_page_scope("a"): ["bob", "eve"]
    }
    assert tree.put("a") == (build_page_scope(ROOT), 1)
    assert build_page_scope("a") not in tree.catalog.access.grants(tree.ref.id)
    tree.put(ROOT, None, kind="root", inherit=False, readers=("ada",))  # type: ignore[arg-type]
    # The readers of the root stay, whatever is pushed afterwards.
    tree.put("b")
    assert tree.catalog.access.grants(tree.ref.id) == {build_page_scope(ROOT): ["ada"]}


def test_what_is_archived_leaves_and_comes_back(tree: Tree) -> None:
    tree.put("db", kind="database", readers=("ada",))
    tree.put("row", "db")
    tree.hang("db", "row", each=2)
    assert tree.put("db", kind="database", readers=("ada",), archived=True) == (EXCLUDED, 4)
    assert set(tree.scopes().values()) == {EXCLUDED}
    tree.hang("row", each=3)
    assert set(tree.scopes().values()) == {EXCLUDED}
    assert tree.put("db", kind="database", readers=("ada",)) == (build_page_scope("db"), 5)
    assert tree.put("row", "db", ai=False) == (EXCLUDED, 3)


def test_a_refused_change_changes_nothing(tree: Tree) -> None:
    tree.put("a")
    tree.put("b", "a")
    before = tree.lists.list_all(tree.ref.id)
    with pytest.raises(InvalidRequest, match="below itself"):
        tree.put("a", "b", readers=("ada",))
    # This also applies to pages that are not known yet.
    tree.put("x", "y")
    with pytest.raises(InvalidRequest, match="below itself"):
        tree.put("y", "x")
    after = [one for one in tree.lists.list_all(tree.ref.id) if one[0].uuid != "x"]
    assert after == before
    for scope, name in ((NOBODY, "ada"), (EXCLUDED, "ada"), (build_page_scope("a"), GUESTS)):
        with pytest.raises(ConfigurationError):
            tree.catalog.access.grant(tree.ref, scope, [name])


def test_a_deleted_page_takes_all_that_hangs_on_it(tree: Tree) -> None:
    tree.put("a", readers=("ada",))
    tree.put("b", "a", readers=("bob",))
    tree.put("other")
    tree.hang("a", "b", "other", each=2)
    documents, _ = tree.table.remove(tree.ref, "a", "an admin")
    assert documents == 4
    assert tree.scopes() == {"other": build_page_scope(ROOT)}
    assert tree.catalog.access.grants(tree.ref.id) == {build_page_scope(ROOT): [MEMBERS]}
    assert tree.ancestors() == set()
    assert [page.uuid for page, _ in tree.lists.list_all(tree.ref.id)] == ["other", ROOT]
    removed = tree.catalog.events.page(tree.ref.id, kinds=frozenset({"document_removed"}), limit=10)
    assert {event.payload["uri"] for event in removed} == {
        f"pushed/{uuid}/{number}" for uuid in "ab" for number in (0, 1)
    }
    # Pushed again, it belongs to an unknown page.
    tree.hang("b")
    assert tree.scopes()["b"] == NOBODY


def test_only_pages_whose_documents_moved_are_to_be_followed(tree: Tree) -> None:
    tree.put("a")
    tree.put("b", "a")
    tree.put("a", readers=("ada",))
    assert tree.catalog.pages.find_moved(tree.ref.id) is None
    tree.put("a")
    tree.hang("b")
    tree.put("a", readers=("ada",))
    moved = tree.catalog.pages.find_moved(tree.ref.id)
    assert moved is not None
    assert "b" in moved.uuids
    tree.put("a")
    # It was moved again: entries that followed the first move are outdated.
    tree.catalog.pages.mark_scopes_updated(tree.ref, moved)
    again = tree.catalog.pages.find_moved(tree.ref.id)
    assert again is not None
    tree.catalog.pages.mark_scopes_updated(tree.ref, again)
    assert tree.catalog.pages.find_moved(tree.ref.id) is None


def test_a_tenant_with_moved_pages_is_due(tree: Tree) -> None:
    from rag_assets.storage.catalog.builds.progress import WantedBuild

    def removals() -> int:
        left = tree.catalog.work.read([WantedBuild(tree.ref.id, 0, "key")])
        return left[tree.ref.id].removals

    tree.put("a")
    tree.hang("a")
    assert removals() == 0
    tree.put("a", readers=("ada",))
    assert removals() == 1


def test_the_tree_goes_with_its_tenant(tree: Tree) -> None:
    tree.put("a", readers=("ada",))
    with tree.catalog.database.begin() as connection:
        connection.execute(
            text("DELETE FROM rag_catalog.tenants WHERE id = :id"), {"id": tree.ref.id}
        )
    assert tree.lists.list_all(tree.ref.id) == []
    assert tree.ancestors() == set()


def test_many_pages_at_once_make_the_tree_that_one_by_one_makes(tree: Tree) -> None:
    random = Random(7)
    uuids = [f"p{number}" for number in range(24)]

    def any_page(uuid: str) -> Page:
        return Page(
            uuid=uuid,
            parent=random.choice([ROOT, "unknown", *uuids]),
            readers=tuple(random.sample(["ada", "bob", "eve"], random.choice([0, 0, 1, 2]))),
            inherit=random.random() < 0.7,
            archived=random.random() < 0.1,
            ai=random.random() < 0.9,
        )

    def state() -> tuple[object, ...]:
        known = {one.uuid: (one, scope) for one, scope in tree.lists.list_all(tree.ref.id)}
        return tree.scopes(), tree.ancestors(), tree.catalog.access.grants(tree.ref.id), known

    def put_again_one_by_one() -> None:
        for one, _ in tree.lists.list_all(tree.ref.id):
            tree.table.put(tree.ref, replace(one, archived=not one.archived))
            tree.table.put(tree.ref, one)

    tree.hang(*uuids)
    refused = 0
    for _ in range(3):
        chosen = [any_page(uuid) for uuid in random.sample(uuids, 12)]
        done = tree.table.change(tree.ref, [(one.uuid, lambda _, one=one: one) for one in chosen])
        refused += len(done.refused)
        at_once = state()
        put_again_one_by_one()
        assert state() == at_once
    assert refused, "some pages would have been below themselves"


def test_a_page_and_the_one_above_it_change_places_in_any_order(tree: Tree) -> None:
    tree.put("a")
    tree.put("b", "a", readers=("bob",))
    tree.hang("a", "b")
    for order in (1, -1):
        swapped = [Page(uuid="a", parent="b"), Page(uuid="b", readers=("bob",))][::order]
        done = tree.table.change(tree.ref, [(p.uuid, lambda _, p=p: p) for p in swapped])
        assert not done.refused
        assert tree.scopes() == {"a": build_page_scope("b"), "b": build_page_scope("b")}
        tree.table.change(
            tree.ref,
            [
                ("b", lambda _: Page(uuid="b", parent="a", readers=("bob",))),
                ("a", lambda _: Page(uuid="a")),
            ],
        )
        assert tree.scopes() == {"a": build_page_scope(ROOT), "b": build_page_scope("b")}


def test_pages_that_would_be_below_themselves_are_left_and_no_other(tree: Tree) -> None:
    tree.put("a")
    tree.put("b", "a")
    done = tree.table.change(
        tree.ref,
        [
            ("c", lambda _: Page(uuid="c", readers=("ada",))),
            ("a", lambda _: Page(uuid="a", parent="b")),
            ("x", lambda _: Page(uuid="x", parent="y")),
            ("y", lambda _: Page(uuid="y", parent="x")),
        ],
    )
    assert {*done.refused} == {1, 2, 3}
    known = {one.uuid: one.parent for one, _ in tree.lists.list_all(tree.ref.id)}
    assert known == {ROOT: None, "a": ROOT, "b": "a", "c": ROOT}
