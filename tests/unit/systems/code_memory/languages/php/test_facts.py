"""Facts of PHP: declarations, base classes, and calls with known receivers."""

import pytest

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.languages.php.values import COMPUTED, is_static
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.relations.relations import build_relations

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


def stated(kind: str, symbol: str | None = None) -> list[str]:
    return [
        fact.values["name"]
        for fact in read(TEXT).facts
        if fact.kind == kind and symbol in {None, fact.symbol}
    ]


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


def test_calls_are_told_only_where_the_receiver_is_known() -> None:
    assert stated("calls", "App\\Jobs\\Send::handle") == [
        "App\\Jobs\\Mailer::send",
        "App\\Models\\Line::text",
        "App\\Models\\Invoice::save",
        "other",
        "App\\Jobs\\Send::log",
        "App\\Jobs\\Queueable::log",
        "App\\Jobs\\Job::log",
        "App\\Jobs\\Job::boot",
        "Log::info",
        "App\\helpers\\money",
        "App\\Models\\Invoice::find",
    ]
    assert stated("creates_object") == ["App\\Models\\Invoice"]


def calls(body: str, *, head: str = "") -> set[str]:
    text = f"<?php\nuse App\\Bill; class A extends B {{ {head} function f(Bill $b) {{ {body} }} }}"
    found = [fact for fact in read(text).facts if fact.kind == "calls" and fact.symbol == "A::f"]
    return {fact.values["name"] for fact in found}


@pytest.mark.parametrize(
    "value",
    [
        *("new Bill()", "(new Bill)", "Bill::find(1)", "Bill::where('a', 1)->first()"),
        *("Bill::query()->with('c')->findOrFail($id)", "Bill::create([])"),
    ],
)
def test_what_is_looked_up_by_a_class_is_of_that_class(value: str) -> None:
    assert "App\\Bill::lines" in calls(f"if ($x = {value}) {{ $x->lines()->get(); }}")


@pytest.mark.parametrize(
    "value", ["Bill::all()", "Bill::count()", "Bill::find(1)->more()->first()", "other()->first()"]
)
def test_what_else_a_class_gives_is_not_known(value: str) -> None:
    assert "App\\Bill::lines" not in calls(f"$x = {value}; $x->lines();")


def test_a_method_of_an_object_that_was_just_made_is_called_on_its_class() -> None:
    assert "App\\Bill::send" in calls("(new Bill($b))->send();")


def test_a_method_that_a_class_inherits_may_be_any_parents_or_traits() -> None:
    found = calls("$this->a(); $this->own(); $b->a();", head="use C; function own() {}")
    assert found == {"A::a", "C::a", "B::a", "A::own", "App\\Bill::a"}


def test_what_a_comment_says_of_a_variable_counts_where_its_value_does_not_tell() -> None:
    assert calls("/** @var ?Bill $x */ $x = made(); $x->a();") == {"App\\Bill::a", "made"}
    assert calls("/** @var null|\\Row $x */ foreach ($all as $x) { $x->a(); }") == {"Row::a"}
    assert calls("/** @var Bill $b */ $b = other($b); $b->a();") == {"App\\Bill::a", "other"}
    assert calls("/** @var Bill $x */ $x = new Row; $x->a();") == set()
    both = {"App\\Bill::a", "Row::a", "made"}
    assert calls("/** @var Bill|Row $x */ $x = made(); $x->a();") == both
    assert calls("/** @var array<Bill> $x */ $x = made(); $x->a();") == {"made"}
    assert calls("/** @var string $x */ $x = made(); $x->a();") == {"made"}
    assert calls("/** @var Bill $x */ $x = auth()->user(); $x->a();") == {"auth"}


def test_what_a_type_may_be_is_taken_and_called_each() -> None:
    text = "use App\\{Bill, Row}; class A { function f(Bill|Row|null $x): Row|int { $x->a(); } }"
    facts = read(f"<?php {text}").facts
    assert [f.values["name"] for f in facts if f.kind == "calls"] == ["App\\Bill::a", "App\\Row::a"]
    stated = {(e.kind, e.target) for e in build_relations(facts).edges if e.source == "A::f"}
    assert {("takes", "App\\Bill"), ("takes", "App\\Row"), ("returns", "App\\Row")} <= stated


def test_what_an_own_method_returns_is_known() -> None:
    head = "function one(): ?Bill {} function any(): Bill|int {} function own(): static {} "
    for named in ("$this->one()", "self::any()", "$this->ANY()"):
        assert "App\\Bill::a" in calls(f"$x = {named}; $x->a();", head=head)
        assert "App\\Bill::a" in calls(f"{named}->a();", head=head)
    assert "A::a" in calls("$x = $this->own(); $x->a();", head=head)
    assert calls("$x = $other->one(); $x->a();", head=head) == set()


def test_what_the_container_is_asked_for_is_known() -> None:
    for asked in ("app(Bill::class)", "resolve(Bill::class)", "App::make(Bill::class)"):
        assert "App\\Bill::a" in calls(f"$x = {asked}; $x->a();")
        assert "App\\Bill::a" in calls(f"{asked}->a();")
    assert "App\\Bill::a" in calls("app()->make(Bill::class)->a();")
    assert calls("$x->make(Bill::class)->a(); app('bill')->a(); app($x)->a();") == {"app"}
    assert calls("app(Bill::TABLE)->a();") == {"app"}


def test_the_parameters_of_closures_are_taken_by_the_method_around() -> None:
    text = (
        "use App\\{Bill, Row}; class A { function f() { $x->each(function (?Bill $b, int $i) {}, "
    )
    found = read(f"<?php {text} fn (Row $r, $any) => $r); }} }}").facts
    taken = [(one.symbol, one.values["name"]) for one in found if one.kind == "takes"]
    assert taken == [("A::f", "App\\Bill"), ("A::f", "App\\Row")]


def test_declarations_tell_types_and_visibility() -> None:
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
    source = PhpSource(
        "<?php namespace A { use X\\Y; class B extends Y {} } namespace C { class B extends Y {} }"
    )
    assert [(class_.name, class_.parents) for class_ in source.classes] == [
        ("A\\B", ("X\\Y",)),
        ("C\\B", ("C\\Y",)),
    ]
