"""The tools of agents: their answers about the example repository, and the answers' sizes."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.tokens import count_text
from rag_assets.mcp.server import build_server
from rag_assets.mcp.tools import DEFAULT_TOOLS, Knowledge, MessageContext, message_context
from rag_assets.plugins.registry import installed_systems
from rag_assets.search import AsyncRetriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.outlines import MAX_TOKENS
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "agent-tools"
EXAMPLE = Path(__file__).parents[4] / "examples" / "laravel"
MOST_OF_SCHEMAS = 1_900
USERS = 2_500


@pytest.fixture(scope="module")
def about(shared_installation: Installation, driver: Driver) -> CodeAnswers:
    root = shared_installation.home.parent / "sources" / TENANT
    shutil.copytree(EXAMPLE, root)
    hub = root / "app" / "Hub"
    hub.mkdir()
    (hub / "Hub.php").write_text(
        "<?php\nnamespace App\\Hub;\nclass Hub { static function a() {} }\n"
    )
    uses = "\n".join(
        f"    public function u{n}() {{ \\App\\Hub\\Hub::a(); }}" for n in range(USERS)
    )
    (hub / "Users.php").write_text(f"<?php\nnamespace App\\Hub;\nclass Users {{\n{uses}\n}}\n")
    (root / "app" / "Jobs" / "AGENTS.md").write_text("# Jobs\n\nJobs are retried.\n")
    feature = root / "tests" / "Feature"
    feature.mkdir(parents=True, exist_ok=True)
    (feature / "InvoiceTest.php").write_text(
        "<?php\nnamespace Tests\\Feature;\nuse Tests\\TestCase;\nclass InvoiceTest extends TestCase"
        " {\n    public function test_creates()\n    {\n"
        "        $this->postJson('/invoices', ['total' => 1])->assertStatus(201);\n    }\n}\n"
    )
    include = ["**/*.php", "**/*.md", "**/*.mdc", "**/*.sql", ".cursor/**/*.mdc", ".claude/**/*.md"]
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "root": str(root), "include": include}],
    )
    driver.sync(TENANT)
    session = driver.session
    record = session.catalog.tenants.get(TENANT)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def test_a_route_is_told_with_its_whole_chain(about: CodeAnswers) -> None:
    reply = about.who_serves("invoices.store")
    lines = [line.strip() for line in reply.split("\n")]
    controller = "App\\Http\\Controllers\\InvoiceController::store"
    assert f"routes_to {controller}  routes/web.php:39" in lines
    for said in (
        "validates_with App\\Http\\Requests\\StoreInvoiceRequest",
        "uses_model App\\Models\\Invoice  app/Http/Controllers/InvoiceController.php:41",
        "maps_to table:invoices (convention)  app/Models/Invoice.php:15",
        "dispatches App\\Jobs\\RenderInvoicePdf",
    ):
        assert any(line.startswith(said) for line in lines), said
    assert "2022_01_06_110000_create_invoices_table.php:11" in reply
    assert about.who_serves("POST /invoices").split("\n")[0] == reply.split("\n")[0]


def test_a_route_with_a_handler_in_place_is_told_with_what_it_calls(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "agent-tools-in-place"
    root = shared_installation.home.parent / "sources" / tenant
    files = {
        "src/app.ts": "import express from 'express'\n"
        "import { listOrders } from './orders'\nconst app = express()\n"
        "app.get('/orders', async (req, res) => {\n  res.json(await listOrders())\n})\n",
        "src/orders.ts": "export async function listOrders() {\n"
        "  return db.query('SELECT * FROM orders')\n}\n",
        "kt/Carts.kt": "import io.ktor.server.routing.*\n\n"
        "fun Route.carts(cartStore: CartStore) {\n"
        '  get("/carts") { cartStore.list(call) }\n}\n\n'
        "class CartStore {\n  fun list(call: Call) {}\n}\n",
    }
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "root": str(root), "include": ["**/*.ts", "**/*.kt"]}],
    )
    driver.sync(tenant)
    session = driver.session
    reader = DocumentReader(session.catalog, session.store)
    about = CodeAnswers(
        reader, session.embedders.tenant(session.catalog.tenants.get(tenant)), Caller()
    )
    reply = about.who_serves("/orders")
    assert "calls listOrders  src/app.ts:4" in reply
    assert "queries_table table:orders  src/orders.ts:2" in reply
    assert "calls CartStore::list  kt/Carts.kt:4" in about.who_serves("GET /carts")
    assert "GET /orders" in about.impact_of(symbols=["listOrders"])


def test_who_touches_a_table_a_class_or_a_file_is_told_with_lines(about: CodeAnswers) -> None:
    table = about.what_touches(table="invoices")
    assert "app/Models/Invoice.php:15  App\\Models\\Invoice" in table
    assert "app/Http/Controllers/ReportController.php:35" in table
    used = table.partition("\nuses_model:\n")[2]
    assert "App\\Http\\Controllers\\Api\\InvoiceController::index" in used, "through its model"
    assert "App\\Models\\Customer::invoices" in table, "a relation that leads to the model"
    users = about.what_touches(symbol="InvoiceNumbering")
    assert "app/Http/Controllers/InvoiceController.php:41" in users
    of_file = about.what_touches(path="app/Services/InvoiceNumbering.php")
    assert "app/Http/Controllers/InvoiceController.php:41" in of_file


def test_what_depends_on_a_class_is_told_through_calls_events_and_routes(
    about: CodeAnswers,
) -> None:
    reply = about.impact_of(symbols=["App\\Models\\Payment"])
    heads = [line for line in reply.split("\n") if line.endswith("):")]
    assert heads[0].startswith("route (")
    assert "DELETE /payments/{payment}" in reply
    assert "App\\Listeners\\SendReceipt" in reply
    assert about.impact_of(paths=["app/Models/Payment.php"]).count("route (") == 1


def test_tests_of_a_route_an_action_and_a_file_are_told_with_how_they_reach_it(
    about: CodeAnswers,
) -> None:
    place = "tests/Feature/InvoiceTest.php:7"
    test = "Tests\\Feature\\InvoiceTest::test_creates"
    for reply in (
        about.tests_of(route="POST /invoices"),
        about.tests_of(symbols=["InvoiceController@store"]),
        about.tests_of(paths=["app/Http/Controllers/InvoiceController.php"]),
    ):
        heading, line = reply.split("\n")[:2]
        assert heading.startswith("tests that request it by HTTP (1)")
        assert place in line
        assert test in line
        assert "POST /invoices" in line
    assert "test (1):\n  tests/Feature/InvoiceTest.php" in about.impact_of(
        symbols=["InvoiceController@store"]
    )
    untested = about.tests_of(symbols=["App\\Models\\Note"])
    assert untested.startswith(("No test is found", "Nothing")), untested


def test_rules_are_those_whose_globs_hold_the_file(about: CodeAnswers) -> None:
    controller = about.rules_for(["app/Http/Controllers/InvoiceController.php"])
    assert ".cursor/rules/controllers.mdc:1  cursor_rule" in controller
    assert ".claude/CLAUDE.md:1  claude_rule" in controller
    model = about.rules_for(["app/Models/Invoice.php"])
    assert ".cursor/rules/controllers.mdc" not in model
    assert "app/Jobs/AGENTS.md" not in model, "it is for its folder"
    for path in ("app/Jobs/RenderInvoicePdf.php", "./app/Jobs/RenderInvoicePdf.php"):
        assert "app/Jobs/AGENTS.md:1  claude_rule" in about.rules_for([path])
        assert "app/Jobs/AGENTS.md:1  claude_rule" in about.rules_for([f"/srv/work/shop/{path}"])
    assert ".claude/commands" not in controller, "a command is no rule"
    assert "adr" in about.rules_for(["app/Services/InvoiceNumbering.php"])


def test_an_outline_has_the_lines_of_each_definition(about: CodeAnswers) -> None:
    assert "app/Models/Invoice.php:28-31  model  App\\Models\\Invoice::lines" in about.outline(
        "app/Models/Invoice.php"
    ).replace("repo/", "")


@pytest.mark.parametrize("before", ["repo/", "./", "shop/", "work/shop/", "/srv/work/shop/"])
def test_a_path_that_begins_with_the_folder_of_a_checkout_is_found(
    about: CodeAnswers, before: str
) -> None:
    path = "app/Models/Invoice.php"
    assert about.outline(before + path) == about.outline(path)
    is_shorter = "shop" in before
    for reply in (
        about.what_touches(path=before + path),
        about.impact_of(paths=[before + path]),
    ):
        assert reply.startswith(f"{before}{path} is taken for repo/{path}\n") == is_shorter, reply


@pytest.mark.parametrize(
    "ask",
    [
        lambda a: a.who_serves("invoices.stroe"),
        lambda a: a.what_touches(table="invoicez"),
        lambda a: a.impact_of(symbols=["InvoiceControler"]),
        lambda a: a.outline("app/Models/Invoices.php"),
    ],
    ids=["serves", "touches", "impact", "outline"],
)
def test_an_unknown_name_is_answered_with_names_that_are_alike(
    about: CodeAnswers, ask: Any
) -> None:
    reply = ask(about)
    assert reply.startswith("Nothing that you may read has this name.")
    assert "nvoice" in reply.partition("Alike:")[2]


@pytest.mark.parametrize(
    "said",
    [
        *(
            "POST invoices",
            "POST|/invoices",
            "POST https://shop.test/invoices",
            "InvoiceController@store",
        ),
        *("App\\Http\\Controllers\\InvoiceController::store", "InvoiceController->store()"),
    ],
)
def test_a_route_may_be_written_otherwise_or_named_by_what_it_runs(
    about: CodeAnswers, said: str
) -> None:
    reply = about.who_serves(said)
    assert "POST /invoices" in reply
    assert "App\\Http\\Controllers\\InvoiceController::store" in reply


def test_a_requested_path_leads_to_the_route_with_parameters(about: CodeAnswers) -> None:
    reply = about.who_serves("GET /invoices/INV-2024-x/edit")
    assert reply.startswith("route GET /invoices/{invoice}/edit\n")
    # The exact path comes before paths with parameters.
    assert about.who_serves("GET /invoices/create").startswith("route GET /invoices/create\n")


def test_all_routes_of_a_controller_are_told_or_counted(about: CodeAnswers) -> None:
    reply = about.who_serves("InvoiceController")
    assert reply.startswith("GET /")
    assert "more routes: " in reply


@pytest.mark.parametrize(
    "said",
    ["`invoices`", "shop.invoices", "invoice", "Invoice", "App\\Models\\Invoice", "INVOICES"],
)
def test_a_table_may_be_named_by_its_model_or_singular(about: CodeAnswers, said: str) -> None:
    reply = about.what_touches(table=said)
    assert "app/Models/Invoice.php:15  App\\Models\\Invoice" in reply


@pytest.mark.parametrize(
    "said",
    [
        *("Invoice::class", "App/Models/Invoice", "\\App\\Models\\Invoice::class"),
        *("Crater\\Models\\Invoice", "App\\\\Models\\\\Invoice"),
    ],
)
def test_a_class_may_be_written_as_code_has_it(about: CodeAnswers, said: str) -> None:
    reply = about.what_touches(symbol=said)
    assert f"{said} is taken for model App\\Models\\Invoice  app/Models/Invoice.php:15" in reply
    assert "InvoiceController::store" in reply


def test_a_method_is_found_without_its_class(about: CodeAnswers) -> None:
    exactly = about.what_touches(symbol="InvoiceNumbering@next")
    reply = about.what_touches(symbol="$this->numbering->next()")
    assert "InvoiceController" in exactly
    assert "InvoiceController" in reply


@pytest.mark.parametrize(
    "said",
    [
        *("./app/Models/Invoice.php", "/app/Models/Invoice.php", "repo/app/Models/Invoice.php"),
        *(
            "app\\Models\\Invoice.php",
            "app/Models/Invoice.php:28",
            "/srv/shop/app/Models/Invoice.php",
        ),
        *("Models/Invoice.php", "app/models/invoice.php"),
    ],
)
def test_a_path_may_be_written_otherwise(about: CodeAnswers, said: str) -> None:
    assert about.outline(said) == about.outline("app/Models/Invoice.php")
    assert "InvoiceController" in about.what_touches(path=said)


def test_a_path_may_stand_for_what_its_file_defines(about: CodeAnswers) -> None:
    path = "app/Models/Payment.php"
    assert about.impact_of(symbols=[path]) == about.impact_of(paths=[path])


def test_a_folder_is_answered_with_its_files(about: CodeAnswers) -> None:
    assert "repo/app/Models/Invoice.php" in about.outline("app/Models/").split("\n")
    assert about.what_touches(path="app/Models").startswith("app/Models is a folder. ")


def test_what_is_there_and_unused_is_not_said_to_be_unknown(about: CodeAnswers) -> None:
    assert about.what_touches(symbol="App\\Hub\\Users::u1").startswith("Nothing uses it ")
    assert about.outline("routes/web.php").endswith("is there, and defines nothing by name.")


@pytest.mark.parametrize(
    "said", ["", " ", "%", "_", "*", "\\", "/", "'", "a" * 10_000, "\u00e9\u4e2d", "$"]
)
def test_odd_names_get_a_short_answer(about: CodeAnswers, said: str) -> None:
    answers = [
        about.who_serves(said),
        about.what_touches(table=said),
        about.what_touches(symbol=said),
        about.what_touches(path=said),
        about.impact_of(symbols=[said]),
        about.outline(said),
        about.rules_for([said]),
    ]
    assert all(answer and count_text(answer) <= MAX_TOKENS for answer in answers)


def test_names_that_are_alike_are_of_the_kind_that_is_asked_for(about: CodeAnswers) -> None:
    routes = about.who_serves("PATCH /invoicess/7/edits").partition("Alike: ")[2]
    assert "/invoices" in routes.partition(", ")[0]
    symbol = about.what_touches(symbol="InvoicesController").partition("Alike: ")[2]
    assert symbol.startswith("InvoiceController")
    assert "invoices" in about.what_touches(table="nivoices").partition("Alike: ")[2]


def test_no_answer_is_longer_than_agents_bear(about: CodeAnswers) -> None:
    answers = [
        about.what_touches(symbol="App\\Hub\\Hub"),
        about.impact_of(symbols=["App\\Hub\\Hub::a"]),
        about.outline("app/Hub/Users.php"),
        about.who_serves("invoices.store"),
        about.rules_for(["app/Http/Controllers/InvoiceController.php"] * 20),
    ]
    assert all(count_text(answer) <= MAX_TOKENS for answer in answers)
    assert "more lines" in answers[0]
    assert "this may lack something" in answers[1]


def test_nobody_is_told_of_what_they_may_not_read(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "agent-tools-closed"
    root = shared_installation.home.parent / "sources" / tenant
    shutil.copytree(EXAMPLE, root)
    source = {"name": "repo", "root": str(root), "include": ["**/*.php"], "scope": "inner"}
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[source],
    )
    driver.sync(tenant)
    session = driver.session
    reader = DocumentReader(session.catalog, session.store)
    config = session.embedders.tenant(session.catalog.tenants.get(tenant))
    nobody = CodeAnswers(reader, config, Caller())
    nothing = "Nothing that you may read has this name."
    assert nobody.who_serves("invoices.store") == nothing
    search = "every place of the name: rg -nFw -e invoices"
    assert nobody.what_touches(table="invoices") == f"{nothing}\n{search}"
    assert nobody.impact_of(paths=["app/Models/Invoice.php"]) == nothing
    assert nobody.outline("app/Models/Invoice.php") == nothing
    assert nobody.outline("shop/app/Models/Invoice.php") == nothing
    assert nobody.what_touches(path="shop/app/Models/Invoice.php") == nothing
    assert "adr" not in nobody.rules_for(["app/Models/Invoice.php"])


def test_a_model_that_the_caller_may_not_read_is_not_walked_through(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "agent-tools-partly"
    root = shared_installation.home.parent / "sources" / tenant
    parent = "\\Illuminate\\Database\\Eloquent\\Model"
    body = "{{ protected $table = 'bills'; }}"
    model = f"<?php\nnamespace App\\Models;\nclass {{}} extends {parent} {body}"
    uses = "public function all() {{ return \\App\\Models\\{}::all(); }}"
    user = f"<?php\nnamespace App;\nclass {{}} {{{{ {uses} }}}}"
    for repository, name in (("open", "Bill"), ("closed", "Ledger")):
        (root / repository / "app" / "Models").mkdir(parents=True)
        (root / repository / "app" / "Models" / f"{name}.php").write_text(model.format(name))
        for used in ("Bill", "Ledger"):
            (root / repository / "app" / f"{repository}{used}.php").write_text(
                user.format(f"{repository}{used}", used)
            )
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
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
    driver.sync(tenant)
    session = driver.session
    reader = DocumentReader(session.catalog, session.store)
    config = session.embedders.tenant(session.catalog.tenants.get(tenant))
    reply = CodeAnswers(reader, config, Caller()).what_touches(table="bills")
    assert "open/app/openBill.php:3" in reply
    assert "Ledger" not in reply
    assert "closed" not in reply


@pytest.fixture
def knowledge(about: CodeAnswers, driver: Driver) -> Knowledge:
    session = driver.session
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    return Knowledge(retriever.search, about.reader)


@pytest.mark.parametrize(
    ("options", "first"),
    [
        ({"route_name": "payments.destroy"}, "DELETE /payments/{payment}"),
        ({"controller_class": "CustomerController"}, "CustomerController"),
        ({"table_name": "invoice_lines"}, "invoice_lines"),
    ],
    ids=["route", "controller", "table"],
)
def test_a_search_begins_at_the_name_that_an_agent_gives(
    about: CodeAnswers, driver: Driver, options: dict[str, str], first: str
) -> None:
    words = {"query": "what happens there", "top_k": 3}

    async def tool_texts() -> list[str]:
        session = driver.session
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        knowledge = Knowledge(retriever.search, about.reader)
        tools = installed_systems().load("tools").values()
        server = build_server(knowledge, lambda _: MessageContext(TENANT, Caller()), tools)
        try:
            with message_context(MessageContext(TENANT, Caller())):
                answers = [
                    await server.call_tool("code_search", given)
                    for given in (words, words | options)
                ]
        finally:
            await retriever.close()
        return [str(answer) for answer in answers]

    without, beginning = asyncio.run(tool_texts())
    assert first not in without
    assert first in beginning


async def _listed(server: Any, tenant: str) -> list[Any]:
    with message_context(MessageContext(tenant, Caller())):
        return list(await server.list_tools())


def test_tools_are_read_only_small_and_of_this_profile_alone(
    knowledge: Knowledge, shared_installation: Installation, driver: Driver
) -> None:
    plain = "agent-tools-plain"
    shared_installation.add_tenant(plain, **FAST, sources=[])
    with driver.locked(plain):
        pass
    tools = [*DEFAULT_TOOLS, *installed_systems().load("tools").values()]
    names = {"code_search", "who_serves", "what_touches", "impact_of", "outline", "rules_for"}
    names |= {"tests_of", "history_of"}
    listed = {}
    for tenant in (TENANT, plain):
        server = build_server(knowledge, lambda _, t=tenant: MessageContext(t, Caller()), tools)
        listed[tenant] = {tool.name: tool for tool in asyncio.run(_listed(server, tenant))}
    assert names <= listed[TENANT].keys()
    assert not names & listed[plain].keys()
    own = [listed[TENANT][name] for name in names]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in own)
    schemas = json.dumps([tool.model_dump(mode="json", exclude_none=True) for tool in own])
    assert count_text(schemas) <= MOST_OF_SCHEMAS
