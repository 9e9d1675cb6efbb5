"""Settings, re-exported names, and all types of a package, from their use to their line."""

from __future__ import annotations

import pytest

from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.retrieval.walk import Walker, WalkResult
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.repositories import MadeRepository

TENANT = "code-settings"
FILES = {
    "config/billing.php": (
        "<?php\nreturn [\n    'vat' => env('BILLING_VAT', 19),\n"
        "    'rates' => [\n        'de' => 19,\n        'at' => 20,\n    ],\n];\n"
    ),
    "config/services/tax.php": "<?php\nreturn ['url' => env('TAX_URL')];\n",
    "lang/en/billing.php": "<?php\nreturn ['vat' => 'The tax on it', 'due' => 'Pay this'];\n",
    ".env.example": "APP_ENV=local\nBILLING_VAT=19\n",
    "app/Bills.php": (
        "<?php\nnamespace App;\nclass Bills\n{\n"
        "    public function sum() { return config('billing.vat'); }\n"
        "    public function rate() { return config('billing.rates.de'); }\n"
        "    public function all() { return config('billing'); }\n"
        "    public function url() { return config('services.tax.url'); }\n}\n"
    ),
    "shop/settings.py": "import os\n\nPAGE_SIZE = 20\nVAT = os.environ['BILLING_VAT']\n",
    "shop/views.py": (
        "from django.conf import settings\n\n\ndef show():\n    return settings.PAGE_SIZE\n"
    ),
    "shop/billing/__init__.py": "from .models import Bill\n\n__all__ = ['Bill']\n",
    "shop/billing/models.py": "class Bill:\n    def total(self):\n        return 1\n",
    "shop/pay.py": "from shop.billing import Bill\n\n\ndef pay():\n    return Bill().total()\n",
    "web/src/lib/index.ts": "export * from './money'\nexport { Cart as Basket } from './cart'\n",
    "web/src/lib/money.ts": "export function format(x: number) { return `${x}` }\n",
    "web/src/lib/cart.ts": "export class Cart { add() { return 1 } }\n",
    "web/src/page.ts": (
        "import { format, Basket } from '@/lib'\n\n"
        "export function page(of: Basket) {\n    of.add()\n    new Basket()\n"
        "    return format(1) + process.env.APP_ENV\n}\n"
    ),
    "engine/src/lib.rs": "pub mod tax;\npub use tax::Rule;\n",
    "engine/src/tax.rs": "pub struct Rule;\n\nimpl Rule {\n    pub fn of() -> i32 { 1 }\n}\n",
    "engine/src/run.rs": "use crate::Rule;\n\npub fn run() -> i32 { Rule::of() }\n",
    "java/io/shop/Paper.java": "package io.shop;\n\npublic class Paper { public void f() {} }\n",
    "java/io/app/Sheet.java": (
        "package io.app;\n\nimport java.util.*;\nimport io.shop.*;\n\n"
        "class Sheet extends Paper {\n    void g(Paper one) { new Paper(); one.f(); }\n}\n"
    ),
    "ios/Package.swift": (
        "// swift-tools-version:5.9\nimport PackageDescription\n\nlet package = Package(\n"
        '    name: "Shop",\n    dependencies: [\n'
        '        .package(url: "https://github.com/vapor/vapor.git", from: "4.0.0"),\n    ],\n'
        '    targets: [.target(name: "Shop", dependencies: [\n'
        '        .product(name: "Vapor", package: "vapor"),\n    ])]\n)\n'
    ),
    "ios/Sources/App.swift": "import Vapor\n\nstruct Shop {}\n",
    "ios/Podfile": "target 'Shop' do\n  pod 'Alamofire', '~> 5.8'\nend\n",
}
BILL = "shop.billing.models.Bill"


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


def out(walker: Walker, name: str) -> set[tuple[str, str, str]]:
    return relations_of(walker.walk_from_name(TENANT, Caller(), name, direction="out"))


def into(walker: Walker, name: str) -> set[tuple[str, str, str]]:
    return relations_of(walker.walk_from_name(TENANT, Caller(), name, direction="in"))


@pytest.mark.parametrize(
    ("key", "line", "uri"),
    [
        ("billing.vat", 3, "repo/config/billing.php"),
        ("billing.rates", 4, "repo/config/billing.php"),
        ("billing.rates.de", 5, "repo/config/billing.php"),
        ("billing", 2, "repo/config/billing.php"),
        ("services.tax.url", 2, "repo/config/services/tax.php"),
        ("PAGE_SIZE", 3, "repo/shop/settings.py"),
    ],
)
def test_a_setting_leads_to_its_line(walker: Walker, key: str, line: int, uri: str) -> None:
    name = f"config:{key}"
    walk = walker.walk_from_name(TENANT, Caller(), name, depth=1)
    [node] = [one for one in walk.nodes if one.name == name]
    assert (node.uri, node.line_start, node.source_type) == (uri, line, "config")
    found = walker.find_definitions(TENANT, Caller(), name=key)
    if "." in key:
        assert [one.name for one in found] == [name]


def test_who_reads_a_setting_is_told_and_where_its_value_is_from(walker: Walker) -> None:
    assert into(walker, "config:billing.vat") == {
        ("configured_by", "App\\Bills::sum", "config:billing.vat")
    }
    variable = "env:BILLING_VAT"
    assert ("configured_by", "config:billing.vat", variable) in out(walker, "config:billing.vat")
    walk = walker.walk_from_name(TENANT, Caller(), variable, direction="in")
    assert relations_of(walk) >= {
        ("configured_by", "config:billing.vat", variable),
        ("configured_by", "file:repo/shop/settings.py", variable),
    }
    [node] = [one for one in walk.nodes if one.name == variable]
    assert (node.uri, node.line_start) == ("repo/.env.example", 2)
    assert into(walker, "env:APP_ENV") == {("configured_by", "web/src/page#page", "env:APP_ENV")}
    assert into(walker, "config:PAGE_SIZE") == {
        ("configured_by", "shop.views.show", "config:PAGE_SIZE")
    }


@pytest.mark.parametrize("name", ["BILLING_VAT", "env:BILLING_VAT"])
def test_name_of_a_variable_leads_to_its_uses_and_mentions(
    walker: Walker, driver: Driver, name: str
) -> None:
    session = driver.session
    reader = DocumentReader(session.catalog, session.store)
    config = session.embedders.tenant(session.catalog.tenants.get(TENANT))
    lines = CodeAnswers(reader, config, Caller()).what_touches(symbol=name).splitlines()
    stated = lines[: next(at for at, line in enumerate(lines) if line.startswith("possibly "))]
    assert {line.split()[0] for line in stated if line.startswith("  ")} == {
        "config/billing.php:3",
        "shop/settings.py:4",
    }
    assert "  .env.example:2  mentions  BILLING_VAT" in lines


def test_words_of_people_are_no_settings(walker: Walker) -> None:
    assert not walker.find_definitions(TENANT, Caller(), path="repo/lang/en/billing.php")


def test_a_question_for_a_setting_finds_its_chunk(walker: Walker, driver: Driver) -> None:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)
    try:
        answer = retriever.search(
            TENANT, SearchRequest(query="What does App\\Bills::rate depend on, and its setting?")
        )
    finally:
        retriever.close()
    found = {(hit.uri, hit.symbol) for hit in answer.hits}
    assert ("repo/config/billing.php", "rates") in found


def test_names_that_modules_hand_on_lead_to_definitions(walker: Walker) -> None:
    assert ("calls", "shop.pay.pay", BILL) in out(walker, "shop.pay.pay")
    assert ("calls", "shop.pay.pay", f"{BILL}.total") in into(walker, f"{BILL}.total")
    assert ("imports", "file:repo/shop/pay.py", BILL) in into(walker, BILL)
    page, money = "web/src/page#page", "web/src/lib/money#format"
    assert ("calls", page, money) in out(walker, page)
    assert ("calls", page, money) in into(walker, money)
    cart = "web/src/lib/cart#Cart"
    assert {("calls", page, cart), ("imports", "file:repo/web/src/page.ts", cart)} <= into(
        walker, cart
    )
    assert ("calls", page, f"{cart}.add") in into(walker, f"{cart}.add")
    rule = "engine/src/tax#Rule"
    assert ("calls", "engine/src/run#run", f"{rule}.of") in into(walker, f"{rule}.of")
    assert ("imports", "file:repo/engine/src/run.rs", rule) in into(walker, rule)


def test_all_types_of_a_package_are_looked_for_where_they_are(walker: Walker) -> None:
    paper, sheet = "io.shop.Paper", "io.app.Sheet"
    assert out(walker, sheet) == {
        ("extends", sheet, paper),
        ("calls", f"{sheet}.g", paper),
        ("calls", f"{sheet}.g", f"{paper}.f"),
    }
    assert ("calls", f"{sheet}.g", f"{paper}.f") in into(walker, f"{paper}.f")


def test_packages_of_swift_and_pods_are_depended_on(walker: Walker) -> None:
    assert into(walker, "package:Vapor") == {
        ("depends_on", "file:repo/ios/Package.swift", "package:Vapor"),
        ("imports", "file:repo/ios/Sources/App.swift", "package:Vapor"),
    }
    assert into(walker, "package:Alamofire") == {
        ("depends_on", "file:repo/ios/Podfile", "package:Alamofire")
    }
    [url] = out(walker, "file:repo/ios/Package.swift") - {
        ("depends_on", "file:repo/ios/Package.swift", "package:Vapor"),
        ("imports", "file:repo/ios/Package.swift", "package:PackageDescription"),
    }
    assert url[2] == "package:https://github.com/vapor/vapor.git"


def test_what_is_handed_on_is_no_relation_of_its_own(walker: Walker) -> None:
    for name in ("shop/billing/__init__.py", "web/src/lib/index.ts", "engine/src/lib.rs"):
        kinds = {kind for kind, *_ in out(walker, f"file:repo/{name}")}
        assert kinds <= {"imports"}, name
