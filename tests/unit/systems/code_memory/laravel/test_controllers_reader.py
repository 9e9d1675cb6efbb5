"""Middleware that controllers declare, in both forms that Laravel supports."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.relations.relations import build_relations

OLD = """<?php
namespace App\\Http\\Controllers;
class BillController extends Controller {
    public function __construct(private Ledger $ledger) {
        %s
    }
    public function index() {}
    public function store() {}
    public function destroy() {}
    protected function total() {}
}
"""
NEW = """<?php
namespace App\\Http\\Controllers;
use Illuminate\\Routing\\Controllers\\{HasMiddleware, Middleware};
use App\\Audit;
class BillController extends Controller implements HasMiddleware {
    public static function middleware(): array {
        return [%s];
    }
    public function index() {}
    public function store() {}
    public function destroy() {}
}
"""
NAME = "App\\Http\\Controllers\\BillController"


def guards(text: str) -> set[tuple[str, str]]:
    """Return the method, or "" for the whole controller, with each guard."""
    edges = build_relations(read(text).facts).edges
    found = {(edge.source, edge.target) for edge in edges if edge.kind == "guarded_by"}
    assert all(target.startswith("middleware:") != ("\\" in target) for _, target in found)
    return {
        (source.removeprefix(NAME).lstrip(":"), target.removeprefix("middleware:"))
        for source, target in found
    }


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("$this->middleware('auth');", {("", "auth")}),
        ("$this->middleware(['auth', 'throttle:60,1']);", {("", "auth"), ("", "throttle")}),
        ("$this->middleware('auth')->only('store');", {("store", "auth")}),
        ("$this->middleware('a')->only(['store', 'index']);", {("store", "a"), ("index", "a")}),
        ("$this->middleware('auth')->except('index');", {("store", "auth"), ("destroy", "auth")}),
        ("$this->middleware('auth')->except('index', 'store');", {("destroy", "auth")}),
        ("$this->middleware('can:see')->only('index')->except('index');", set()),
        ("$this->middleware(\\App\\Audit::class);", {("", "App\\Audit")}),
        ("$this->middleware(fn ($request, $next) => $next($request));", set()),
        ("$this->middleware($this->names());", set()),
        ("$this->ledger->middleware('auth');", set()),
        ("", set()),
    ],
    ids=[
        *("all", "list", "only one", "only several", "except one", "except several", "none left"),
        *("class", "closure", "computed", "another's", "nothing"),
    ],
)
def test_a_constructor_declares_middleware(statement: str, expected: set[tuple[str, str]]) -> None:
    assert guards(OLD % statement) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("'auth', 'verified:web'", {("", "auth"), ("", "verified")}),
        ("Audit::class", {("", "App\\Audit")}),
        ("new Middleware('auth', only: ['store'])", {("store", "auth")}),
        ("new Middleware(Audit::class, except: ['index', 'store'])", {("destroy", "App\\Audit")}),
        ("new Middleware(['a', 'b'], ['index'])", {("index", "a"), ("index", "b")}),
        ("new Other('auth'), fn ($r, $n) => $n($r)", set()),
        ("", set()),
    ],
    ids=["names", "class", "only", "except", "by position", "others", "nothing"],
)
def test_the_interface_declares_middleware(entries: str, expected: set[tuple[str, str]]) -> None:
    assert guards(NEW % entries) == expected


def test_the_evidence_is_the_statement() -> None:
    text = OLD % "$this->middleware('auth')->only('store');"
    [fact] = [one for one in read(text).facts if one.kind == "guards"]
    assert text[fact.start : fact.end] == "$this->middleware('auth')->only('store')"
