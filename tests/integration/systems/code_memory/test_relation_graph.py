"""Relations in memory give the catalog's answers of the same state, and of no other."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Delete, Update, delete, func, select, update

from rag_assets.search.access import ScopedDocument
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.catalog.found_relations import FoundEdges, Permits, Readable
from rag_assets.systems.code_memory.catalog.graph import Graph, GraphKey
from rag_assets.systems.code_memory.catalog.graph_memory import RelationGraphs
from rag_assets.systems.code_memory.catalog.relation_rows import (
    STATE,
    ReadableState,
    RelationState,
)
from rag_assets.systems.code_memory.catalog.relations import GraphRelations, RelationRows
from rag_assets.systems.code_memory.catalog.tables import (
    document_kinds,
    edges,
    relation_change_totals,
    relation_changes,
    symbols,
)
from rag_assets.systems.code_memory.pipeline.labelling import build_relations_of_texts
from rag_assets.systems.code_memory.relations.relations import Relations as Recorded
from rag_assets.systems.code_memory.retrieval.view import RelationView
from rag_assets.systems.code_memory.retrieval.walk import RelationQuestion, Walker, WalkResult
from rag_assets.systems.code_memory.symbols.names import FILE
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.integration.systems.code_memory.test_relations import FILES as OTHERS
from tests.integration.systems.code_memory.test_searches import FILES as PHP
from tests.integration.systems.code_memory.test_searches import INVOICE, STORE

TENANT = "code-graph"
ANN = ("ann",)
SOURCES = {"repo": "public", "inner": "inner"}
SECRET = {
    "a/InvoiceController.php": PHP["app/Http/Controllers/InvoiceController.php"].replace(
        "'audit'", "'salaries'"
    ),
    "backend/billing/models.py": OTHERS["backend/billing/models.py"],
    "backend/billing/core.py": OTHERS["backend/billing/core.py"],
}


@dataclass(frozen=True, slots=True)
class Kept:
    """A tenant whose relations are in memory."""

    driver: Driver
    root: Path

    @property
    def catalog(self) -> Catalog:
        return self.driver.session.catalog

    @property
    def ref(self) -> TenantRef:
        return self.catalog.tenants.get(TENANT).ref

    @property
    def key(self) -> GraphKey:
        serving = self.catalog.generations.serving(TENANT)
        assert serving is not None
        return GraphKey(self.ref, serving.number)

    def moment(self, principals: Collection[str] = ()) -> ReadableState:
        return get_code_catalog(self.catalog).relations.read_readable_state(TENANT, principals)

    def rows(self, principals: Collection[str] = ()) -> RelationRows:
        readable = Readable(TENANT, self.key.generation, principals)
        return get_code_catalog(self.catalog).relations.select_readable(readable)

    def graph(self) -> Graph:
        """Wait until the graph of the present state is loaded; return it."""
        return loaded(
            get_code_catalog(self.catalog).relations.graphs, self.key, self.moment().state
        )

    def write(self, source: str, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / source / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def walked(self, name: str, *principals: str, depth: int = 1) -> set[tuple[str, str, str]]:
        """Return the relations of a name, from a graph in memory."""
        self.graph()
        walker = Walker(self.catalog)
        view = walker.get_serving_view(TENANT, Caller(principals=principals))
        assert view is not None
        assert isinstance(view.relations, GraphRelations)
        walk = walker.walk_from_name(TENANT, Caller(principals=principals), name, depth=depth)
        return {(relation.kind, relation.source, relation.target) for relation in walk.relations}


def loaded(graphs: RelationGraphs, key: GraphKey, state: RelationState) -> Graph:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        graph = graphs.get(key, state)
        if graph is not None:
            return graph
        time.sleep(0.01)
    raise AssertionError("the graph was not loaded")


@pytest.fixture(scope="module")
def kept(shared_installation: Installation, driver: Driver) -> Kept:
    root = shared_installation.home.parent / "sources" / TENANT
    found = Kept(driver, root)
    found.write("repo", PHP | OTHERS)
    found.write("inner", SECRET)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[
            {
                "name": name,
                "root": str(root / name),
                "include": ["**/*.php", "**/*.md", "**/*.ts", "**/*.py", "**/*.go", "**/*.java"],
                "scope": scope,
            }
            for name, scope in SOURCES.items()
        ],
    )
    driver.sync(TENANT)
    found.catalog.access.grant(found.ref, "inner", ANN)
    return found


def everything(kept: Kept) -> tuple[list[str], list[str], list[str]]:
    """Return all stored names, all short names, and all URIs."""
    with kept.catalog.database.begin() as connection:
        of_tenant = edges.c.tenant == TENANT
        ends = select(edges.c.target).where(of_tenant).union(select(edges.c.stated_of))
        shorts = select(symbols.c.short).where(symbols.c.tenant == TENANT).distinct()
        uris = select(documents.c.uri).where(documents.c.tenant == TENANT)
        return tuple(sorted(connection.scalars(one)) for one in (ends, shorts, uris))  # type: ignore[return-value]


def without_evidence(found: FoundEdges) -> FoundEdges:
    return FoundEdges([edge._replace(evidence=None) for edge in found.edges], cut=found.cut)


def is_of_app(document: ScopedDocument) -> bool:
    return "/app/" in document.uri


def named_alike(
    relations: RelationRows, shorts: Sequence[str], permits: Permits | None
) -> dict[str, dict[str, list[str]]]:
    found = relations.find_names(shorts, permits)
    return {
        short: {repo: sorted(names) for repo, names in of.items()} for short, of in found.items()
    }


def ends_of(found: FoundEdges) -> list[tuple[str, str, str, int]]:
    return [(edge.document_id, edge.stated_of, edge.target, edge.position) for edge in found.edges]


def assert_same(kept: Kept, principals: Sequence[str]) -> None:
    """Fail unless graph and catalog agree on every name, short name and URI."""
    names, shorts, uris = everything(kept)
    rows, graph = kept.rows(principals), kept.graph()
    memory = GraphRelations(graph, kept.moment(principals).scopes, rows)
    both: tuple[RelationRows, RelationRows] = rows, memory
    qualified = sorted(
        {one.name for uri in uris for one in rows.list_definitions([uri])} | {*names}
    )
    assert len(qualified) > 40
    for name in qualified:
        for direction in ("out", "in", "both"):
            expected, found = (
                relation_rows.find_edges([name], direction, 50) for relation_rows in both
            )
            assert found == without_evidence(expected), (name, direction)
            assert memory.add_evidence(found.edges) == expected.edges
        expected, found = (
            relation_rows.find_edges([name], "both", 1, without=["calls"]) for relation_rows in both
        )
        assert found == without_evidence(expected), "cut"
        for most in (1, 50):
            expected, found = (
                relation_rows.find_edges([name], "both", most, whole=True) for relation_rows in both
            )
            assert (found.cut, ends_of(found)) == (expected.cut, ends_of(expected)), "whole"
        expected, found = (
            relation_rows.find_edges([name], "in", 9, only=["calls"]) for relation_rows in both
        )
        assert found == without_evidence(expected), "only"
    for uri in uris:
        expected, found = (
            relation_rows.find_edges([FILE + uri], "both", 9, files=[uri]) for relation_rows in both
        )
        assert found == without_evidence(expected), uri
        assert memory.list_definitions([uri]) == rows.list_definitions([uri])
        assert memory.find_documents([uri]) == rows.find_documents([uri])
    assert memory.find_definitions(qualified) == rows.find_definitions(qualified)
    assert memory.find_by_short_name(shorts) == rows.find_by_short_name(shorts)
    for permits in (None, is_of_app):
        assert named_alike(memory, shorts, permits) == named_alike(rows, shorts, permits)
    assert named_alike(rows, shorts, None) != named_alike(rows, shorts, is_of_app)
    assert memory.find_documents(uris) == rows.find_documents(uris)


@pytest.mark.parametrize("principals", [(), ANN, ("bob",)])
def test_memory_answers_as_the_catalog_does(kept: Kept, principals: tuple[str, ...]) -> None:
    assert_same(kept, principals)


def test_an_edit_a_move_and_a_removal_hold_with_the_next_walk(kept: Kept) -> None:
    assert ("queries_table", STORE, "table:audit") in kept.walked(STORE)
    before = kept.moment().state
    controller = "app/Http/Controllers/InvoiceController.php"
    text = PHP[controller]
    kept.write("repo", {controller: text.replace("'audit'", "'ledger'")})
    kept.driver.sync(TENANT)
    assert kept.moment().state != before
    told = kept.walked(STORE)
    assert ("queries_table", STORE, "table:ledger") in told
    assert ("queries_table", STORE, "table:audit") not in told
    (kept.root / "repo" / "backend" / "billing").rename(kept.root / "repo" / "backend" / "bills")
    kept.driver.sync(TENANT)
    moved = "backend.bills.models.Bill"
    assert ("extends", moved, "backend.bills.core.Base") in kept.walked(moved)
    assert_same(kept, ANN)
    (kept.root / "repo" / "app" / "Models" / "Invoice.php").unlink()
    kept.driver.sync(TENANT)
    assert ("uses_model", STORE, INVOICE) not in kept.walked(STORE)
    kept.write("repo", PHP)
    (kept.root / "repo" / "backend" / "bills").rename(kept.root / "repo" / "backend" / "billing")
    kept.driver.sync(TENANT)
    assert_same(kept, ANN)
    assert ("queries_table", STORE, "table:audit") in kept.walked(STORE)


def test_a_walk_during_a_publication_keeps_relations_of_the_replaced_document(kept: Kept) -> None:
    name = "walked/during.py"
    text = "from walked.base import Base\n\n\nclass During(Base):\n    pass\n"
    kept.write("repo", {"walked/base.py": "class Base:\n    pass\n", name: text})
    kept.driver.sync(TENANT)
    kept.graph()
    walker = Walker(kept.catalog)
    views: list[RelationView] = []

    def walk_and_publish(view: RelationView) -> WalkResult:
        views.append(view)
        if len(views) == 1:
            kept.write("repo", {name: f"# another line\n{text}"})
            kept.driver.sync(TENANT)
        question = RelationQuestion("walked.during.During", (), "out")
        return walker.walk_in_view(view, TENANT, question, depth=1)

    found = walker.read_with_view(TENANT, Caller(), walk_and_publish)
    assert found is not None
    assert [
        (relation.kind, relation.target, relation.line_start) for relation in found.relations
    ] == [("extends", "walked.base.Base", 5)]
    assert [type(view.relations) for view in views] == [GraphRelations, RelationRows]


def test_many_small_changes_are_taken_together(kept: Kept) -> None:
    base = kept.graph().segments[0]
    for number in range(10):
        kept.write("repo", {"web/src/lib/count.ts": f"export class Count{number} {{}}\n"})
        kept.driver.sync(TENANT)
        graph = kept.graph()
        assert len(graph.segments) <= 8
        assert graph.segments[0].count == base.count, "what stays is not loaded again"
    assert_same(kept, ())
    (kept.root / "repo" / "web" / "src" / "lib" / "count.ts").unlink()
    kept.driver.sync(TENANT)


def test_grants_and_revocations_hold_with_the_next_walk(kept: Kept) -> None:
    told = ("queries_table", STORE, "table:salaries")
    assert told in kept.walked("table:salaries", "ann")
    assert kept.walked("table:salaries", "bob") == set()
    kept.catalog.access.grant(kept.ref, "inner", ["bob"])
    assert told in kept.walked("table:salaries", "bob")
    kept.catalog.access.revoke(kept.ref, "inner", ["bob"])
    assert kept.walked("table:salaries", "bob") == set()


def test_what_changes_nothing_leaves_the_state(kept: Kept) -> None:
    before = kept.moment().state
    assert kept.driver.sync(TENANT)["upserted"] == 0
    kept.catalog.access.grant(kept.ref, "inner", ["bob"])
    kept.catalog.access.revoke(kept.ref, "inner", ["bob"])
    with kept.catalog.database.begin() as connection:
        of_tenant = documents.c.tenant == TENANT
        connection.execute(update(documents).where(of_tenant).values(updated_at=func.now()))
    assert kept.moment().state == before
    graph = kept.graph()
    assert kept.graph() is graph


def changes(ref: TenantRef) -> Iterator[tuple[str, Update | Delete]]:
    """Yield statements that change relations, or their readers."""
    of_documents = documents.c.tenant == ref.id, documents.c.uri.contains("Base.php")
    one = select(documents.c.document_id).where(*of_documents).limit(1).scalar_subquery()
    held = document_index.c.tenant == ref.id, document_index.c.document_id == one
    yield "scope", update(documents).where(*of_documents).values(access_scope="closed")
    yield "uri", update(documents).where(*of_documents).values(uri=documents.c.uri + ".Base.php")
    yield "type", update(documents).where(*of_documents).values(source_type="other")
    yield "deleted", update(documents).where(*of_documents).values(status="DELETED")
    yield "row", delete(documents).where(*of_documents)
    yield "withheld", update(document_index).where(*held).values(indexed_key=None)
    yield "text", update(document_index).where(*held).values(chunk_set_key="other")
    yield "version", delete(document_index).where(*held)
    kinds = document_kinds.c.tenant == ref.id
    yield "kinds", update(document_kinds).where(kinds).values(kinds={"A": "model"})
    yield "no kinds", delete(document_kinds).where(kinds)
    yield (
        "names",
        update(edges).where(edges.c.tenant == ref.id).values(target=edges.c.target + "x"),
    )


def test_each_change_of_a_row_is_told(kept: Kept) -> None:
    for name, statement in changes(kept.ref):
        before = kept.moment().state
        with kept.catalog.database.begin() as connection:
            assert connection.execute(statement).rowcount > 0, name
            told = RelationState(*connection.execute(STATE, {"tenant": TENANT}).one())
            connection.rollback()
        assert told.changes != before.changes, name
        assert (told.rows != before.rows) == (name == "names")
        assert kept.moment().state == before, "nothing was committed"


def typed(kept: Kept, document_id: str, source_type: str) -> Update:
    return (
        update(documents)
        .where(documents.c.tenant == TENANT, documents.c.document_id == document_id)
        .values(source_type=source_type)
    )


def test_adding_changes_up_changes_no_state_and_repeats_none(kept: Kept) -> None:
    one, *_ = kept.graph().by_id.values()
    seen = set()
    for number in range(150):
        with kept.catalog.database.begin() as connection:
            connection.execute(typed(kept, one.document_id, str(number)))
        seen.add(kept.moment().state)
    assert len(seen) == 150
    before = kept.moment().state
    with kept.catalog.database.begin() as connection:
        connection.execute(select(func.rag_catalog.add_up_relation_changes(TENANT)))
        left = select(func.count()).select_from(relation_changes)
        assert connection.scalar(left.where(relation_changes.c.tenant == TENANT)) == 0
        total = relation_change_totals.c
        assert connection.scalar(select(total.nonce).where(total.tenant == TENANT))
    assert kept.moment().state == before
    with kept.catalog.database.begin() as connection:
        connection.execute(typed(kept, one.document_id, one.source_type))


def test_writers_do_not_wait_for_each_other(kept: Kept) -> None:
    first, second, *_ = kept.graph().by_id.values()
    before = kept.moment().state
    with kept.catalog.database.begin() as one:
        one.execute(typed(kept, first.document_id, "other"))
        with kept.catalog.database.begin() as other:
            other.execute(typed(kept, second.document_id, "other"))
            other.execute(select(func.rag_catalog.add_up_relation_changes(TENANT)))
        between = kept.moment().state
        assert between != before
    assert kept.moment().state not in {before, between}
    for changed in (first, second):
        assert kept.graph().by_id[changed.document_id].source_type == "other"
        with kept.catalog.database.begin() as connection:
            connection.execute(typed(kept, changed.document_id, changed.source_type))


def test_rows_that_are_made_anew_are_read_again(kept: Kept) -> None:
    """The rows of an unchanged text are lost, the graph is read without them, and then repaired."""
    told = ("queries_table", STORE, "table:audit")
    assert told in kept.walked(STORE)
    graph = kept.graph()
    wanted = "repo/app/Http/Controllers/InvoiceController.php"
    [held] = (one for one in graph.by_id.values() if one.uri == wanted)
    with kept.driver.locked(TENANT) as ctx:
        relations = build_relations_of_texts(ctx, {held.text_key: "text/x-php"})
        assert relations.keys() == {held.text_key}
        get_code_catalog(kept.catalog).relation_rows.replace_rows(
            ctx.ref, {held.text_key: Recorded((), ())}
        )
        assert told not in kept.walked(STORE)
        get_code_catalog(kept.catalog).relation_rows.replace_rows(ctx.ref, relations)
    assert told in kept.walked(STORE)
    assert kept.graph().segments[0] is not graph.segments[0]


def test_walks_beside_writers_answer_one_state(kept: Kept) -> None:
    """While documents come and go, each answer is consistent with one state."""
    stop, turn = Event(), Event()
    of_tenant = documents.c.tenant == TENANT, documents.c.uri.contains("Invoice.php")

    def write() -> None:
        shown = "DELETED"
        while not stop.is_set():
            shown = "READY" if shown == "DELETED" else "DELETED"
            with kept.catalog.database.begin() as connection:
                connection.execute(update(documents).where(*of_tenant).values(status=shown))
            turn.wait(1)
            turn.clear()

    writer = Thread(target=write)
    writer.start()
    graphs, used = RelationGraphs(kept.catalog.database), 0
    try:
        until = time.monotonic() + 60
        while used < 6 and time.monotonic() < until:
            moment = kept.moment()
            graph = graphs.get(kept.key, moment.state)
            if graph is None:
                continue
            expected = kept.rows().find_definitions([INVOICE])
            if kept.moment().state == moment.state:
                used += 1
                turn.set()
                assert GraphRelations(graph, moment.scopes, kept.rows()).find_definitions(
                    [INVOICE]
                ) == (expected)
    finally:
        stop.set()
        turn.set()
        writer.join()
        with kept.catalog.database.begin() as connection:
            connection.execute(update(documents).where(*of_tenant).values(status="READY"))
    assert used == 6


def test_memory_is_bounded(kept: Kept) -> None:
    key, state = kept.key, kept.moment().state
    size = loaded(RelationGraphs(kept.catalog.database), key, state).bytes
    assert size > 10_000
    small = RelationGraphs(kept.catalog.database, most_bytes=size - 1)
    for _ in range(50):
        assert small.get(key, state) is None, "too large: the catalog goes on answering"
        time.sleep(0.01)
    assert small.bytes == 0
    # The tenant whose last question is older is evicted.
    other = GraphKey(TenantRef("another", 1), 1)
    room = RelationGraphs(kept.catalog.database, most_bytes=size + 100)
    loaded(room, key, state)
    empty = get_code_catalog(kept.catalog).relations.read_readable_state("another", ()).state
    loaded(room, other, empty)
    assert room.get(key, state) is not None, "an empty one takes no room"
    none = RelationGraphs(kept.catalog.database, most_bytes=0)
    for _ in range(10):
        assert none.get(key, state) is None
        time.sleep(0.01)


def test_who_asks_once_loads_nothing(kept: Kept) -> None:
    graphs = RelationGraphs(kept.catalog.database)
    assert graphs.get(kept.key, kept.moment().state) is None
    time.sleep(0.2)
    assert graphs.bytes == 0
