"""A call of an interface's method leads to the methods that implement it, and back."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "implementations"
LARGE = 24
FILES = {
    "src/shop/Payments.java": (
        "package shop;\n\npublic interface Payments {\n    void charge(int cents);\n}\n"
    ),
    "src/shop/CardPayments.java": (
        "package shop;\n\npublic class CardPayments implements Payments {\n"
        "    public void charge(int cents) { gateway(cents); }\n"
        "    void gateway(int cents) {}\n}\n"
    ),
    "src/shop/Checkout.java": (
        "package shop;\n\npublic class Checkout {\n    private final Payments payments;\n"
        "    public void pay(int cents) { payments.charge(cents); }\n}\n"
    ),
    "web/mail.ts": (
        "export interface Mailer {\n  deliver(text: string): void;\n}\n"
        "export class SmtpMailer implements Mailer {\n  deliver(text: string): void {}\n}\n"
        "export class Signup {\n  constructor(private mailer: Mailer) {}\n"
        "  register(): void { this.mailer.deliver('hi'); }\n}\n"
    ),
    "app/Reports.php": (
        "<?php\nnamespace App;\ninterface Reports { public function render(): string; }\n"
        "class PdfReports implements Reports { public function render(): string { return ''; } }\n"
        "class Screen {\n    public function __construct(private Reports $reports) {}\n"
        "    public function show() { return $this->reports->render(); }\n}\n"
    ),
    "Data/IOrders.cs": (
        "namespace Shop.Data {\n  public interface IOrders { Task AddAsync(Order order); }\n}\n"
    ),
    "Data/Orders.cs": (
        "namespace Shop.Data {\n  public class SqlOrders : Repository<Order>, IOrders {\n"
        "    public Task AddAsync(Order order) { return Save(order); }\n  }\n}\n"
    ),
    "Api/Cart.cs": (
        "using Shop.Data;\nnamespace Shop.Api {\n  public class Cart {\n"
        "    private readonly IOrders _orders;\n"
        "    public Task Buy(Order order) { return _orders.AddAsync(order); }\n  }\n}\n"
    ),
    "app/Feed.kt": (
        "interface Feed { fun refresh(page: Int) }\n"
        "class RemoteFeed(val api: Api) : Feed {\n"
        "  override fun refresh(page: Int) { api.get(page) }\n}\n"
        "class Screen(private val news: Feed) {\n  fun open() { news.refresh(1) }\n}\n"
    ),
    "db/env.h": (
        "namespace db {\nclass Env {\n public:\n  virtual Status Rename(int from) = 0;\n};\n"
        "class DiskEnv : public Env {\n public:\n"
        "  Status Rename(int from) override { return Move(from); }\n};\n"
        "Status Swap(Env* env) { return env->Rename(1); }\n}\n"
    ),
    "lib/export.rb": (
        "module Shop\n  class Export\n    def write_rows(rows)\n      rows\n    end\n  end\n"
        "  class CsvExport < Export\n    def write_rows(rows)\n      rows.join\n    end\n  end\n"
        "  class Nightly\n    def run(export)\n      export.write_rows([])\n    end\n  end\nend\n"
    ),
    "src/shop/Base.java": (
        "package shop;\n\npublic abstract class Base {\n    public void boot() {}\n"
        "    public void start() { boot(); }\n}\n"
    ),
    **{
        f"src/shop/Part{number}.java": (
            f"package shop;\n\npublic class Part{number} extends Base {{\n"
            "    public void boot() {}\n}\n"
        )
        for number in range(LARGE)
    },
}


@pytest.fixture(scope="module")
def about(shared_installation: Installation, driver: Driver) -> CodeAnswers:
    root = shared_installation.home.parent / "sources" / TENANT
    write(root, FILES)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "root": str(root), "include": ["**/*.*"]}],
    )
    driver.sync(TENANT)
    session = driver.session
    record = session.catalog.tenants.get(TENANT)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def write(root: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.mark.parametrize(
    ("implementation", "place"),
    [
        ("CardPayments.charge", "src/shop/Checkout.java:5  Checkout.pay"),
        ("SmtpMailer.deliver", "web/mail.ts:9"),
        ("PdfReports::render", "app/Reports.php:7"),
        ("SqlOrders.AddAsync", "Api/Cart.cs:5"),
        ("RemoteFeed.refresh", "app/Feed.kt:6"),
        ("DiskEnv::Rename", "db/env.h:10"),
        ("CsvExport#write_rows", "lib/export.rb:14"),
    ],
)
def test_callers_of_an_interface_use_its_implementations(
    about: CodeAnswers, implementation: str, place: str
) -> None:
    assert place in about.what_touches(symbol=implementation)
    assert place.partition("  ")[0].partition(":")[0] in about.impact_of(symbols=[implementation])


@pytest.mark.parametrize(
    ("method", "implementation"),
    [
        ("IOrders.AddAsync", "Data/Orders.cs:2"),
        ("Feed.refresh", "app/Feed.kt:2"),
        ("Env::Rename", "db/env.h:6"),
        ("Export#write_rows", "lib/export.rb:7"),
    ],
)
def test_the_implementations_of_a_method_are_related_to_it(
    about: CodeAnswers, method: str, implementation: str
) -> None:
    found = Walker(about.reader.catalog).walk_from_name(TENANT, Caller(), method, direction="out")
    places = {
        f"{relation.uri.partition('/')[2]}:{relation.line_start}"
        for relation in found.relations
        if relation.kind == "implemented_by"
    }
    assert places == {implementation}
    path = implementation.partition(":")[0]
    assert path in about.impact_of(symbols=[method]).partition("possibly")[0]
    assert implementation in about.what_touches(symbol=method)


def test_a_call_of_a_method_with_implementations_certainly_uses_each(about: CodeAnswers) -> None:
    for method in ("IOrders.AddAsync", "SqlOrders.AddAsync"):
        assert "Cart::Buy" in about.impact_of(symbols=[method]).partition("possibly")[0]
    # Single-word names also occur in libraries.
    assert "Screen::open" in about.impact_of(symbols=["Feed.refresh"]).partition("possibly")[2]


def test_an_outline_lists_each_definition_once(about: CodeAnswers) -> None:
    lines = about.outline("Data/Orders.cs").splitlines()
    assert len([line for line in lines if "SqlOrders" in line and "AddAsync" not in line]) == 1


def test_a_method_that_is_implemented_too_often_leads_to_no_implementation(
    about: CodeAnswers,
) -> None:
    found = Walker(about.reader.catalog).walk_from_name(
        TENANT, Caller(), "shop.Base.start", direction="out", depth=2
    )
    assert {(relation.kind, relation.target) for relation in found.relations} == {
        ("calls", "shop.Base.boot")
    }
    assert "Base.start" in about.impact_of(symbols=["shop.Part3.boot"])
