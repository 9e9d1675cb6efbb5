"""Relations by paths, and relations of documents, tests and API descriptions."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.retrieval.walk import Walker, WalkResult
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

FILES = {
    "backend/billing/__init__.py": "",
    "backend/billing/models.py": (
        "from .core import Base\n\n\nclass Bill(Base):\n    def total(self):\n"
        "        return self.lines()\n\n    def lines(self):\n        return []\n"
    ),
    "backend/billing/core.py": "class Base:\n    pass\n",
    "backend/billing/views.py": (
        "from billing.models import Bill\n\n\ndef show(request):\n    return Bill(1)\n"
    ),
    "backend/tests/test_bill.py": (
        "from billing.models import Bill\n\n\ndef test_total():\n    Bill().total()\n"
    ),
    "web/src/lib/money.ts": "export function format(x: number) { return `${x}` }\n",
    "web/src/pages/Invoice.vue": (
        "<script setup lang=\"ts\">\nimport { format } from '@/lib/money'\n"
        "export const shown = () => format(1)\nfetch('/api/bills/7')\n</script>\n<template/>\n"
    ),
    "web/src/pages/list.ts": (
        "import { format } from '../lib/money'\nexport const all = () => format(2)\n"
    ),
    "server/src/main/java/io/shop/Receipt.java": (
        "package io.shop;\n\npublic class Receipt extends Paper {\n"
        "    public int total() { return sum(); }\n    int sum() { return 1; }\n}\n"
    ),
    "server/src/main/java/io/shop/Paper.java": "package io.shop;\n\nclass Paper {\n}\n",
    "server/src/test/java/io/shop/ReceiptTest.java": (
        "package io.shop;\n\nimport java.util.List;\n\nclass ReceiptTest {\n"
        "    void sums() { new Receipt().total(); Receipt one = new Receipt(); one.total(); }\n}\n"
    ),
    "store/go.mod": "module github.com/acme/shop\n",
    "store/ledger/ledger.go": (
        "package ledger\n\ntype Base struct{}\n\ntype Book struct {\n\tBase\n}\n\n"
        "func (b *Book) Sum() int { return add() }\n\nfunc add() int { return 1 }\n"
    ),
    "store/cmd/server/main.go": (
        'package main\n\nimport "github.com/acme/shop/store/ledger"\n\n'
        "func run(b *ledger.Book) int { return b.Sum() }\n"
    ),
    "engine/src/lib.rs": "pub mod rates;\npub mod bills;\n",
    "engine/src/rates.rs": "pub struct Rate;\n\nimpl Rate {\n    pub fn of() -> i32 { 1 }\n}\n",
    "engine/src/bills.rs": (
        "use crate::rates::Rate;\n\npub trait Payable {}\npub struct Due;\n\n"
        "impl Payable for Due {}\n\nimpl Due {\n    pub fn sum(&self) -> i32 { Rate::of() }\n}\n"
    ),
    "ios/Sources/Store.swift": "class Store {\n    func load() {}\n}\n",
    "ios/Sources/Page.swift": (
        "class Page: Store {\n    let store: Store\n    func show() { store.load() }\n}\n"
    ),
    "db/schema.sql": (
        "CREATE TABLE ledgers (id int);\n\n"
        "CREATE TABLE entries (id int, ledger_id int REFERENCES ledgers (id));\n\n"
        "CREATE VIEW sums AS SELECT l.id FROM ledgers l JOIN entries e ON e.ledger_id = l.id;\n"
    ),
    "docs/guide.md": "# Guide\n\nSums are made by `Bill.total`, in `backend/billing/models.py`.\n",
    "docs/adr/0001-sums.md": "# 1. Sums\n\nStatus: accepted\n\n`Bill.total` rounds.\n",
    "docs/KNOWN_BUGS.md": "# Known bugs\n\n## Wrong sums\n\n`backend/billing/core.py` is slow.\n",
    "openapi.yaml": (
        "openapi: 3.0.0\ninfo: {title: Bills, version: '1'}\npaths:\n  /api/bills/{bill}:\n"
        "    get:\n      operationId: showBill\n      responses: {'200': {description: one}}\n"
    ),
}
BILL = "backend.billing.models.Bill"
FORMAT = "web/src/lib/money#format"
TENANT = "code-names"


@pytest.fixture(scope="module")
def walker(shared_installation: Installation, driver: Driver) -> Walker:
    made = MadeRepository(shared_installation.home.parent / "sources" / TENANT)
    made.commit(FILES)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "type": "git", "root": str(made.root), "ref": "HEAD"}],
    )
    driver.sync(TENANT)
    return Walker(driver.session.catalog)


def relations_of(walk: WalkResult) -> set[tuple[str, str, str]]:
    return {(relation.kind, relation.source, relation.target) for relation in walk.relations}


def ask(walker: Walker, name: str, direction: str, depth: int = 1) -> WalkResult:
    way = "in" if direction == "in" else "out"
    return walker.walk_from_name(TENANT, Caller(), name, direction=way, depth=depth)


def test_names_of_python_are_qualified_by_path_and_found_from_both_ends(walker: Walker) -> None:
    [bill] = [
        symbol
        for symbol in walker.find_definitions(TENANT, Caller(), name="Bill")
        if symbol.name == BILL
    ]
    assert bill.uri == "repo/backend/billing/models.py"
    out = relations_of(ask(walker, BILL, "out"))
    assert ("extends", BILL, "backend.billing.core.Base") in out
    total = relations_of(ask(walker, f"{BILL}.total", "out"))
    assert ("calls", f"{BILL}.total", f"{BILL}.lines") in total
    used = relations_of(ask(walker, BILL, "in"))
    assert ("calls", "backend.billing.views.show", BILL) in used
    assert ("imports", "file:repo/backend/billing/views.py", BILL) in used
    base = relations_of(ask(walker, "backend.billing.core.Base", "in"))
    assert ("extends", BILL, "backend.billing.core.Base") in base


def test_tests_are_told_as_such(walker: Walker) -> None:
    kinds = {
        kind for kind, source, _ in relations_of(ask(walker, BILL, "in")) if "test_bill" in source
    }
    assert kinds == {"tests"}


def test_packages_of_java_meet_across_source_sets(walker: Walker) -> None:
    receipt = "io.shop.Receipt"
    total = f"{receipt}.total"
    assert ("extends", receipt, "io.shop.Paper") in relations_of(ask(walker, receipt, "out"))
    assert ("calls", total, f"{receipt}.sum") in relations_of(ask(walker, total, "out"))
    sums = "io.shop.ReceiptTest.sums"
    assert ("tests", sums, receipt) in relations_of(ask(walker, receipt, "in"))
    assert ("tests", sums, total) in relations_of(ask(walker, total, "in"))


def test_packages_of_go_are_folders(walker: Walker) -> None:
    book = "store/ledger#Book"
    run = "store/cmd/server#run"
    assert ("extends", book, "store/ledger#Base") in relations_of(ask(walker, book, "out"))
    assert ("calls", run, f"{book}.Sum") in relations_of(ask(walker, f"{book}.Sum", "in"))
    assert ("calls", f"{book}.Sum", "store/ledger#add") in relations_of(
        ask(walker, f"{book}.Sum", "out")
    )


def test_modules_of_rust_are_files(walker: Walker) -> None:
    due, rate = "engine/src/bills#Due", "engine/src/rates#Rate"
    assert ("implements", due, "engine/src/bills#Payable") in relations_of(ask(walker, due, "out"))
    assert ("calls", f"{due}.sum", f"{rate}.of") in relations_of(ask(walker, f"{rate}.of", "in"))


def test_types_of_swift_know_each_other_by_name(walker: Walker) -> None:
    assert ("extends", "Page", "Store") in relations_of(ask(walker, "Store", "in"))
    assert ("calls", "Page.show", "Store.load") in relations_of(ask(walker, "Store.load", "in"))


def test_statements_of_sql_meet_at_their_tables(walker: Walker) -> None:
    met = relations_of(ask(walker, "table:ledgers", "in"))
    assert ("creates", "ledgers", "table:ledgers") in met
    assert ("references", "entries", "table:ledgers") in met
    assert ("queries_table", "sums", "table:ledgers") in met


def test_modules_of_javascript_meet_under_aliases_and_relative_paths(walker: Walker) -> None:
    used = relations_of(ask(walker, FORMAT, "in"))
    assert ("calls", "web/src/pages/list#all", FORMAT) in used
    assert ("calls", "web/src/pages/Invoice#default.shown", FORMAT) in used
    out = relations_of(ask(walker, "web/src/pages/Invoice#default.shown", "out"))
    assert out == {("calls", "web/src/pages/Invoice#default.shown", FORMAT)}


def test_documents_decisions_and_bugs_name_what_they_are_about(walker: Walker) -> None:
    total = relations_of(ask(walker, f"{BILL}.total", "in"))
    assert ("documents", "file:repo/docs/guide.md", f"{BILL}.total") in total
    assert ("decides", "file:repo/docs/adr/0001-sums.md", f"{BILL}.total") in total
    core = "file:repo/backend/billing/core.py"
    assert ("bug_in", "file:repo/docs/KNOWN_BUGS.md", core) in relations_of(ask(walker, core, "in"))


def test_requests_and_described_operations_meet_at_an_endpoint(walker: Walker) -> None:
    met = relations_of(ask(walker, "endpoint:GET /api/bills/{}", "in"))
    assert {kind for kind, *_ in met} == {"serves", "requests"}


def test_both_ends_of_a_relation_tell_the_same(walker: Walker) -> None:
    nodes = walker.walk_from_name(TENANT, Caller(), BILL, depth=8).nodes
    assert len(nodes) > 5
    out = {one for node in nodes for one in relations_of(ask(walker, node.name, "out"))}
    into = {one for node in nodes for one in relations_of(ask(walker, node.name, "in"))}
    names = {node.name for node in nodes}
    # Relations of a file are reported for its definitions too.
    of_code = {"calls", "extends", "imports", "tests"}
    inner = {one for one in out if {one[1], one[2]} <= names and one[0] in of_code}
    assert inner == {one for one in into if {one[1], one[2]} <= names and one[0] in of_code}
    assert {one[0] for one in inner} == of_code


def test_equal_texts_in_two_places_have_names_of_their_own(
    shared_installation: Installation, driver: Driver
) -> None:
    tenant = "code-twins"
    root = shared_installation.home.parent / "sources" / tenant
    for folder in ("one", "two"):
        (root / folder).mkdir(parents=True)
        for name in ("models.py", "core.py"):
            (root / folder / name).write_text(FILES[f"backend/billing/{name}"])
    shared_installation.add_tenant(
        tenant,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=tenant,
        sources=[{"name": "repo", "root": str(Path(root)), "include": ["**/*.py"]}],
    )
    driver.sync(tenant)
    walker = Walker(driver.session.catalog)
    for folder in ("one", "two"):
        name = f"{folder}.models.Bill"
        walk = walker.walk_from_name(tenant, Caller(), name, direction="out")
        assert ("extends", name, f"{folder}.core.Base") in relations_of(walk)
        back = walker.walk_from_name(tenant, Caller(), f"{folder}.core.Base", direction="in")
        assert relations_of(back) >= {("extends", name, f"{folder}.core.Base")}
        assert not any(
            source.startswith("one") != (folder == "one")
            for _, source, _ in relations_of(back)
            if not source.startswith("file:")
        )
