"""Routes and tables in the chain: derived, found, walked, and withheld from other readers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from rag_assets.common.tokens import count_text
from rag_assets.declarations import PLAIN
from rag_assets.pipeline.listing import list_documents
from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.storage.catalog.journal.events import EventKind
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.definitions import relations_report
from rag_assets.systems.code_memory.pipeline.fact_store import FACTS
from rag_assets.systems.code_memory.pipeline.labelling import load_file_facts
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository
from tests.unit.systems.code_memory.derived.test_documents import LARAVEL
from tests.unit.systems.code_memory.frameworks.test_frameworks import ACME, TEXT

STORE = "App\\Http\\Controllers\\InvoiceController::store"
FILES = {
    **LARAVEL,
    "app/Http/Controllers/InvoiceController.php": """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Invoice;
class InvoiceController
{
    public function store(): Invoice
    {
        return Invoice::create([]);
    }
}
""",
    "README.md": "# Shop\n\nSells things.\n",
}
WEB = "routes/web.php"


def write(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def made(shared_installation: Installation, request: pytest.FixtureRequest) -> tuple[str, Path]:
    tenant = "derived-" + request.node.name.removeprefix("test_").replace("_", "-")[:40].strip("-")
    root = shared_installation.home.parent / "sources" / tenant
    write(root, FILES)
    source = {"name": "repo", "root": str(root), "include": ["**/*.php", "**/*.md"]}
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )
    return tenant, root


def uris(driver: Driver, tenant: str) -> set[str]:
    found = driver.session.catalog.documents.all(tenant)
    return {d.uri for d in found if d.source == "repo.derived" and d.status != "DELETED"}


def asked(driver: Driver, tenant: str, query: str, **given: object) -> SearchAnswer:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)
    try:
        return retriever.search(tenant, SearchRequest.of(query=query, **given))
    finally:
        retriever.close()


def test_one_sync_finds_routes_and_tables_and_the_next_has_nothing_to_do(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, root = made
    done = driver.sync(tenant)
    assert done["derived"] == 3
    assert uris(driver, tenant) == {
        "repo.derived/route/POST%20/invoices",
        "repo.derived/route/ANY%20/ping",
        "repo.derived/table/invoices",
    }
    assert not driver.sync(tenant)["derived"]
    with driver.locked(tenant) as ctx:
        walk = Walker(ctx.catalog).walk_from_name(tenant, Caller(), "invoices.store", depth=5)
        types = {node.name: node.source_type for node in walk.nodes}
        assert types["route:POST /invoices"] == "route"
        assert types[STORE] == "controller_method"
        assert types["table:invoices"] == "table"
        [leads] = [relation for relation in walk.relations if relation.kind == "routes_to"]
        assert (leads.uri, leads.line_start) == (f"repo/{WEB}", 5)
    # A moved line needs no new vector, and is reported immediately.
    write(root, {WEB: FILES[WEB].replace("<?php", "<?php\n\n")})
    done = driver.sync(tenant)
    assert done["derived"] == 2
    assert done["embedded"] == 1, "the head of the file, which was edited"
    with driver.locked(tenant) as ctx:
        walk = Walker(ctx.catalog).walk_from_name(
            tenant, Caller(), "POST /invoices", direction="out"
        )
        assert {
            relation.line_start for relation in walk.relations if relation.kind == "routes_to"
        } == {7}


def test_a_framework_in_the_configuration_makes_routes_and_no_vectors(
    made: tuple[str, Path], driver: Driver, shared_installation: Installation
) -> None:
    tenant, root = made
    source = {"name": "repo", "root": str(root), "include": ["**/*.py"]}
    shared_installation.configure(tenant, sources=[source])
    write(root, {"orders.py": TEXT})
    driver.sync(tenant)
    assert uris(driver, tenant) == set()
    shared_installation.configure(tenant, frameworks=[ACME])
    done = driver.sync(tenant)
    assert (done["derived"], done["embedded"]) == (1, 1), "the new document, and no text of before"
    route = "repo.derived/route/GET%20/orders/%7Bid%7D"
    assert uris(driver, tenant) == {route}
    assert not driver.sync(tenant)["derived"]
    shared_installation.configure(tenant, frameworks=[{**ACME, "markers": ["other"]}])
    assert driver.sync(tenant)["derived"] == 1
    assert uris(driver, tenant) == set()


def test_what_no_longer_follows_is_withheld_at_once(made: tuple[str, Path], driver: Driver) -> None:
    tenant, root = made
    driver.sync(tenant)
    write(root, {WEB: "<?php\n"})
    driver.run_once(tenant)
    assert uris(driver, tenant) == {"repo.derived/table/invoices"}
    assert not asked(driver, tenant, "POST /invoices", source_types=["route"]).hits
    driver.sync(tenant)
    write(root, FILES)
    driver.sync(tenant)
    assert len(uris(driver, tenant)) == 3
    hits = asked(driver, tenant, "POST /invoices", source_types=["route"]).hits
    assert "repo.derived/route/POST%20/invoices" in {hit.uri for hit in hits}


def test_what_was_not_derived_before_a_crash_makes_the_tenant_due(
    made: tuple[str, Path], driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant, _ = made

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"{type(FACTS).__module__}.derive_documents", killed)
        with pytest.raises(KeyboardInterrupt):
            driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        serving = ctx.catalog.generations.serving(tenant)
        assert serving is not None
        assert FACTS.unfinished(ctx.catalog, ctx.tenant, serving.number)
        assert load_file_facts(
            ctx, list(get_code_catalog(ctx.catalog).kinds.iter_indexed(tenant, serving.number))
        )
    assert driver.sync(tenant)["derived"] == 3
    with driver.locked(tenant) as ctx:
        assert FACTS.unfinished(ctx.catalog, ctx.tenant, serving.number) is None


def test_questions_for_relations_need_no_vector(made: tuple[str, Path], driver: Driver) -> None:
    tenant, _ = made
    driver.sync(tenant)
    question = (
        "What controller serves route invoices.store and which model and table does it touch?"
    )
    answer = asked(driver, tenant, question)
    assert answer.debug is not None
    assert answer.debug.strategy == "walk"
    assert "embed" not in answer.debug.latency_ms
    found = [(hit.source_type, hit.symbol) for hit in answer.hits]
    assert found[0] == ("route", "route:POST /invoices")
    assert {
        ("controller_method", STORE),
        ("model", "App\\Models\\Invoice"),
        ("table", "table:invoices"),
    } <= set(found)
    assert ("route:POST /invoices", STORE, "App\\Models\\Invoice") in answer.debug.paths
    migrations = asked(driver, tenant, "Which migrations created or altered table invoices?")
    assert migrations.debug is not None
    assert migrations.debug.strategy == "walk"
    assert {hit.source_type for hit in migrations.hits} == {"table", "migration"}


def test_names_beside_the_question_are_walked_too(made: tuple[str, Path], driver: Driver) -> None:
    tenant, _ = made
    driver.sync(tenant)
    question = "how is a new one made and saved by the application"
    for given in (
        {"route_name": "invoices.store"},
        {"table_name": "invoices"},
        {"controller_class": "InvoiceController"},
    ):
        answer = asked(driver, tenant, question, **given)
        assert answer.debug is not None
        assert answer.debug.strategy == "walk+hybrid"
        assert STORE in {hit.symbol for hit in answer.hits[:5]}
    plain = asked(driver, tenant, question)
    assert plain.debug is not None
    assert plain.debug.strategy in {"hybrid", "walk+hybrid"}


def test_scopes_have_derived_documents_of_their_own(
    shared_installation: Installation, driver: Driver
) -> None:
    root = shared_installation.home.parent / "sources" / "derived-scopes"
    for name, scope in (("open", "public"), ("closed", "inner")):
        write(root / name, FILES)
        if scope != "public":
            secret = FILES[WEB].replace("/invoices", "/secrets").replace("invoices.", "secrets.")
            write(root / name, {WEB: secret})
    shared_installation.add_tenant(
        "derived-scopes",
        **FAST,
        profile="code-memory",
        organization="acme",
        project="derived-scopes",
        sources=[
            {"name": "open", "root": str(root / "open"), "include": ["**/*.php"]},
            {
                "name": "closed",
                "root": str(root / "closed"),
                "include": ["**/*.php"],
                "scope": "inner",
            },
        ],
    )
    driver.sync("derived-scopes")
    board = Caller(principals=("board",))
    with driver.locked("derived-scopes") as ctx:
        ctx.catalog.access.grant(ctx.ref, "inner", ["board"])
        walker = Walker(ctx.catalog)
        assert not walker.find_definitions("derived-scopes", Caller(), name="secrets.store")
        assert not walker.walk_from_name("derived-scopes", Caller(), "POST /secrets").nodes
        [found] = walker.find_definitions("derived-scopes", board, name="secrets.store")
        assert found.repository == "closed"
    question = "What controller serves route secrets.store?"
    open_answer = asked(driver, "derived-scopes", question)
    assert all(hit.uri.startswith(("open/", "open.derived/")) for hit in open_answer.hits)
    assert open_answer.debug is not None
    assert not any("secrets" in name for path in open_answer.debug.paths for name in path)
    closed = asked(driver, "derived-scopes", question, caller=board)
    assert closed.hits[0].symbol == "route:POST /secrets"


def test_what_follows_from_files_is_withheld_as_soon_as_they_have_other_readers(
    made: tuple[str, Path], driver: Driver, shared_installation: Installation
) -> None:
    tenant, root = made
    driver.sync(tenant)
    source = {"name": "repo", "root": str(root), "include": ["**/*.php", "**/*.md"]}
    shared_installation.configure(tenant, sources=[{**source, "scope": "inner"}])
    write(root, {WEB: FILES[WEB].replace("<?php", "<?php\n\n")})
    with driver.locked(tenant) as ctx:
        # The other stages of the run may fail or take long.
        list_documents(ctx, driver.scanner)
        walker = Walker(ctx.catalog)
        for name in ("POST /invoices", "table:invoices", STORE):
            assert not walker.walk_from_name(tenant, Caller(), name, depth=3).nodes
        ctx.catalog.access.grant(ctx.ref, "inner", ["board"])
    assert not asked(driver, tenant, "invoices").hits
    driver.sync(tenant)
    assert not asked(driver, tenant, "invoices").hits
    board = Caller(principals=("board",))
    assert asked(driver, tenant, "POST /invoices", caller=board).hits[0].source_type == "route"
    assert not driver.sync(tenant)["derived"]
    shared_installation.configure(tenant, sources=[source])
    assert driver.sync(tenant)["embedded"] == 0
    assert asked(driver, tenant, "POST /invoices").hits[0].source_type == "route"


COMPUTED = """<?php
use App\\Http\\Controllers\\InvoiceController;
use Illuminate\\Support\\Facades\\Route;
Route::post('/invoices', [InvoiceController::class, 'store'])->name('invoices.store');
Route::post(config('shop.hidden'), [InvoiceController::class, 'store']);
"""
ALTERED = """<?php
use Illuminate\\Database\\Migrations\\Migration;
use Illuminate\\Support\\Facades\\Schema;
return new class extends Migration {
    public function up(): void {
        Schema::table(some_name(), fn ($table) => $table->string('note'));
    }
};
"""


def test_an_answer_that_may_lack_what_is_computed_says_so_with_its_line(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, root = made
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        walker = Walker(ctx.catalog)
        for name in (STORE, "table:invoices", "invoices.store", "no.such.route"):
            assert walker.walk_from_name(tenant, Caller(), name).complete, name
    write(root, {WEB: COMPUTED})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        walker = Walker(ctx.catalog)
        for name in (STORE, "invoices.store", "no.such.route"):
            walk = walker.walk_from_name(tenant, Caller(), name)
            assert not walk.complete, name
            assert f"repo/{WEB}:5" in (walk.why or ""), name
        told = [
            walker.walk_from_name(tenant, Caller(), "table:invoices"),
            walker.walk_from_name(tenant, Caller(), STORE, direction="out"),
            walker.walk_from_name(tenant, Caller(), STORE, kinds=["uses_model"]),
            walker.walk_from_name(tenant, Caller(), "table:none"),
        ]
        assert all(walk.complete for walk in told), "no route is of concern there"
        reader = DocumentReader(ctx.catalog, driver.session.store)
        about = CodeAnswers(reader, ctx.tenant, Caller())
        lacking = f"this may lack something: 1 statement of routes or tables computed: repo/{WEB}:5"
        assert lacking in about.who_serves("invoices.store")
        assert lacking in about.who_serves("no.such.route")
        assert lacking in about.impact_of(symbols=[STORE])
        assert lacking in about.what_touches(symbol=STORE)
        assert lacking in about.what_touches(table="invoices"), "a route may use its model"
    write(root, {WEB: FILES[WEB], "database/migrations/2024_01_02_000000_alter.php": ALTERED})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        walker = Walker(ctx.catalog)
        for name in ("table:invoices", "table:none", "App\\Models\\Invoice"):
            why = walker.walk_from_name(tenant, Caller(), name).why
            assert "2024_01_02_000000_alter.php:6 the table is computed" in (why or ""), name
        assert walker.walk_from_name(tenant, Caller(), "no.such.route").complete


FACADES = {
    "app/Facades/Billing.php": """<?php
namespace App\\Facades;
class Billing extends \\Illuminate\\Support\\Facades\\Facade
{
    protected static function getFacadeAccessor(): string { return 'billing'; }
}
""",
    "app/Services/Books.php": """<?php
namespace App\\Services;
use App\\Facades\\Billing;
use App\\Models\\Invoice;
class Books
{
    public function close(): void { Billing::charge(); }
    public function open(): void { Invoice::query(); }
}
""",
}


def test_a_call_on_a_facade_is_told_as_not_followed(made: tuple[str, Path], driver: Driver) -> None:
    tenant, root = made
    write(root, FACADES)
    driver.sync(tenant)
    books = "App\\Services\\Books"
    with driver.locked(tenant) as ctx:
        walker = Walker(ctx.catalog)
        closing = walker.walk_from_name(tenant, Caller(), f"{books}::close")
        assert closing.why == (
            "1 call on facades not followed:"
            " repo/app/Services/Books.php:7 App\\Facades\\Billing::charge"
        )
        assert not closing.complete
        told = [
            walker.walk_from_name(tenant, Caller(), f"{books}::open"),
            walker.walk_from_name(tenant, Caller(), f"{books}::close", kinds=["uses_model"]),
            walker.walk_from_name(tenant, Caller(), STORE),
        ]
        assert all(walk.complete for walk in told)


def add_open_and_closed(
    installation: Installation,
    tenant: str,
    open_files: Mapping[str, str],
    closed_files: Mapping[str, str],
) -> None:
    """Add a tenant with two sources, one of which has the scope `inner`."""
    root = installation.home.parent / "sources" / tenant
    files = {"open": open_files, "closed": closed_files}
    sources = []
    for name, file in files.items():
        write(root / name, file)
        source = {"name": name, "root": str(root / name), "include": ["**/*.php"]}
        sources.append(source | ({"scope": "inner"} if name == "closed" else {}))
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=sources,
    )


def test_nobody_is_told_of_computed_statements_that_they_may_not_read(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "derived-computed"
    add_open_and_closed(shared_installation, tenant, FILES, FILES | {WEB: COMPUTED})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        ctx.catalog.access.grant(ctx.ref, "inner", ["board"])
        walker = Walker(ctx.catalog)
        for name in (STORE, "invoices.store", "no.such.route"):
            assert walker.walk_from_name(tenant, Caller(), name).complete, name
            board = walker.walk_from_name(tenant, Caller(principals=("board",)), name)
            assert f"closed/{WEB}:5" in (board.why or ""), name


COPIES = 70


def test_equal_texts_are_one_hit_with_all_paths_that_the_caller_may_read(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "derived-copies"
    text = "<?php\nfunction rounded_total(int $cents): int { return $cents; }\n"
    copies = {f"lib/copy{number}.php": text for number in range(COPIES)}
    add_open_and_closed(shared_installation, tenant, copies, copies)
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        ctx.catalog.access.grant(ctx.ref, "inner", ["board"])
    paths = {f"{name}/lib/copy{n}.php" for name in ("open", "closed") for n in range(COPIES)}
    for caller, own in (
        (Caller(), {path for path in paths if path.startswith("open/")}),
        (Caller(principals=("board",)), paths),
    ):
        for question in ("how is the total of cents rounded", "rounded_total"):
            answer = asked(driver, tenant, question, caller=caller, top_k=2)
            [hit] = [hit for hit in answer.hits if "rounded_total" in hit.text]
            assert {hit.uri, *hit.also} == own


def test_hits_that_take_the_places_of_merged_ones_name_all_paths_as_well(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "derived-merged"
    root = shared_installation.home.parent / "sources" / tenant
    long = " ".join(f"Sentence {n} tells how the gate is opened by hand." for n in range(80))
    copies = {f"copies/{number}.md": "A gate.\n" for number in range(COPIES)}
    write(root, {"gate.md": f"{long}\n", **copies})
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        chunker={"chunker": "code", "max_tokens": 64, "overlap": 24},
        sources=[{"name": "repo", "root": str(root), "include": ["**/*.md"]}],
    )
    driver.sync(tenant)
    answer = asked(driver, tenant, "open the gate by hand sentence", top_k=20, mode="text")
    passages = sum(len(hit.ranges) for hit in answer.hits)
    assert passages > 20, "passages that overlap are one hit, and others were read for them"
    [copy] = [hit for hit in answer.hits if hit.text == "A gate."]
    assert {copy.uri, *copy.also} == {f"repo/copies/{number}.md" for number in range(COPIES)}


def test_other_texts_are_found_behind_more_copies_than_are_ranked_at_first(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "derived-copies-ranked"
    root = shared_installation.home.parent / "sources" / tenant
    copies = {f"copies/{number}.md": "The sluice gate opens.\n" for number in range(230)}
    padding = " ".join(f"word{number}" for number in range(60))
    others = {f"{name}.md": f"A sluice of the {name} and a gate. {padding}\n" for name in "abcde"}
    write(root, copies | others)
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "root": str(root), "include": ["**/*.md"]}],
    )
    driver.sync(tenant)
    answer = asked(driver, tenant, "how does the sluice gate open", top_k=5, mode="text")
    assert len(answer.hits) == 5
    assert len({hit.text for hit in answer.hits}) == 5


def events(driver: Driver, tenant: str, kind: EventKind) -> list[Mapping[str, Any]]:
    found = driver.session.catalog.events.latest(tenant, kind=kind, limit=1_000)
    return [event.payload for event in found]


def test_where_nothing_is_near_the_user_is_asked_with_names_that_are_like(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, _ = made
    driver.sync(tenant)
    answer = asked(driver, tenant, "how do invoices become pigeons", min_score=0.999)
    assert answer.needs_clarification
    assert not answer.hits
    assert answer.clarification is not None
    assert "invoices" in answer.clarification.names
    assert all(name in answer.clarification.question for name in answer.clarification.names)
    [paused] = events(driver, tenant, "paused_for_input")
    assert paused["names"] == list(answer.clarification.names)
    assert paused["query"] == "how do invoices become pigeons"
    [started] = events(driver, tenant, "rag_search_started")
    [completed] = events(driver, tenant, "rag_search_completed")
    assert started["query"] == completed["query"] == paused["query"]
    nothing = asked(driver, tenant, "zzzz qqqq", min_score=0.999)
    assert nothing.clarification is not None
    assert nothing.clarification.names == ()


def test_hits_take_a_share_of_the_window_of_the_model_that_reads_them(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, _ = made
    driver.sync(tenant)
    question = "What controller serves route invoices.store and which model does it touch?"
    whole = asked(driver, tenant, question, model="gpt-4o")
    assert whole.omitted == 0
    room = sum(count_text(hit.text) for hit in whole.hits)
    narrow = asked(driver, tenant, question, token_budget=room - 1)
    assert narrow.omitted
    assert narrow.hits
    assert not any(hit.trimmed for hit in narrow.hits)
    assert len(asked(driver, tenant, question, model="no-such-model").hits) == len(whole.hits)


def test_each_document_has_one_event_with_its_chunks(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, _ = made
    driver.sync(tenant)
    found = {event["uri"]: event for event in events(driver, tenant, "rag_chunk_indexed")}
    assert found.keys() >= {"repo/app/Models/Invoice.php", "repo.derived/table/invoices"}
    assert found["repo.derived/table/invoices"]["source_type"] == "table"
    controller = found["repo/app/Http/Controllers/InvoiceController.php"]
    assert len(controller["chunks"]) == 2


def test_hits_name_the_commit_and_whether_their_file_differs(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "derived-origins"
    made = MadeRepository(shared_installation.home.parent / "sources" / tenant)
    commit = made.commit(FILES)
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "type": "git", "root": str(made.root), "ref": "worktree"}],
    )
    driver.sync(tenant)
    question = "What controller serves route invoices.store and which model does it touch?"
    first = asked(driver, tenant, question)
    of_files = [hit.origin for hit in first.hits if hit.uri.startswith("repo/")]
    assert of_files
    assert {(origin.commit, origin.differs) for origin in of_files if origin} == {(commit, False)}
    assert None not in of_files
    assert all(hit.origin is None for hit in first.hits if hit.uri.startswith("repo.derived/"))
    made.write({"app/Models/Invoice.php": FILES["app/Models/Invoice.php"] + "\n// later\n"})
    second = {hit.uri: hit.origin for hit in asked(driver, tenant, question).hits}
    changed = second["repo/app/Models/Invoice.php"]
    same = second["repo/app/Http/Controllers/InvoiceController.php"]
    assert changed is not None
    assert changed.differs
    assert same is not None
    assert not same.differs
    shutil.rmtree(made.folder)
    assert all(hit.origin is None for hit in asked(driver, tenant, question).hits)


def test_relations_are_counted_by_kind_with_the_share_that_is_resolved(
    made: tuple[str, Path], driver: Driver
) -> None:
    tenant, root = made
    write(root, {"routes/more.php": "<?php\nRoute::get($computed, fn () => 1);\n"})
    driver.sync(tenant)
    with driver.locked(tenant) as ctx:
        report = relations_report(PLAIN, ctx)
    assert report is not None
    values = {name: value.value for name, value in report.metadata.items()}
    rows = report.metadata["by kind"]
    assert isinstance(rows, dg.TableMetadataValue)
    kinds = {row.data["relation"]: row.data for row in rows.records}
    assert kinds["routes_to"] == {"relation": "routes_to", "edges": 1, "resolved": 1.0}
    assert kinds["extends"]["resolved"] == 0.0, "frameworks are not in the repository"
    assert kinds["maps_to"]["edges"] == 1
    assert 0 < values["resolved share"] < 1
    assert values["edges"] == sum(row["edges"] for row in kinds.values())
    assert values["symbols"] > 5
    assert values["unresolved routes and tables"] == 1
    assert "routes/more.php:2" in values["not known"]
