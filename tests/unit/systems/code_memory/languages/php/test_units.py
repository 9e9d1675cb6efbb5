"""Units of PHP: which definitions become separate chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.symbols.model import Unit

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


def units(text: str) -> list[tuple[str, str, str]]:
    return [(unit.role, unit.symbol, text[unit.start : unit.end]) for unit in read(text).units]


def covers(text: str, found: tuple[Unit, ...]) -> bool:
    visible = "".join("".join(text[unit.start : unit.end].split()) for unit in found)
    apart = all(a.end <= b.start for a, b in pairwise(found))
    return apart and visible == "".join(text.split())


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
    assert found[0].signature == (
        "final class InvoiceController extends Controller implements Countable"
    )
    assert found[1].signature == (
        "public function show(Invoice $invoice, int $page = 1): InvoiceResource"
    )
    assert [CLASS[:cut].rsplit("\n", 1)[1].strip() for cut in found[1].cuts] == [
        "$this->authorize('view', $invoice);",
        "return new InvoiceResource($invoice);",
    ]


def test_a_method_that_returns_a_relation_is_one() -> None:
    text = """<?php
class Invoice extends Model {
    public function lines() { return $this->hasMany(Line::class)->orderBy('n'); }
    public function total() { return $this->lines()->sum('n'); }
    public function of(User $u) { return $this->belongsTo(User::class); }
}"""
    assert [(role, symbol) for role, symbol, _ in units(text)] == [
        ("class", "Invoice"),
        ("relation", "Invoice::lines"),
        ("method", "Invoice::total"),
        ("method", "Invoice::of"),
    ]


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
    found = units(text)
    assert [(role, symbol) for role, symbol, _ in found if role == "schema"] == [
        ("schema", "invoices"),
        ("schema", "lines"),
    ]
    [down] = [unit for unit in read(text).units if unit.symbol.endswith("::down")]
    assert not down.alone
    assert covers(text, read(text).units)


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
    assert [(unit.role, unit.alone) for unit in found] == [
        ("route", False),
        ("group", True),
        ("route", False),
    ]
    assert len(found[1].cuts) == 3


def test_each_key_of_a_configuration_is_a_unit() -> None:
    text = """<?php
return [
    // Who.
    'name' => env('NAME', 'x'),
    'mail' => ['a' => 1],
];"""
    found = [(role, symbol, piece) for role, symbol, piece in units(text) if role == "key"]
    assert found == [
        ("key", "name", "// Who.\n    'name' => env('NAME', 'x'),"),
        ("key", "mail", "'mail' => ['a' => 1],"),
    ]


def test_functions_and_what_is_left_between_them() -> None:
    text = "<?php\nnamespace A;\n\n$x = 1;\n\n/** Adds. */\nfunction add($a) { return $a; }\n"
    assert [(role, symbol) for role, symbol, _ in units(text)] == [
        ("rest", ""),
        ("rest", ""),
        ("function", "A\\add"),
    ]


_PIECES = st.sampled_from(
    (
        *("<?php ", "class A {", "}", "function f() {", "use B;", "/** d */", "// c\n", "\n\n"),
        *("é😀", "'", "Route::get('a', 'b');", "return [", "'k' => 1,", "];", "<<<X\n", "#[A]"),
        *("?>", "<b>", "\r\n"),
    )
)


@given(st.lists(_PIECES, max_size=25).map("".join))
def test_units_cover_any_text_once(text: str) -> None:
    assert covers(text, read(text).units)


def test_what_is_no_php_says_so() -> None:
    assert read("<?php class { function (((").notes
    assert not read("<?php\nclass A {}\n").notes
