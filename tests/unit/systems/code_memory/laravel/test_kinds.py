"""Kinds of Laravel's classes, and the facts from which they follow."""

import pytest

from rag_assets.systems.code_memory.derived.documents import find_source_types
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.source_types import get_source_type

MODEL = "Illuminate\\Database\\Eloquent\\Model"


def repository(**texts: str) -> list[FileFacts]:
    return [
        FileFacts(path.replace("__", "/") + ".php", "php", read(f"<?php {text}").facts)
        for path, text in texts.items()
    ]


def kinds(**texts: str) -> dict[str, str]:
    return {name: kind for (_, name), kind in find_source_types(repository(**texts)).items()}


def facts(text: str, kind: str) -> list[dict[str, str]]:
    return [dict(fact.values) for fact in read(f"<?php {text}").facts if fact.kind == kind]


def test_ancestry_through_own_classes_decides_before_the_place() -> None:
    assert kinds(
        app__Services__Invoice="namespace A; class Invoice extends Base {}",
        app__Base=f"namespace A; abstract class Base extends \\{MODEL} {{}}",
        app__Http__Controllers__Odd="namespace A; class Odd extends Invoice {}",
    ) == {"A\\Invoice": "model", "A\\Base": "model", "A\\Odd": "model"}


def test_a_class_without_a_known_parent_has_the_kind_of_its_folder() -> None:
    assert kinds(
        app__Http__Requests__StoreInvoice="namespace A; class StoreInvoice extends \\Shop\\Form {}",
        app__Http__Resources__Invoice="namespace A; class Invoice extends \\Spatie\\Data {}",
        Modules__Shop__Http__Resources__V2__Line="namespace B; class Line {}",
        app__Http__Middleware__Company="namespace A; class Company {}",
        app__Requests__Other="namespace A; class Other {}",
        app__Http__Requests__Odd=f"namespace A; class Odd extends \\{MODEL} {{}}",
        app__Http__Resources__Mail="namespace A; class M extends \\Illuminate\\Mail\\Mailable {}",
    ) == {
        "A\\StoreInvoice": "request",
        "A\\Invoice": "resource",
        "B\\Line": "resource",
        "A\\Company": "middleware",
        "A\\Odd": "model",
    }


def test_only_traits_beside_controllers_are_controllers() -> None:
    assert kinds(
        app__Http__Controllers__Admin__Reports="namespace A; trait Reports {}",
        app__Http__Requests__Rules="namespace A; trait Rules {}",
        app__Jobs__Retries="namespace A; trait Retries {}",
    ) == {"A\\Reports": "controller"}


def test_circles_of_ancestors_end() -> None:
    assert kinds(a="class A extends B {}", app__Jobs__B="class B extends A {}") == {"B": "job"}


def test_the_use_of_a_class_decides_its_kind() -> None:
    found = kinds(
        p="""class P extends \\Illuminate\\Foundation\\Support\\Providers\\EventServiceProvider {
            protected $listen = [Paid::class => [Notify::class, 'Log@handle']];
            protected $policies = [Invoice::class => Guard::class];
            function boot() {
                Invoice::observe(Watch::class);
                $this->app->singleton(Rates::class, fn () => new Bank());
                $this->app->bind(Port::class, Adapter::class);
            }
        }""",
        k="class K { protected $routeMiddleware = ['co' => \\A\\Company::class]; }",
        x="class Paid {} class Notify {} class Log {} class Guard {} class Rates {}",
        w="class Adapter {}",
        y="namespace A; class Company {}",
        z="class Ship { function handle() { Told::dispatch(); } } class Told {}"
        " class Start { function go() { dispatch(new Ship()); } }",
    )
    assert found == {
        "Paid": "event", "Notify": "listener", "Log": "listener", "Guard": "policy",
        "Rates": "service", "Adapter": "service", "A\\Company": "middleware", "Ship": "job",
        "Told": "event",
    }  # fmt: skip


def test_a_queued_class_is_a_job_unless_it_is_something_else() -> None:
    queued = "implements \\Illuminate\\Contracts\\Queue\\ShouldQueue"
    assert kinds(
        a=f"class A {queued} {{}}",
        app__Listeners__B=f"class B {queued} {{}}",
        c=f"class C extends \\Illuminate\\Mail\\Mailable {queued} {{}}",
        d="class D extends A {}",
    ) == {"A": "job", "B": "listener", "D": "job"}


def test_anonymous_migrations_of_many_files_are_all_migrations() -> None:
    text = "return new class extends \\Illuminate\\Database\\Migrations\\Migration {};"
    found = find_source_types(repository(a=text, b=text))
    kinds_by_path = {path: kind for (path, _), kind in found.items()}
    assert kinds_by_path == {"a.php": "migration", "b.php": "migration"}


BUS, AUTH, GATE, DB = (
    f"use Illuminate\\Support\\Facades\\{name}; " for name in ("Bus", "Auth", "Gate", "DB")
)
STATEMENTS = {
    "event": ("event(new Paid($x));", "dispatches", [{"name": "Paid"}]),
    "static": ("Ship::dispatch($x)->onQueue('q');", "dispatches", [{"name": "Ship"}]),
    "given": (
        "event(new Paid($user = (new Register)->create(), new Sum(1)));",
        "dispatches",
        [{"name": "Paid"}],
    ),
    "chained": ("dispatch((new Ship(new Box))->onQueue('q'));", "dispatches", [{"name": "Ship"}]),
    "mapped": (
        BUS + "Bus::batch($all->map(fn ($x) => new Ship($x)));",
        "dispatches",
        [{"name": "Ship"}],
    ),
    "bus": (
        BUS + "Bus::chain([new A, new B])->dispatch();",
        "dispatches",
        [{"name": "A"}, {"name": "B"}],
    ),
    "table": (DB + "DB::table('lines as l')->get();", "queries_table", [{"table": "lines"}]),
    "sql": (
        "\\DB::select('select * from `a` join b on 1'); DB::table($t);",
        "queries_table",
        [{"table": "a"}, {"table": "b"}],
    ),
    "config": ("$x = config('mail.from', 'x');", "configured_by", [{"key": "mail.from"}]),
}


@pytest.mark.parametrize(("text", "kind", "stated"), STATEMENTS.values(), ids=list(STATEMENTS))
def test_a_statement_states_its_target(text: str, kind: str, stated: list[dict[str, str]]) -> None:
    assert facts(text, kind) == stated


AUTHORIZED = {
    "of a class in a list": (
        "$this->authorize('create', [Invoice::class, $c]);",
        [("create", "Invoice")],
    ),
    "of a parameter": (
        "class A { function f(Invoice $a) { $this->authorize('view', $a); } }",
        [("view", "Invoice")],
    ),
    "of what was looked up": (
        "class A { function f() { if ($a = Invoice::find(1)) { $this->authorize($a); } } }",
        [("", "Invoice")],
    ),
    "of what is not known": (
        "class A { function f($a) { $this->authorize($a); $this->authorize('view', $a); } }",
        [("view", "")],
    ),
    "of a class alone": (
        "namespace A; class B { function show() { $this->authorize(\\M\\Invoice::class); } }",
        [("", "M\\Invoice")],
    ),
    "of the first of a list": (
        "class A { function f(Invoice $a, Line $b) { $this->authorize('add', [$a, $b]); } }",
        [("add", "Invoice")],
    ),
    "for somebody": (
        "class A { function f(Invoice $a, $u) { $this->authorizeForUser($u, 'view', $a); } }",
        [("view", "Invoice")],
    ),
    "a user who can": (
        "class A { function f(User $u, Invoice $a) { return $u->can('own', $a); } }",
        [("own", "Invoice")],
    ),
    "whoever is signed in": (
        AUTH + "class A { function f(Invoice $a) { Auth::user()->cannot('own', $a); } }",
        [("own", "Invoice")],
    ),
    "a gate for somebody": (
        GATE + "class A { function f(Invoice $a) { Gate::forUser($u)->any(['own', 'see'], $a); } }",
        [("own", "Invoice"), ("see", "Invoice")],
    ),
    "gate": (GATE + "Gate::allows('see');", [("see", "")]),
}


@pytest.mark.parametrize(("text", "asked"), AUTHORIZED.values(), ids=list(AUTHORIZED))
def test_a_check_of_an_ability_states_its_model(text: str, asked: list[tuple[str, str]]) -> None:
    found = facts(text, "authorizes")
    assert found == [{"ability": ability, "model": model} for ability, model in asked]


def test_a_fact_names_the_innermost_definition_that_it_stands_in() -> None:
    fires = "event(new C());"
    text = f"class A {{ function b() {{ {fires} }} }} function d() {{ {fires} }} {fires}"
    found = [fact.symbol for fact in read(f"<?php {text}").facts if fact.kind == "dispatches"]
    assert found == ["A::b", "d", ""]


CONTROLLER, JOB = {"A\\B": "controller"}, {"": "job"}
TYPES = {
    "method of a controller": ("method", "A\\B::c", CONTROLLER, "code", "controller_method"),
    "head of a controller": ("class", "A\\B", CONTROLLER, "code", "controller"),
    "relation of a model": ("relation", "M::lines", {"M": "model"}, "code", "model_relation"),
    "relation of a trait": ("relation", "T::lines", {}, "code", "code"),
    "method of a model": ("method", "M::total", {"M": "model"}, "code", "model"),
    "statement of a migration": ("schema", "invoices", {}, "migration", "migration"),
    "group of routes": ("group", "", {}, "code", "route"),
    "key of a configuration": ("key", "mail", {}, "config", "config"),
    "key elsewhere": ("key", "mail", {}, "file", "code"),
    "section of a decision": ("section", "", {}, "adr", "adr"),
    "section elsewhere": ("section", "", {}, "file", "doc"),
    "function": ("function", "f", {}, "file", "code"),
    "operation": ("operation", "GET /x", {}, "doc", "api_endpoint"),
    "what is left of a file": ("rest", "", JOB, "code", "job"),
}


@pytest.mark.parametrize("case", TYPES.values(), ids=list(TYPES))
def test_a_chunk_has_the_type_of_its_definition(
    case: tuple[str, str, dict[str, str], str, str],
) -> None:
    role, symbol, known, place, expected = case
    assert get_source_type(role, symbol, known, place) == expected
