"""Derived documents: relations that several files define together, and their text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.chunking.chunk_set import locate_facts
from rag_assets.ingest.chunking.model import EVIDENCE, build_embedding_text
from rag_assets.systems.code_memory.derived.documents import (
    derive_documents,
    list_languages_to_read,
    list_signs,
)
from rag_assets.systems.code_memory.derived.laravel import has_laravel_sign
from rag_assets.systems.code_memory.derived.model import (
    Derivation,
    DerivedDocument,
    DerivedStatement,
    UnresolvedStatement,
    limit_unresolved,
    read_document,
    render_document,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import Edge, build_relations
from rag_assets.systems.code_memory.settings.reader import read_json
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import list_route_keys, list_table_keys


def migration(statements: str) -> str:
    return (
        "<?php\nuse Illuminate\\Database\\Migrations\\Migration;\n"
        "use Illuminate\\Support\\Facades\\Schema;\nreturn new class extends Migration {\n"
        f"public function up(): void {{\n{statements}\n}}\n}};\n"
    )


LARAVEL = {
    "app/Providers/RouteServiceProvider.php": """<?php
namespace App\\Providers;
use Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider as Base;
use Illuminate\\Support\\Facades\\Route;
class RouteServiceProvider extends Base {
    public function boot() {
        $this->routes(fn () => Route::middleware('web')->group(base_path('routes/web.php')));
    }
}
""",
    "routes/web.php": """<?php
use App\\Http\\Controllers\\InvoiceController;
use Illuminate\\Support\\Facades\\Route;
Route::middleware(['auth'])->group(function () {
    Route::post('/invoices', [InvoiceController::class, 'store'])->name('invoices.store');
});
Route::any('/ping', fn () => 'pong');
""",
    "app/Models/Invoice.php": """<?php
namespace App\\Models;
class Invoice extends \\Illuminate\\Database\\Eloquent\\Model {}
""",
    "database/migrations/2024_01_01_000000_create_invoices.php": migration(
        "Schema::create('invoices', function ($table) { $table->id();"
        " $table->string('number', 40)->nullable();"
        " $table->foreignId('customer_id')->constrained()->cascadeOnDelete(); });"
    ),
}
DJANGO = {
    "manage.py": "",
    "billing/__init__.py": "",
    "billing/models.py": "from django.db import models\nclass Bill(models.Model): ...\n",
    "billing/views.py": "from django.http import HttpResponse\ndef show(request, pk): ...\n",
    "billing/urls.py": (
        "from django.urls import path\nfrom billing import views\n"
        "urlpatterns = [path('bills/<int:pk>/', views.show, name='bill')]\n"
    ),
}


def documents(files: Mapping[str, str]) -> dict[str, DerivedDocument]:
    return {document.name: document for document in derived(files).documents}


def derived(files: Mapping[str, str]) -> Derivation:
    return derive_documents(facts_of(files))


def facts_of(files: Mapping[str, str]) -> list[FileFacts]:
    languages = {".php": "php", ".py": "python"}
    found = []
    for path, text in files.items():
        language = languages[path[path.rfind(".") :]]
        facts = locate_facts(read_code(text, f"text/x-{language}").facts, text)
        found.append(FileFacts(path, language, tuple(facts)))
    return found


def edges(document: DerivedDocument) -> Sequence[Edge]:
    return build_relations(read_document(render_document(document)).facts, names="none").edges


def test_a_route_has_its_controller_its_guards_and_the_lines_that_state_them() -> None:
    found = documents(LARAVEL)
    assert found.keys() == {"route:POST /invoices", "route:ANY /ping", "table:invoices"}
    route = found["route:POST /invoices"]
    assert route.lines == (
        "route POST /invoices",
        "methods: POST",
        "name: invoices.store",
        "action: App\\Http\\Controllers\\InvoiceController@store",
        "middleware: web, auth",
    )
    own = [edge for edge in edges(route) if edge.source == "route:POST /invoices"]
    told = {(one.kind, one.target): (one.path, one.line_start) for one in own}
    web, provider = "routes/web.php", "app/Providers/RouteServiceProvider.php"
    assert told == {
        ("routes_to", "App\\Http\\Controllers\\InvoiceController::store"): (web, 5),
        ("guarded_by", "middleware:auth"): (web, 4),
        ("guarded_by", "middleware:web"): (provider, 7),
        ("in_group", f"group:{web}:4"): (web, 4),
        ("in_group", f"group:{provider}:7"): (provider, 7),
        ("serves", "endpoint:POST /invoices"): (web, 5),
    }
    [nested] = [edge for edge in edges(route) if edge not in own]
    groups = f"group:{web}:4", f"group:{provider}:7"
    assert (nested.kind, nested.source, nested.target) == ("in_group", *groups)


def test_groups_within_groups_are_each_a_group_of_their_own() -> None:
    web = """<?php
use Illuminate\\Support\\Facades\\Route;
Route::prefix('admin')->group(function () {
    Route::name('users.')->group(function () {
        Route::get('/users', fn () => 1)->name('index');
    });
    Route::prefix('a')->group(fn () => Route::name('b')->group(fn () => Route::view('/c', 'c')));
});
"""
    found = documents({**LARAVEL, "routes/web.php": web})

    def groups(name: str) -> set[tuple[str, str]]:
        return {
            (edge.source.removeprefix(name), edge.target.rpartition("/")[2])
            for edge in edges(found[name])
            if edge.kind == "in_group" and edge.target.startswith("group:routes/")
        }

    assert groups("route:GET /admin/users") == {
        ("", "web.php:3"),
        ("", "web.php:4"),
        ("group:routes/web.php:4", "web.php:3"),
    }
    assert groups("route:GET /admin/a/c") == {
        ("", "web.php:3"),
        ("", "web.php:7"),
        ("", "web.php:7'"),
        ("group:routes/web.php:7", "web.php:3"),
        ("group:routes/web.php:7'", "web.php:7"),
    }


def test_middleware_that_another_file_names_is_inferred() -> None:
    kernel = """<?php
namespace App\\Http;
class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel {
    protected $middlewareAliases = ['auth' => \\App\\Http\\Middleware\\Authenticate::class];
}
"""
    route = documents({**LARAVEL, "app/Http/Kernel.php": kernel})["route:POST /invoices"]
    guards = {edge.target: edge for edge in edges(route) if edge.kind == "guarded_by"}
    assert guards["middleware:auth"].how == "stated"
    concluded = guards["App\\Http\\Middleware\\Authenticate"]
    assert (concluded.how, concluded.confidence) == ("inferred", 0.6)


def test_a_table_has_its_columns_and_the_model_that_maps_to_it_by_convention() -> None:
    table = documents(LARAVEL)["table:invoices"]
    assert table.lines == (
        "table invoices",
        "models: App\\Models\\Invoice",
        "columns:",
        "- id bigInteger, unsigned, autoIncrement",
        "- number string, nullable, length 40",
        "- customer_id bigInteger, unsigned",
        "indexes:",
        "- primary (id) primary",
        "foreign keys:",
        "- (customer_id) to customers (id) on delete cascade",
    )
    told = {(edge.kind, edge.source, edge.target): edge for edge in edges(table)}
    maps = told["maps_to", "App\\Models\\Invoice", "table:invoices"]
    assert (maps.how, maps.path, maps.line_start) == ("convention", "app/Models/Invoice.php", 3)
    assert maps.confidence < 1
    assert ("references", "table:invoices", "table:customers") in told
    assert all(kind != "changed_in" for kind, *_ in told), "migrations state that themselves"
    called = read_document(render_document(table)).facts[0].values["called"]
    assert called == list(list_table_keys("invoices"))


def test_routes_and_tables_of_django_are_derived_too() -> None:
    [route] = [one for one in documents(DJANGO).values() if one.source_type == "route"]
    assert "name: bill" in route.lines
    assert ("routes_to", "billing.views.show", "billing/urls.py", 3) in {
        (edge.kind, edge.target, edge.path, edge.line_start) for edge in edges(route)
    }
    assert set(route.called) >= set(list_route_keys((), "/bills/<int:pk>/", "bill"))


VIEWSETS = {
    "manage.py": "",
    "shop/__init__.py": "",
    "shop/views.py": """
from rest_framework.decorators import action
from rest_framework.viewsets import ModelViewSet
class Documents(ModelViewSet):
    queryset = Document.objects.all()
    @action(detail=True)
    def download(self, request, pk): ...
class Searched(Documents):
    def list(self, request): ...
""",
    "shop/urls.py": """
from django.urls import path, include
from rest_framework.routers import DefaultRouter
from shop import views
router = DefaultRouter()
router.register("documents", views.Searched)
urlpatterns = [
    path(
        "api/",
        include(router.urls),
    ),
    path("one/", views.one),
    path("two/", views.two),
]
""",
}


def test_a_route_runs_the_method_that_its_viewset_has_or_inherits() -> None:
    found = documents(VIEWSETS)

    def run(name: str) -> set[str]:
        return {edge.target for edge in edges(found[name]) if edge.kind == "routes_to"}

    assert run("route:GET /api/documents/") == {"shop.views.Searched.list"}
    assert run("route:POST /api/documents/") == {"shop.views.Searched"}, "a package brings it"
    inherited = "route:GET /api/documents/{pk}/download/"
    assert run(inherited) == {"shop.views.Documents.download", "shop.views.Searched"}
    assert "view: shop.views.Documents.download" in found[inherited].lines


def test_a_route_of_django_is_stated_by_the_line_that_it_begins_on() -> None:
    found = documents(VIEWSETS)
    lines = VIEWSETS["shop/urls.py"].split("\n")
    for name in ("one", "two"):
        [place] = [edge for edge in edges(found[f"route:ANY /{name}/"]) if edge.kind == "routes_to"]
        assert lines[place.line_start - 1].strip() == f'path("{name}/", views.{name}),'
        assert place.evidence == f'path("{name}/", views.{name})'


def test_a_moved_line_changes_no_embedded_text() -> None:
    moved = {**LARAVEL, "routes/web.php": LARAVEL["routes/web.php"].replace("<?php", "<?php\n\n")}
    name = "route:POST /invoices"
    before, after = (render_document(documents(files)[name]) for files in (LARAVEL, moved))
    assert before != after
    embedded = {build_embedding_text(None, (), text, is_code=True) for text in (before, after)}
    assert len(embedded) == 1
    assert "invoices.store" in embedded.pop()


def test_requests_of_tests_beyond_the_limit_are_counted() -> None:
    method = "public function test_%s() { $this->postJson('/invoices'); }"
    requests = "\n".join(method % n for n in range(203))
    head = "<?php\nnamespace Tests\\Feature;\nuse Tests\\TestCase;\n"
    test = f"{head}class InvoiceTest extends TestCase {{\n{requests}\n}}\n"
    found = derived({**LARAVEL, "tests/Feature/InvoiceTest.php": test})
    [route] = [document for document in found.documents if document.name.endswith("/invoices")]
    assert sum(statement.kind == "requests" for statement in route.statements) == 200
    [cut] = [one for one in found.unresolved if one.about == route.name]
    assert cut.reason == "203 requests of tests, of which 200 are listed"


@pytest.mark.parametrize(
    ("text", "has_sign"),
    [
        ("Route::get('/ping', fn () => 'pong');", True),
        ("$router->post('/orders', 'OrderController@store');", True),
        ("class Order extends Model { protected $table = 'orders'; }", True),
        ("class Order extends \\Shop\\Models\\Base {}", True),
        ("class Ship implements \\Illuminate\\Contracts\\Queue\\ShouldQueue {}", True),
        ("use Laravel\\Lumen\\Application;", True),
        ("class A extends Migration { function up() { Schema::create('a', fn () => 1); } }", True),
        ("use Symfony\\Component\\Routing\\Route;\n$r->add('a', new Route('/a'));", False),
        (
            "class Provider extends BaseProvider { function boot() { $this->app->get('/x'); } }",
            False,
        ),
        (
            "class Kernel extends BaseKernel { function boot() { require __DIR__ . '/a.php'; } }",
            False,
        ),
        ("class Order extends AbstractEntity { function getTable() { return 'orders'; } }", False),
    ],
)
def test_one_statement_in_php_is_a_sign_of_laravel(text: str, *, has_sign: bool) -> None:
    facts = read_code(f"<?php\n{text}\n", "text/x-php").facts
    assert has_laravel_sign(FileFacts("packages/shop/src/file.php", "php", facts)) is has_sign


@pytest.mark.parametrize("package", ["laravel/framework", "illuminate/database"])
def test_a_package_of_laravel_in_a_manifest_is_a_sign(package: str) -> None:
    facts = read_json(f'{{"require": {{"{package}": "^11.0"}}}}').facts
    assert has_laravel_sign(FileFacts("apps/shop/composer.json", "json", facts))


def test_a_request_of_a_test_is_no_sign_of_laravel() -> None:
    text = "<?php\nclass RouterTest { function testMatch($router) { $router->match('/login'); } }\n"
    facts = read_code(text, "text/x-php").facts
    assert has_laravel_sign(FileFacts("src/Router.php", "php", facts))
    assert not has_laravel_sign(FileFacts("tests/RouterTest.php", "php", facts))


def test_languages_read_with_laravel_are_all_and_with_django_those_of_tests_too() -> None:
    laravel, django = (frozenset().union(*map(list_signs, facts_of(o))) for o in (LARAVEL, DJANGO))
    assert list_languages_to_read(laravel) is None
    found = list_languages_to_read(django)
    assert found is not None
    assert {"python", "php", "ruby"} <= found
    files = facts_of({**DJANGO, "lib/plain.php": "<?php\nclass Plain {}\n"})
    read = [file for file in files if file.language in found - {"php"}]
    assert derive_documents(read) == derive_documents(files)
    assert list_languages_to_read(frozenset()) == frozenset()
    assert list_languages_to_read(laravel | django) is None


def test_files_of_no_framework_have_no_derived_documents() -> None:
    files = {"a.py": "def route(): ...\n", "b.php": "<?php\nfunction x() {}\n"}
    assert derived(files).documents == ()


WORDS = st.text(
    st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12
)
LINES = st.integers(min_value=1, max_value=9_999)
STATEMENTS = st.builds(
    DerivedStatement,
    kind=st.sampled_from(["routes_to", "guarded_by", "maps_to", "references"]),
    source=st.one_of(st.just(""), st.builds("{} {}".format, WORDS, WORDS)),
    target=st.builds("{} {}%".format, WORDS, WORDS),
    how=st.sampled_from(["stated", "convention", "inferred"]),
    path=st.builds("{}/a b%20/{}.php".format, WORDS, WORDS),
    line_start=LINES,
    line_end=st.integers(min_value=10_000, max_value=20_000),
    evidence=WORDS,
)


@given(uri=WORDS, name=WORDS, stated=st.lists(STATEMENTS, max_size=6))
def test_a_document_is_read_back(uri: str, name: str, stated: list[DerivedStatement]) -> None:
    heading = f"GET /{uri}"
    lines = (f"route {heading}", "methods: GET, HEAD", f"name: {name}")
    called = list_route_keys(("GET", "HEAD"), f"/{uri}", name)
    document = DerivedDocument("route", f"route:{heading}", called, lines, tuple(stated))
    text = render_document(document)
    reading = read_document(text)
    declared, *facts = reading.facts
    assert declared.symbol == document.name
    assert set(declared.values["called"]) == set(called)
    names = ("kind", "source", "target", "how", "path", "lines", "evidence")
    found = [tuple(fact.values[name] for name in names) for fact in facts]
    wanted = [
        (
            *(statement.kind, statement.source or document.name, statement.target, statement.how),
            *(statement.path, [statement.line_start, statement.line_end], statement.evidence),
        )
        for statement in stated
    ]
    assert sorted(found, key=repr) == sorted(wanted, key=repr)
    [unit] = reading.units
    assert text[unit.start : unit.end].strip() == text.strip()


def test_a_text_that_is_no_derived_document_says_so_and_states_nothing() -> None:
    reading = read_document(f"something else{EVIDENCE}a.php:1 x\n  routes_to Y\n")
    assert reading.facts == ()
    assert reading.notes == ("it has no heading",)


COMPUTED = {
    **LARAVEL,
    "routes/web.php": LARAVEL["routes/web.php"]
    + """Route::get(config('shop.path'), fn () => 'computed');
Route::get('/guarded', fn () => 'guarded')->middleware(config('shop.guard'));
""",
    "database/migrations/2024_01_02_000000_alter_computed.php": migration(
        "Schema::table(some_name(), function ($table) { $table->string('note'); });"
    ),
}


def test_a_computed_statement_is_reported_with_its_line_and_what_it_may_concern() -> None:
    found = [(one.path, one.line, one.about) for one in derived(COMPUTED).unresolved]
    assert found == [
        ("routes/web.php", 8, "routes"),
        ("routes/web.php", 9, "route:GET /guarded"),
        ("database/migrations/2024_01_02_000000_alter_computed.php", 6, "tables"),
    ]
    assert not derived(LARAVEL).unresolved
    urls = DJANGO["billing/urls.py"].replace("'bills/<int:pk>/'", "computed()")
    found_in_django = derived({**DJANGO, "billing/urls.py": urls}).unresolved
    assert {(one.path, one.about) for one in found_in_django} == {("billing/urls.py", "routes")}


@given(
    st.text(min_size=1),
    st.integers(1, 9_999),
    st.text(),
    st.sampled_from(["routes", "tables", "route:GET /a", ""]),
)
def test_an_unresolved_statement_is_read_as_it_was_stored(
    path: str, line: int, reason: str, about: str
) -> None:
    one = UnresolvedStatement(path, line, reason, about)
    assert UnresolvedStatement.from_json(json.loads(json.dumps(one.as_json))) == one


def test_a_stored_reason_that_looks_like_a_place_is_none() -> None:
    one = UnresolvedStatement("routes/web.php", 4, "the URI is computed: $x['a:3 b']", "routes")
    assert UnresolvedStatement.from_json(one.as_json).path == "routes/web.php"
    former = "routes/a.php:12 the URI is computed"
    assert UnresolvedStatement.from_json(former).description == former


def test_of_many_unresolved_statements_tables_and_general_ones_are_kept() -> None:
    routes = [
        UnresolvedStatement("web.php", n, "the name is computed", f"route:GET /{n}")
        for n in range(9)
    ]
    any_route = UnresolvedStatement("web.php", 99, "the URI is computed", "routes")
    tables = [UnresolvedStatement("m.php", 1, "the table is computed", "tables")]
    kept = limit_unresolved([*routes, any_route, *tables], 3)
    assert kept[:3] == [*tables, any_route, routes[0]]
    # It is about any route from now on: which ones are left out is not told.
    reason = "the name is computed, and 7 statements after it"
    assert kept[3:] == [UnresolvedStatement("web.php", 1, reason, "routes")]
    assert limit_unresolved([*routes, *tables], 9) == [*tables, *routes]


def test_a_table_between_two_models_is_told_by_its_usual_name() -> None:
    models = """<?php
namespace App\\Models;
use Illuminate\\Database\\Eloquent\\Model;
class Tag extends Model {
    public function posts() { return $this->belongsToMany(Post::class); }
    public function stated() { return $this->belongsToMany(Post::class, 'post_tag'); }
    public function videos() { return $this->morphedByMany(Video::class, 'taggable'); }
    public function missing() { return $this->belongsToMany(Video::class); }
}
"""
    created = migration(
        "Schema::create('post_tag', function ($table) { $table->id(); });\n"
        "Schema::create('taggables', function ($table) { $table->id(); });"
    )
    files = LARAVEL | {"app/Models/Tag.php": models, "database/migrations/2024_b.php": created}
    found = {
        (edge.source, edge.target, edge.how, edge.path)
        for document in derived(files).documents
        for edge in edges(document)
        if edge.kind == "relates_to"
    }
    assert found == {
        ("App\\Models\\Tag::posts", "table:post_tag", "convention", "app/Models/Tag.php"),
        ("App\\Models\\Tag::videos", "table:taggables", "convention", "app/Models/Tag.php"),
    }
