"""Relations from one file's facts, before any name is resolved."""

import pytest

from rag_assets.ingest.chunking.model import Fact
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import Edge, build_relations
from rag_assets.systems.code_memory.symbols.names import get_short_name

CONTROLLER = """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Invoice;
class InvoiceController extends Controller {
    public function store(StoreInvoice $request, int $n): ?InvoiceResource {
        $invoice = Invoice::create($request->validated());
        event(new InvoiceStored($invoice));
        DB::table('audit')->insert([]);
        return new InvoiceResource($invoice);
    }
}
"""
NAMESPACE = "App\\Http\\Controllers\\"
STORE = f"{NAMESPACE}InvoiceController::store"


def edges(text: str = CONTROLLER) -> set[tuple[str, str, str]]:
    return {(e.kind, e.source, e.target) for e in build_relations(read(text).facts).edges}


def test_edges_state_the_relations_of_a_file() -> None:
    assert edges() == {
        ("imports", "", "App\\Models\\Invoice"),
        ("extends", f"{NAMESPACE}InvoiceController", f"{NAMESPACE}Controller"),
        ("member_of", STORE, f"{NAMESPACE}InvoiceController"),
        ("takes", STORE, f"{NAMESPACE}StoreInvoice"),
        ("returns", STORE, f"{NAMESPACE}InvoiceResource"),
        ("calls", STORE, "App\\Models\\Invoice::create"),
        ("touches", STORE, "App\\Models\\Invoice"),
        ("calls", STORE, f"{NAMESPACE}StoreInvoice::validated"),
        ("touches", STORE, f"{NAMESPACE}StoreInvoice"),
        ("calls", STORE, "event"),
        ("dispatches", STORE, f"{NAMESPACE}InvoiceStored"),
        ("makes", STORE, f"{NAMESPACE}InvoiceStored"),
        ("calls", STORE, f"{NAMESPACE}DB::table"),
        ("touches", STORE, f"{NAMESPACE}DB"),
        ("makes", STORE, f"{NAMESPACE}InvoiceResource"),
    }


def test_each_edge_is_stated_once_with_its_first_evidence() -> None:
    facts = [
        Fact("calls", 5, 9, "A::b", {"name": "C::d"}, 2, 2, "C::d()"),
        Fact("calls", 1, 4, "A::b", {"name": "C::d"}, 7, 8, "C::d(1)"),
    ]
    assert build_relations(facts).edges == (
        Edge("calls", "A::b", "C::d", "stated", 1.0, 2, 2, "C::d()"),
        Edge("touches", "A::b", "C", "stated", 1.0, 2, 2, "C::d()"),
    )


def test_symbols_have_their_lines_and_what_people_call_them() -> None:
    facts = [Fact("declares", 0, 9, STORE, {"role": "method", "public": True}, 5, 10)]
    [symbol] = build_relations(facts).symbols
    assert (symbol.name, symbol.role, symbol.public) == (STORE, "method", True)
    assert (symbol.line_start, symbol.line_end) == (5, 10)
    assert symbol.short == "invoicecontroller.store"


SHORT = {
    "App\\Models\\Invoice": "invoice",
    "App\\Models\\Invoice::lines": "invoice.lines",
    "billing.models.Invoice.total": "invoice.total",
    "billing.models.total": "total",
    "shop::cart::Cart::add": "cart.add",
    "InvoiceController": "invoicecontroller",
    "main": "main",
}


@pytest.mark.parametrize(("name", "short"), SHORT.items(), ids=list(SHORT))
def test_a_short_name_has_no_namespace(name: str, short: str) -> None:
    assert get_short_name(name) == short


def test_names_of_other_languages_have_no_edges_yet() -> None:
    facts = [
        Fact("declares", 0, 9, "f", {"role": "function"}),
        Fact("calls", 2, 4, "f", {"name": "g"}),
    ]
    found = build_relations(facts, names="none")
    assert [symbol.name for symbol in found.symbols] == ["f"]
    assert found.edges == ()


def test_other_nodes_have_a_prefix() -> None:
    found = edges("<?php \\DB::table('a'); config('mail.from');")
    assert {("queries_table", "", "table:a"), ("configured_by", "", "config:mail.from")} <= found


def test_relations_of_models_lead_to_models_and_their_tables() -> None:
    text = """<?php
namespace App\\Models;
use Illuminate\\Database\\Eloquent\\Model;
class Invoice extends Model {
    protected $table = 'bills';
    public function tags() { return $this->belongsToMany(Tag::class, 'bill_tag'); }
    public function countries() { return $this->hasManyThrough(Country::class, Customer::class); }
}
"""
    invoice = "App\\Models\\Invoice"
    assert {
        ("maps_to", invoice, "table:bills"),
        ("relates_to", f"{invoice}::tags", "App\\Models\\Tag"),
        ("relates_to", f"{invoice}::tags", "table:bill_tag"),
        ("relates_to", f"{invoice}::countries", "App\\Models\\Country"),
        ("relates_to", f"{invoice}::countries", "App\\Models\\Customer"),
    } <= edges(text)


def test_packages_of_a_manifest_are_stated_of_its_file() -> None:
    text = '{"name": "shop", "require": {"laravel/framework": "^8.0"}}'
    found = build_relations(read_code(text, "text/x-json").facts, names="none").edges
    [edge] = found
    assert (edge.kind, edge.source, edge.target) == ("depends_on", "", "package:laravel/framework")
