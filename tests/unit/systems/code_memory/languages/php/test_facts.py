"""Facts of PHP: units, values, and what flows where."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, is_static
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.relations.relations import build_relations
from tests.unit.systems.code_memory.languages.readers import assert_units_cover, named

TEXT = """<?php
namespace App\\Jobs;
use App\\Models\\{Invoice, Line as Row};
use Illuminate\\Contracts\\Queue\\ShouldQueue;
use function App\\helpers\\money;

abstract class Send extends Job implements ShouldQueue, \\Countable
{
    use Queueable;

    public function __construct(private readonly Mailer $mailer, protected ?Invoice $of = null) {}

    public function handle(Row $row, $other): ?Invoice
    {
        $this->mailer->send($row->text());
        $made = new Invoice();
        $made->save();
        $changed = new Invoice();
        $changed = other();
        $changed->save2();
        $other->unknown();
        self::log();
        parent::boot();
        \\Log::info(money(1));
        return Invoice::find(1);
    }
}
"""


def stated(kind: str, *symbols: str) -> list[str]:
    facts = [fact for fact in read(TEXT).facts if fact.kind == kind]
    return [fact.values["name"] for fact in facts if not symbols or fact.symbol in symbols]


def test_ancestry_and_imports_are_fully_qualified() -> None:
    assert stated("extends") == ["App\\Jobs\\Job"]
    assert stated("implements") == ["Illuminate\\Contracts\\Queue\\ShouldQueue", "Countable"]
    assert stated("uses_trait") == ["App\\Jobs\\Queueable"]
    assert stated("imports") == [
        "App\\Models\\Invoice",
        "App\\Models\\Line",
        "Illuminate\\Contracts\\Queue\\ShouldQueue",
        "App\\helpers\\money",
    ]


def test_calls_are_stated_only_where_the_receiver_is_known() -> None:
    assert stated("calls", "App\\Jobs\\Send::handle") == [
        *("App\\Jobs\\Mailer::send", "App\\Models\\Line::text", "App\\Models\\Invoice::save"),
        *("other", "App\\Jobs\\Send::log", "App\\Jobs\\Queueable::log", "App\\Jobs\\Job::log"),
        *("App\\Jobs\\Job::boot", "Log::info", "App\\helpers\\money"),
        "App\\Models\\Invoice::find",
    ]
    assert stated("creates_object") == ["App\\Models\\Invoice"]


def calls(body: str, *, head: str = "") -> set[str]:
    text = f"<?php\nuse App\\Bill; class A extends B {{ {head} function f(Bill $b) {{ {body} }} }}"
    return {name for symbol, name in named(read(text), "calls") if symbol == "A::f"}


@pytest.mark.parametrize(
    "value",
    [
        *("new Bill()", "(new Bill)", "Bill::find(1)", "Bill::where('a', 1)->first()"),
        *("Bill::query()->with('c')->findOrFail($id)", "Bill::create([])"),
    ],
)
def test_an_object_that_a_class_looks_up_is_of_that_class(value: str) -> None:
    assert "App\\Bill::lines" in calls(f"if ($x = {value}) {{ $x->lines()->get(); }}")


@pytest.mark.parametrize(
    "value", ["Bill::all()", "Bill::count()", "Bill::find(1)->more()->first()", "other()->first()"]
)
def test_other_results_of_a_class_are_unknown(value: str) -> None:
    assert "App\\Bill::lines" not in calls(f"$x = {value}; $x->lines();")


def test_an_inherited_method_may_be_of_any_parent_or_trait() -> None:
    found = calls("$this->a(); $this->own(); $b->a();", head="use C; function own() {}")
    assert found == {"A::a", "C::a", "B::a", "A::own", "App\\Bill::a"}
    assert "App\\Bill::send" in calls("(new Bill($b))->send();"), "an object that was just made"


def test_a_comment_types_a_variable_whose_value_is_unknown() -> None:
    assert calls("/** @var ?Bill $x */ $x = made(); $x->a();") == {"App\\Bill::a", "made"}
    assert calls("/** @var null|\\Row $x */ foreach ($all as $x) { $x->a(); }") == {"Row::a"}
    assert calls("/** @var Bill $b */ $b = other($b); $b->a();") == {"App\\Bill::a", "other"}
    assert calls("/** @var Bill $x */ $x = new Row; $x->a();") == set()
    both = {"App\\Bill::a", "Row::a", "made"}
    assert calls("/** @var Bill|Row $x */ $x = made(); $x->a();") == both
    assert calls("/** @var array<Bill> $x */ $x = made(); $x->a();") == {"made"}
    assert calls("/** @var string $x */ $x = made(); $x->a();") == {"made"}
    assert calls("/** @var Bill $x */ $x = auth()->user(); $x->a();") == {"auth"}


def test_each_type_of_a_union_is_taken_and_called() -> None:
    text = "use App\\{Bill, Row}; class A { function f(Bill|Row|null $x): Row|int { $x->a(); } }"
    facts = read(f"<?php {text}").facts
    assert [f.values["name"] for f in facts if f.kind == "calls"] == ["App\\Bill::a", "App\\Row::a"]
    stated = {(e.kind, e.target) for e in build_relations(facts).edges if e.source == "A::f"}
    assert {("takes", "App\\Bill"), ("takes", "App\\Row"), ("returns", "App\\Row")} <= stated


def test_the_returned_type_of_an_own_method_is_known() -> None:
    head = "function one(): ?Bill {} function any(): Bill|int {} function own(): static {} "
    for call in ("$this->one()", "self::any()", "$this->ANY()"):
        assert "App\\Bill::a" in calls(f"$x = {call}; $x->a();", head=head)
        assert "App\\Bill::a" in calls(f"{call}->a();", head=head)
    assert "A::a" in calls("$x = $this->own(); $x->a();", head=head)
    assert calls("$x = $other->one(); $x->a();", head=head) == set()


def test_an_object_from_the_container_is_known() -> None:
    for asked in ("app(Bill::class)", "resolve(Bill::class)", "App::make(Bill::class)"):
        assert "App\\Bill::a" in calls(f"$x = {asked}; $x->a();")
        assert "App\\Bill::a" in calls(f"{asked}->a();")
    assert "App\\Bill::a" in calls("app()->make(Bill::class)->a();")
    assert calls("$x->make(Bill::class)->a(); app('bill')->a(); app($x)->a();") == {"app"}
    assert calls("app(Bill::TABLE)->a();") == {"app"}


def test_the_parameters_of_closures_are_taken_by_the_method_around() -> None:
    body = "$x->each(function (?Bill $b, int $i) {}, fn (Row $r, $any) => $r);"
    found = read(f"<?php use App\\{{Bill, Row}}; class A {{ function f() {{ {body} }} }}").facts
    taken = [(one.symbol, one.values["name"]) for one in found if one.kind == "takes"]
    assert taken == [("A::f", "App\\Bill"), ("A::f", "App\\Row")]


def test_declarations_state_types_and_visibility() -> None:
    declared = {f.symbol: f.values for f in read(TEXT).facts if f.kind == "declares"}
    assert declared["App\\Jobs\\Send"]["abstract"] is True
    handle = declared["App\\Jobs\\Send::handle"]
    assert handle["parameters"] == [
        {"name": "row", "type": "App\\Models\\Line"},
        {"name": "other", "type": ""},
    ]
    assert handle["returns"] == "App\\Models\\Invoice"
    assert handle["public"] is True


VALUES = {
    "'a\\\\b\\'c'": "a\\b'c",
    '"a\\n\\x41\\u{1F600}"': "a\nA😀",
    "'a' . 'b' . 1": "ab1",
    "[1, 'x' => [true, null], -2.5]": {"0": 1, "x": [True, None], "1": -2.5},
    "array('a', 'b')": ["a", "b"],
    "0x1F + 1": COMPUTED,
    "0x1F": 31,
    "017": 15,
    "Foo::class": "N\\Foo",
    "self::TABLE": "rows",
    "'x' . self::TABLE": "xrows",
    "Other::TABLE": COMPUTED,
    '"a {$b}"': COMPUTED,
    "$b": COMPUTED,
    "config('x')": COMPUTED,
    "[...$a]": COMPUTED,
}


@pytest.mark.parametrize(("written", "value"), VALUES.items(), ids=list(VALUES))
def test_values_are_what_the_text_states(written: str, value: object) -> None:
    text = f"<?php namespace N; class A {{ const TABLE = 'rows'; public $p = {written}; }}"
    source = PhpSource(text)
    [one] = source.classes
    held = one.find_property("p")
    assert held is not None
    found = source.read_value(held.value)
    assert found is COMPUTED if value is COMPUTED else found == value


def test_a_value_with_a_computed_part_is_not_static() -> None:
    source = PhpSource("<?php class A { public $p = ['a' => [$x]]; public $q = ['a' => [1]]; }")
    [one] = source.classes
    assert [is_static(source.read_value(held.value)) for held in one.properties] == [False, True]


@pytest.mark.parametrize(
    "text",
    [
        "<?php return " + "[" * 50_000,
        "<?php $x = " + "1 . " * 50_000 + "1;",
        "<?php " + "(" * 50_000,
    ],
    ids=["arrays", "concatenation", "brackets"],
)
def test_depth_of_nesting_stops_nothing(text: str) -> None:
    assert read(text).units


def test_namespaces_of_one_file_keep_their_names_apart() -> None:
    text = "namespace A { use X\\Y; class B extends Y {} } namespace C { class B extends Y {} }"
    found = [(one.name, one.parents) for one in PhpSource(f"<?php {text}").classes]
    assert found == [("A\\B", ("X\\Y",)), ("C\\B", ("C\\Y",))]


TEAM = "App\\Models\\Team"


def origins_in(
    body: str, kind: str = "goes_through", *, head: str = "function act()"
) -> list[object]:
    text = (
        "<?php\nnamespace App;\nuse App\\Models\\Team;\nuse Illuminate\\Support\\Facades\\Auth;\n"
        "use Illuminate\\Http\\Request;\n"
        f"class Panel {{ public Team $team; private $held;\n{head} {{ {body} }}\n"
        "function other() { $this->held = Team::find(1); } }"
    )
    symbol = "App\\Panel::act"
    facts = [fact for fact in read(text).facts if fact.kind == kind and fact.symbol == symbol]
    return [fact.values["of"] for fact in facts]


@pytest.mark.parametrize(
    ("body", "origins"),
    [
        ("team()->servers()->first()->stop();", ["team()->servers()->first()->stop()"]),
        ("$t = currentTeam(); $t?->stop();", ["currentTeam()->stop()"]),
        ("$this->team->servers()->act();", [f"{TEAM}->servers()->act()"]),
        ("$this->held->servers()->act();", [f"{TEAM}::find()->servers()->act()"]),
        ("foreach (all() as $k => $one) { $one->stop(); }", ["all()->[]->stop()"]),
        ("all()[0]->stop();", ["all()->[]->stop()"]),
        ("all()->each(function ($one) { $one->stop(); });", ["all()->[]->stop()"]),
        ("Auth::user()->teams()->first();", ["@user->teams()->first()"]),
        ("auth()->user()->teams();", ["@user->teams()"]),
        ("request()->user()->teams();", ["@user->teams()"]),
        ("$t = $a ? one() : two(); $t->stop();", ["one()->stop()", "two()->stop()"]),
        ("$t = one() ?? abort(404); $t->stop();", ["one()->stop()"]),
        ("$t = null; $t = one(); $t->stop();", ["one()->stop()"]),
        ("$t = match (1) { 1 => one(), default => throw new E }; $t->stop();", ["one()->stop()"]),
        ("$q = one(); $q = $q->where(); $q->stop();", ["one()->stop()"]),
        ("optional(one())->stop();", ["one()->stop()"]),
        ("app(Team::class)->servers()->act();", [f"{TEAM}->servers()->act()"]),
        ("$this->team->owner->stop();", [f"{TEAM}->owner->stop()"]),
    ],
)
def test_a_chain_of_calls_has_the_origin_of_its_start(body: str, origins: list[str]) -> None:
    assert origins in origins_in(body)


@pytest.mark.parametrize(
    "body",
    [
        *("$t = $unknown; $t->stop();", "$t = one(); $t = $unknown; $t->stop();"),
        *("[$t] = one(); $t->stop();", "$t = [one()]; $t->stop();"),
        "all()->whereHas('x', function ($q) { $q->stop(); });",
    ],
)
def test_a_computed_object_has_no_origin(body: str) -> None:
    assert not [one for one in origins_in(body) if "stop()" in str(one)]


def test_calls_that_their_own_file_resolves_have_no_origin() -> None:
    assert origins_in("Team::where('a', 1)->orderBy('b')->get(); $this->team->save();") == []


@pytest.mark.parametrize(
    ("head", "body", "returned"),
    [
        ("function act()", "return Auth::user()?->currentTeam() ?? null;", "@user->currentTeam()"),
        ("function act()", "if (x()) { return null; } return Team::find(1);", f"{TEAM}::find()"),
        ("/** @return Team|null */\nfunction act()", "return $x;", TEAM),
        ("/** @return Team[] */\nfunction act()", "return $x;", f"{TEAM}::all()"),
        ("/** @param Team $t */\nfunction act($t)", "return $t->owner();", f"{TEAM}->owner()"),
    ],
)
def test_the_untyped_result_of_a_method_is_known(head: str, body: str, returned: str) -> None:
    assert origins_in(body, "gives", head=head) == [[returned]]


def test_a_method_that_returns_a_computed_value_has_no_origin() -> None:
    assert origins_in("if (1) { return one(); } return $x;", "gives") == []
    assert origins_in("return one();", "gives", head="function act(): Team") == []
    assert origins_in("$f = function () { return one(); }; $f();", "gives") == []


@pytest.mark.parametrize(
    "body",
    [
        "$a" + "->b()" * 20_000 + ";",
        "one()" + "->b" * 20_000 + "->c();",
        "$a = " + "one(" * 5_000 + ")" * 5_000 + "; $a->b();",
        "$a = " + "$b ?? " * 5_000 + "$b; $a->x();",
        "".join(f"$v{n} = $v{n + 1} ?? $v{n + 1} ?? $v{n + 2};" for n in range(3_000))
        + "$v0->x();",
        "$a = one(); " + "$a = $a->b();" * 5_000 + "$a->x();",
        "$a = one();" + "$a->b()->c();" * 5_000,
    ],
    ids=["calls", "properties", "arguments", "choices", "variables", "again", "many"],
)
def test_hostile_bodies_are_read_in_time(body: str) -> None:
    began = time.process_time()
    origins_in(body)
    assert time.process_time() - began < 20


CLASS = """<?php

namespace App\\Http\\Controllers;

use App\\Models\\Invoice;

/** Invoices over HTTP. */
#[Authorized]
final class InvoiceController extends Controller implements Countable
{
    use AuthorizesRequests;

    protected $limit = 10;

    /**
     * Shows one.
     */
    #[Pure]
    public function show(Invoice $invoice, int $page = 1): InvoiceResource
    {
        $this->authorize('view', $invoice);
        return new InvoiceResource($invoice);
    }

    private function hidden() { return 1; } // ends here

    public function count(): int { return 2; }
}
"""


def roles(text: str) -> list[str]:
    return [f"{unit.role} {unit.symbol}" for unit in read(text).units]


def test_a_class_is_its_head_and_each_method() -> None:
    found = read(CLASS).units
    name = "App\\Http\\Controllers\\InvoiceController"
    assert [(unit.role, unit.symbol, unit.alone) for unit in found] == [
        ("class", name, True),
        ("method", f"{name}::show", True),
        ("method", f"{name}::hidden", False),
        ("method", f"{name}::count", True),
    ]
    head, show, hidden, count = (CLASS[unit.start : unit.end] for unit in found)
    assert head.startswith("<?php\n\nnamespace App")
    assert head.endswith("$limit = 10;")
    assert show.startswith("/**\n     * Shows one.")
    assert show.endswith("($invoice);\n    }")
    assert hidden.endswith("// ends here")
    assert count.endswith("}\n}")
    assert [unit.signature for unit in found[:2]] == [
        "final class InvoiceController extends Controller implements Countable",
        "public function show(Invoice $invoice, int $page = 1): InvoiceResource",
    ]
    assert [CLASS[:cut].rsplit("\n", 1)[1].strip() for cut in found[1].cuts] == [
        "$this->authorize('view', $invoice);",
        "return new InvoiceResource($invoice);",
    ]


def test_a_method_that_returns_a_relation_has_its_own_role() -> None:
    text = """<?php
class Invoice extends Model {
    public function lines() { return $this->hasMany(Line::class)->orderBy('n'); }
    public function total() { return $this->lines()->sum('n'); }
    public function of(User $u) { return $this->belongsTo(User::class); }
}"""
    members = ["relation Invoice::lines", "method Invoice::total", "method Invoice::of"]
    assert roles(text) == ["class Invoice", *members]


def test_each_statement_of_a_migration_is_a_unit_named_for_its_table() -> None:
    text = """<?php
use Illuminate\\Database\\Migrations\\Migration;
return new class extends Migration {
    public function up(): void
    {
        Schema::create('invoices', function (Blueprint $table) {
            $table->id();
        });
        Schema::connection('x')->table("lines", fn ($t) => $t->softDeletes());
        DB::statement('x');
    }

    public function down(): void
    {
        Schema::drop('invoices');
    }
};
"""
    schema = [unit for unit in roles(text) if unit.startswith("schema")]
    assert schema == ["schema invoices", "schema lines"]
    [down] = [unit for unit in read(text).units if unit.symbol.endswith("::down")]
    assert not down.alone
    assert_units_cover(text, read(text))


def test_groups_of_routes_stand_alone_and_other_routes_are_joined() -> None:
    text = """<?php
use Illuminate\\Support\\Facades\\Route;
Route::get('/', Home::class)->name('home');
Route::middleware('auth')->prefix('admin')->group(function () {
    Route::get('users', [UserController::class, 'index']);
    Route::resource('roles', RoleController::class);
});
$router->post('x', 'X@y');
"""
    found = [unit for unit in read(text).units if unit.role != "rest"]
    alone = [(unit.role, unit.alone) for unit in found]
    assert alone == [("route", False), ("group", True), ("route", False)]
    assert len(found[1].cuts) == 3


def test_each_key_of_a_configuration_is_a_unit() -> None:
    text = """<?php
return [
    // Who.
    'name' => env('NAME', 'x'),
    'mail' => ['a' => 1],
];"""
    keys = [unit for unit in read(text).units if unit.role == "key"]
    assert {unit.symbol: text[unit.start : unit.end] for unit in keys} == {
        "name": "// Who.\n    'name' => env('NAME', 'x'),",
        "mail": "'mail' => ['a' => 1],",
    }


def test_text_between_functions_is_a_unit() -> None:
    text = "<?php\nnamespace A;\n\n$x = 1;\n\n/** Adds. */\nfunction add($a) { return $a; }\n"
    assert roles(text) == ["rest ", "rest ", "function A\\add"]


_PIECES = st.sampled_from(
    (
        *("<?php ", "class A {", "}", "function f() {", "use B;", "/** d */", "// c\n", "\n\n"),
        *("é😀", "'", "Route::get('a', 'b');", "return [", "'k' => 1,", "];", "<<<X\n", "#[A]"),
        *("?>", "<b>", "\r\n"),
    )
)


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_units_cover_any_text_once(text: str) -> None:
    assert_units_cover(text, read(text))


def test_text_that_is_not_php_has_a_note() -> None:
    assert read("<?php class { function (((").notes
    assert not read("<?php\nclass A {}\n").notes
