"""A repository in the chain: source types of chunks, symbols and relations, and their readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.slices import find_parsed_documents
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.catalog.tables import edges, name_uses, symbols
from rag_assets.systems.code_memory.retrieval.walk import Walker, WalkResult
from tests.driving import Driver
from tests.installation import FAST, Installation

ELOQUENT = "Illuminate\\Database\\Eloquent\\Model"
FILES = {
    "app/Models/Base.php": f"""<?php
namespace App\\Models;
abstract class Base extends \\{ELOQUENT}
{{
}}
""",
    "app/Models/Invoice.php": """<?php
namespace App\\Models;
class Invoice extends Base
{
    public function lines() { return $this->hasMany(Line::class); }
}
""",
    "app/Http/Controllers/InvoiceController.php": """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Invoice;
use Illuminate\\Support\\Facades\\DB;
class InvoiceController
{
    public function store(): Invoice
    {
        DB::table('audit')->insert([]);
        return Invoice::create([]);
    }
}
""",
    "resources/invoice.ts": "export class Invoice { total() { return 1 } }\n",
    "README.md": "# Invoices\n\nWhat this is for.\n",
}
STORE = "App\\Http\\Controllers\\InvoiceController::store"
INVOICE = "App\\Models\\Invoice"


@pytest.fixture
def repository(shared_installation: Installation) -> Path:
    return shared_installation.home.parent / "sources" / "code"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def add(installation: Installation, tenant: str, **sources: tuple[Path, str]) -> None:
    listed = [
        {
            "name": name,
            "root": str(root),
            "include": ["**/*.php", "**/*.md", "**/*.ts"],
            "scope": scope,
        }
        for name, (root, scope) in sources.items()
    ]
    installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=listed,
    )


def types_of(ctx: TenantContext) -> dict[tuple[str, str], str]:
    """Return the source type of each entry, by file name and definition."""
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    assert serving is not None
    found = {}
    for document in ctx.catalog.documents.all(ctx.ref.id):
        entries = ctx.store.entries.of_documents(
            serving.index_name, ctx.owner(serving), [document.document_id]
        )
        for entry in entries:
            name = document.uri.rpartition("/")[2]
            symbol = entry.fields["metadata"].get("code_symbol", "")
            found[name, symbol.rpartition("\\")[2]] = entry.fields["source_type"]
    return found


def relations_of(walk: WalkResult) -> set[tuple[str, str, str]]:
    return {(relation.kind, relation.source, relation.target) for relation in walk.relations}


def counts(ctx: TenantContext) -> list[int]:
    with ctx.catalog.database.begin() as connection:
        return [
            connection.scalar(
                select(func.count()).select_from(table).where(table.c.tenant == ctx.ref.id)
            )
            or 0
            for table in (symbols, edges, name_uses)
        ]


def test_what_other_files_say_decides_what_a_chunk_is_and_costs_no_vector(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    root = repository / "kinds"
    write(root, FILES)
    add(shared_installation, "code-kinds", repo=(root, "public"))
    driver.sync("code-kinds")
    with driver.locked("code-kinds") as ctx:
        assert types_of(ctx) == {
            ("Base.php", "Base"): "model",
            ("Invoice.php", "Invoice"): "model",
            ("Invoice.php", "Invoice::lines"): "model_relation",
            ("InvoiceController.php", "InvoiceController"): "controller",
            ("InvoiceController.php", "InvoiceController::store"): "controller_method",
            ("README.md", ""): "doc",
            ("invoice.ts", "Invoice"): "code",
            ("invoices", "table:invoices"): "table",
        }
    write(
        root, {"app/Models/Base.php": "<?php\nnamespace App\\Models;\nabstract class Base\n{\n}\n"}
    )
    done = driver.sync("code-kinds")
    assert done["embedded"] == 1, "the file that was edited, and no other"
    with driver.locked("code-kinds") as ctx:
        found = types_of(ctx)
        assert found["Invoice.php", "Invoice::lines"] == "code"
        assert found["Invoice.php", "Invoice"] == "code"
    assert driver.sync("code-kinds")["upserted"] == 0


def test_relations_are_walked_with_their_evidence(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    root = repository / "walk"
    write(root, FILES)
    add(shared_installation, "code-walk", repo=(root, "public"))
    driver.sync("code-walk")
    with driver.locked("code-walk") as ctx:
        walker = Walker(ctx.catalog)
        walk = walker.walk_from_name(
            "code-walk", Caller(), "InvoiceController@store", direction="out"
        )
        assert relations_of(walk) == {
            ("uses_model", STORE, INVOICE),
            ("queries_table", STORE, "table:audit"),
        }
        [table] = [relation for relation in walk.relations if relation.kind == "queries_table"]
        assert (table.uri, table.line_start, table.evidence) == (
            "repo/app/Http/Controllers/InvoiceController.php",
            9,
            "DB::table('audit')",
        )
        assert walk.complete
        farther = walker.walk_from_name("code-walk", Caller(), STORE, direction="out", depth=5)
        assert ("extends", INVOICE, "App\\Models\\Base") in relations_of(farther)
        only = walker.walk_from_name("code-walk", Caller(), STORE, kinds=["uses_model"], depth=5)
        assert {kind for kind, *_ in relations_of(only)} == {"uses_model"}
        who = walker.walk_from_name("code-walk", Caller(), "table:audit", direction="in")
        assert relations_of(who) == {("queries_table", STORE, "table:audit")}
        assert [node.source_type for node in who.nodes] == ["table", "controller_method"]
        [lines] = walker.find_definitions("code-walk", Caller(), name="Invoice::lines")
        assert (lines.uri, lines.line_start) == ("repo/app/Models/Invoice.php", 5)
        outline = walker.find_definitions("code-walk", Caller(), path="repo/app/Models/Invoice.php")
        assert [node.name for node in outline] == [INVOICE, f"{INVOICE}::lines"]
        both = walker.find_definitions("code-walk", Caller(), name="Invoice")
        assert [node.name for node in both] == [INVOICE, "resources/invoice#Invoice"]
        assert walker.walk_from_name("code-walk", Caller(), "Nobody").nodes == ()


MIGRATION = """<?php
use Illuminate\\Database\\Migrations\\Migration;
use Illuminate\\Support\\Facades\\Schema;
return new class extends Migration {
    public function up(): void { Schema::%s('invoices', function ($table) { $table->id(); }); }
};
"""


def test_migrations_without_a_name_are_told_apart(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    root = repository / "migrations"
    made = {"2024_a.php": MIGRATION % "create", "2025_b.php": MIGRATION % "table"}
    write(root, {f"database/migrations/{name}": text for name, text in made.items()})
    add(shared_installation, "code-migrations", repo=(root, "public"))
    driver.sync("code-migrations")
    with driver.locked("code-migrations") as ctx:
        walker = Walker(ctx.catalog)
        walk = walker.walk_from_name(
            "code-migrations",
            Caller(),
            "table:invoices",
            kinds=["creates", "alters"],
            direction="in",
        )
        folder = "repo/database/migrations"
        assert relations_of(walk) == {
            ("creates", f"{folder}/2024_a.php#class@4::up", "table:invoices"),
            ("alters", f"{folder}/2025_b.php#class@4::up", "table:invoices"),
        }
        assert {node.source_type for node in walk.nodes} == {"table", "migration"}
        again = walker.walk_from_name("code-migrations", Caller(), walk.relations[0].source)
        assert ("creates", f"{folder}/2024_a.php#class@4::up", "table:invoices") in relations_of(
            again
        )
        assert not any("2025" in relation.source for relation in again.relations)


def test_files_whose_literals_hold_nul_are_indexed(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    root = repository / "nul"
    escaped = '<?php\nreturn ["a\\0b" => ["c\\0" => env("KEY\\0")]];\n'
    route = 'Route::get("/a\\0b", [\\App\\C::class, "x"])->name("n\\0"); DB::table("t\\0");\n'
    write(root, {"config/a.php": escaped, "routes/web.php": f"<?php\n{route}"})
    add(shared_installation, "code-nul", repo=(root, "public"))
    done = driver.sync("code-nul")
    assert done["failed"] == 0
    with driver.locked("code-nul") as ctx:
        assert {name for name, _ in types_of(ctx)} >= {"a.php", "web.php"}
        named = Walker(ctx.catalog).find_definitions("code-nul", Caller(), path="repo/config/a.php")
        assert "config:a.a\ufffdb.c\ufffd" in {node.name for node in named}


def test_what_is_gone_leaves_no_symbol_no_edge_and_no_name(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    root = repository / "gone"
    write(root, FILES | {"copy/Invoice.php": FILES["app/Models/Invoice.php"]})
    add(shared_installation, "code-gone", repo=(root, "public"))
    driver.sync("code-gone")
    with driver.locked("code-gone") as ctx:
        before = counts(ctx)
        assert all(before)
    (root / "copy" / "Invoice.php").unlink()
    driver.sync("code-gone")
    with driver.locked("code-gone") as ctx:
        assert counts(ctx) == before, "another document has the same text"
    (root / "app" / "Models" / "Invoice.php").unlink()
    driver.sync("code-gone")
    with driver.locked("code-gone") as ctx:
        walker = Walker(ctx.catalog)
        left = walker.find_definitions("code-gone", Caller(), name="Invoice")
        assert [node.uri for node in left] == ["repo/resources/invoice.ts"]
        assert relations_of(
            walker.walk_from_name("code-gone", Caller(), STORE, direction="out")
        ) == {("queries_table", STORE, "table:audit")}
        recorded = {
            item.chunk_set_key
            for item in find_parsed_documents(ctx, ctx.catalog.documents.all(ctx.ref.id))
        }
        with ctx.catalog.database.begin() as connection:
            keys = set(
                connection.scalars(
                    select(edges.c.chunk_set_key).where(edges.c.tenant == ctx.ref.id)
                )
            )
        assert keys <= recorded


def test_nobody_is_told_what_they_may_not_read_and_repositories_stay_apart(
    shared_installation: Installation, driver: Driver, repository: Path
) -> None:
    open_root, closed_root = repository / "open", repository / "closed"
    write(open_root, FILES)
    secret = FILES["app/Http/Controllers/InvoiceController.php"].replace("'audit'", "'salaries'")
    write(
        closed_root,
        {
            "a/InvoiceController.php": secret,
            "b/Invoice.php": "<?php\nnamespace App\\Models;\nclass Invoice {}\n",
        },
    )
    add(
        shared_installation,
        "code-scopes",
        repo=(open_root, "public"),
        inner=(closed_root, "inner"),
    )
    driver.sync("code-scopes")
    with driver.locked("code-scopes") as ctx:
        ctx.catalog.access.grant(ctx.ref, "inner", ["ann"])
        walker = Walker(ctx.catalog)

        def ask(name: str, *principals: str, **options: Any) -> WalkResult:
            return walker.walk_from_name(
                "code-scopes", Caller(principals=principals), name, **options
            )

        everybody = ask("InvoiceController@store", depth=8)
        assert {node.repository for node in everybody.nodes} == {"repo"}
        assert "salaries" not in str(everybody)
        assert ask("table:salaries").nodes == ()
        inner = ask("table:salaries", "ann", direction="in", depth=8)
        assert {node.repository for node in inner.nodes} == {"inner"}
        both = ask("InvoiceController@store", "ann", direction="out")
        models = [(relation.uri.partition("/")[0], relation.target) for relation in both.relations]
        assert ("inner", INVOICE) not in models, "it is no model in that repository"
        assert ("repo", INVOICE) in models
        ctx.catalog.access.revoke(ctx.ref, "inner", ["ann"])
        assert ask("table:salaries", "ann").nodes == ()
