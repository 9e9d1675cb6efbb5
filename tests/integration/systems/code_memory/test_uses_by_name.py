"""Uses by name: the answers of agents' tools about languages without an interpreter."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from sqlalchemy import delete, func, select

from rag_assets.common.formatting import format_count
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.answers import CodeAnswers
from rag_assets.systems.code_memory.catalog.tables import name_uses
from rag_assets.systems.code_memory.retrieval.walk import Walker
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "uses-by-name"
FILES: Mapping[str, str] = {
    # Ruby
    "app/krate.rb": "class Krate < Base\n  def owners(conn)\n    conn.all\n  end\nend\n",
    "app/team.rb": "class Team\n  def owners\n    []\n  end\nend\n",
    "app/krates_controller.rb": """require_relative "krate"
class KratesController
  def show
    krate = Krate.find(1)
    krate.owners(conn).map(&:name)
  end
end
""",
    "app/tasks.rake.rb": "def refresh_krates\n  KratesController.new.show\nend\n",
    "config/routes.rb": """Rails.application.routes.draw do
  get "/krates/:id", to: "krates#show"
end
""",
    # C#
    "src/IOrders.cs": "namespace Shop {\n  public interface IOrders { void Submit(int id); }\n}\n",
    "src/OrdersController.cs": """using Shop;
namespace Shop.Api {
  public class OrdersController {
    private readonly IOrders _orders;
    public void Post(int id) { _orders.Submit(id); }
  }
}
""",
    # Kotlin
    "kt/Repo.kt": "package shop\nclass OrderRepo {\n    fun lookupOrder(id: Int): Int = id\n}\n",
    "kt/Service.kt": """package shop
class Service(private val repo: OrderRepo) {
    fun total(id: Int): Int {
        return repo.lookupOrder(id)
    }
}
""",
    # C++
    "db/table.h": "class TableReader {\n public:\n  bool Seek(int key);\n  int SeekToLast();\n};\n",
    "db/table.cc": """#include "table.h"
bool TableReader::Seek(int key) { return key > 0; }
int TableReader::SeekToLast() { return 1; }
""",
    "db/scan.cc": """#include "table.h"
int Scan(TableReader* reader) {
  return reader->SeekToLast();
}
""",
    "other/pump.cc": """struct Pump { bool Seek(int at) { return true; } };
int Run(Pump* p) { p->Seek(1); }
""",
    "lua/many.lua": "local function ping_all(host)\nend\n" + "ping_all(host)\n" * 60,
    # Others
    "config/jobs.yml": "jobs:\n  - class: KratesController\n    method: refresh_krates\n",
    "views/krate.html.erb": "<% krate.owners(conn).each do |owner| %>\n",
    "config/empty.rb": "# nothing here\n",
    "lib/store.go": """package lib
func (s *Store) Tokens() *AccessTokens { return nil }
func (t *AccessTokens) Mint(id int) {}
func use(s *Store) {
\ts.Tokens().Mint(1)
}
""",
    "web/serial.py": """class LineSerializer:
    pass


class InvoiceSerializer:
    serializer_class = LineSerializer
""",
    "web/mail.py": """class Mailer:
    def deliver(self, to): ...


class Pager:
    def deliver(self, to):
        return to


def remind(mailer: Mailer, first, second):
    mailer.deliver(first)
    mailer.deliver(second)
    first.deliver(second)


class Beeper(Pager):
    pass
""",
    "tests/test_mail.py": """from web.mail import Mailer, remind


def test_remind():
    remind(Mailer(), 1, 2)
""",
    "cmd/web.go": """package main

import "net/http"

func Health(w http.ResponseWriter, r *http.Request) {}

func main() {
\thttp.HandleFunc("/health", Health)
}
""",
    "src/Quote.cs": """namespace Shop {
  public class Quote {
    public Quote(int total) { TotalOfLines = total; }
    public int TotalOfLines { get; }
  }
  public class Printer {
    public void Print(Quote quote) { Write(quote.TotalOfLines); }
  }
}
""",
    "lib/settled.rb": """class Bill
  def settle
  end
end
class Debt
  def settle
  end
end
def settle_all(one)
"""
    + "  one.settle\n" * 30
    + "end\n",
    "sql/mysql.sql": "CREATE TABLE krates (id int);\n",
    "sql/sqlite.sql": "-- SQLite\nCREATE TABLE krates (id integer);\n",
}


@pytest.fixture(scope="module")
def about(shared_installation: Installation, driver: Driver) -> CodeAnswers:
    root = shared_installation.home.parent / "sources" / TENANT
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    shared_installation.add_tenant(
        TENANT,
        **FAST,
        profile="code-memory",
        organization="acme",
        project=TENANT,
        sources=[{"name": "repo", "root": str(root), "include": ["**/*"]}],
    )
    driver.sync(TENANT)
    session = driver.session
    record = session.catalog.tenants.get(TENANT)
    reader = DocumentReader(session.catalog, session.store)
    return CodeAnswers(reader, session.embedders.tenant(record), Caller())


def parts(answer_text: str) -> tuple[str, str]:
    """Split an answer into the certain uses and the possible ones."""
    certain, _, rest = answer_text.partition("possibly ")
    return certain, rest


def test_uses_of_a_ruby_method_are_possible_where_two_classes_have_it(about: CodeAnswers) -> None:
    certain, rest = parts(about.what_touches(symbol="Bill::settle"))
    assert "settle_all" not in certain
    assert rest.startswith("Bill::settle, one of 2 definitions of the name (30):\n")
    assert "lib/settled.rb:10  calls  settle_all  one.settle" in rest
    certain, rest = parts(about.what_touches(symbol="Krate::owners"))
    assert rest.startswith("Krate::owners, one of 2 definitions of the name")
    assert "views/krate.html.erb:1" in rest


def test_use_on_a_variable_named_after_one_of_two_classes_is_certain(about: CodeAnswers) -> None:
    certain, _ = parts(about.what_touches(symbol="Krate::owners"))
    assert "app/krates_controller.rb:5  KratesController::show  krate.owners" in certain
    certain, rest = parts(about.what_touches(symbol="Team::owners"))
    assert "krates_controller.rb" not in certain
    assert "krates_controller.rb:5" in rest


def test_impact_of_a_ruby_class_follows_its_users(about: CodeAnswers) -> None:
    certain, _ = parts(about.impact_of(symbols=["Krate"]))
    assert "app/krates_controller.rb:3  KratesController::show" in certain
    assert "app/tasks.rake.rb:1  refresh_krates  < KratesController::show" in certain


def test_impact_of_a_ruby_method_reaches_the_route_of_its_users(about: CodeAnswers) -> None:
    certain, _ = parts(about.impact_of(symbols=["Krate"]))
    assert certain.startswith("route (1):\n")
    route = "GET /krates/{id}  < KratesController::show"
    assert f"config/routes.rb:2  {route}" in certain


def test_repeated_call_of_a_resolved_method_is_certain(about: CodeAnswers) -> None:
    certain, rest = parts(about.what_touches(symbol="Mailer.deliver"))
    assert "web/mail.py:11  web.mail.remind  mailer.deliver" in certain
    assert "web/mail.py:12  web.mail.remind  mailer.deliver" in certain
    assert "web/mail.py:13" not in certain
    assert "web/mail.py:13" in rest
    assert "web/mail.py:6" not in certain + rest, "the head of another method of that name"


def test_inherited_member_is_taken_for_that_of_the_base_class(about: CodeAnswers) -> None:
    answer_text = about.what_touches(symbol="Beeper.deliver")
    assert answer_text.startswith("Beeper.deliver is taken for code Pager.deliver  web/mail.py:6\n")


def test_route_for_all_methods_serves_each_method(about: CodeAnswers) -> None:
    assert about.who_serves("GET /health").startswith("route ANY /health")


def test_end_of_a_path_is_not_taken_for_a_controller(about: CodeAnswers) -> None:
    assert "GET /krates/{id}" in about.who_serves("KratesController")
    answer_text = about.who_serves("GET /no/such/KratesController")
    assert answer_text.startswith("Nothing that you may read has this name.")


def test_use_of_a_member_within_its_class_is_no_use_of_the_class(about: CodeAnswers) -> None:
    answer_text = about.what_touches(symbol="Shop::Quote")
    assert "src/Quote.cs:7  Shop::Printer::Print  TotalOfLines" in answer_text
    assert "src/Quote.cs:3" not in answer_text


def test_many_possible_uses_are_counted_beyond_the_likeliest(about: CodeAnswers) -> None:
    _, rest = parts(about.what_touches(symbol="Bill::settle"))
    shown = [line for line in rest.splitlines() if line.startswith("  ")]
    assert len(shown) == 21
    assert shown[-1].startswith("  … and ")


def test_tests_of_a_method_are_counted_without_headings(about: CodeAnswers) -> None:
    answer_text = about.tests_of(symbols=["web.mail.remind"])
    listed_tests = [line for line in answer_text.splitlines() if line.startswith("  ")]
    assert any("tests/test_mail.py:5  " in line for line in listed_tests)
    assert f"\n{format_count(len(listed_tests), 'test')}; read for uses" in answer_text


def test_each_file_that_creates_a_table_is_shown(about: CodeAnswers) -> None:
    answer_text = about.what_touches(table="krates")
    assert "sql/mysql.sql:1  krates  CREATE TABLE" in answer_text
    assert "sql/sqlite.sql:2  krates  CREATE TABLE" in answer_text


def test_outline_command_takes_a_path_in_any_form(
    about: CodeAnswers, shared_installation: Installation
) -> None:
    shown = shared_installation.cli("code", "outline", TENANT, "serial.py")
    assert shown.code == 0, shown.err
    assert shown.out.strip() == about.outline("web/serial.py")
    assert "repo/web/serial.py:5-6" in shown.out


def test_impact_of_a_csharp_interface_finds_calls_and_types(about: CodeAnswers) -> None:
    certain, _ = parts(about.impact_of(symbols=["IOrders"]))
    assert "src/OrdersController.cs" in certain
    touches = about.what_touches(symbol="IOrders::Submit")
    assert "src/OrdersController.cs:5" in touches
    assert "_orders.Submit" in touches


def test_unknown_route_states_in_which_languages_routes_are_not_read(about: CodeAnswers) -> None:
    lines = about.who_serves("GET /nowhere").splitlines()
    unread = next(line for line in lines if line.startswith("routes are not read from files in "))
    assert "c++" in unread
    assert "kotlin" not in unread
    assert "ruby" not in unread


def test_impact_of_a_kotlin_method_names_the_only_definition(about: CodeAnswers) -> None:
    certain, _ = parts(about.impact_of(symbols=["OrderRepo::lookupOrder"]))
    assert "kt/Service.kt:3  Service::total" in certain


def test_impact_of_a_cpp_method_and_of_its_namesake(about: CodeAnswers) -> None:
    certain, _ = parts(about.impact_of(symbols=["TableReader::SeekToLast"]))
    assert "db/scan.cc:2  Scan" in certain
    certain, rest = parts(about.impact_of(symbols=["TableReader::Seek"]))
    assert "other/pump.cc" not in certain
    assert "other/pump.cc:2" in rest


def test_a_chained_call_of_go_keeps_its_receiver(about: CodeAnswers) -> None:
    answer_text = about.what_touches(symbol="Mint")
    assert "lib/store.go:5" in answer_text
    assert "Tokens.Mint" in answer_text


def test_a_class_attribute_of_python_is_a_use(about: CodeAnswers) -> None:
    certain, _ = parts(about.what_touches(symbol="LineSerializer"))
    assert "web/serial.py:6  InvoiceSerializer  LineSerializer" in certain


def test_an_answer_says_how_each_language_was_read(about: CodeAnswers) -> None:
    *_, last, search = about.what_touches(symbol="Krate").split("\n")
    assert search == "every place of the name: rg -nFw -e Krate"
    assert "read for uses by name: " in last
    assert "ruby" in last.partition("read for uses by name: ")[2]
    assert last.endswith("read for names only: 1 file in template")


def test_an_answer_counts_the_files_that_an_earlier_version_did_not_read(
    about: CodeAnswers, driver: Driver
) -> None:
    uri = "repo/config/empty.rb"
    with driver.locked(TENANT) as ctx, ctx.catalog.database.begin() as connection:
        of_file = documents.c.tenant == TENANT, documents.c.uri == uri
        keys = (
            select(document_index.c.chunk_set_key)
            .join(documents, documents.c.document_id == document_index.c.document_id)
            .where(*of_file)
        )
        rows = [*connection.execute(select(name_uses).where(name_uses.c.chunk_set_key.in_(keys)))]
        assert [row.names for row in rows] == [""], "a text without names is read as well"
        connection.execute(delete(name_uses).where(name_uses.c.chunk_set_key.in_(keys)))
    last = about.what_touches(symbol="Krate").split("\n")[-2]
    assert last.endswith("; not read for uses yet: 1 file")


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        (
            "owners",
            ["app/krate.rb", "app/team.rb", "app/krates_controller.rb", "views/krate.html.erb"],
        ),
        ("refresh_krates", ["config/jobs.yml"]),
        ("Krate", ["app/krates_controller.rb"]),
        ("reader", ["db/scan.cc"]),
        ("conn", ["app/krate.rb", "app/krates_controller.rb", "views/krate.html.erb"]),
    ],
)
def test_an_answer_has_every_file_in_which_grep_finds_the_word(
    about: CodeAnswers, name: str, paths: list[str]
) -> None:
    answer_text = about.what_touches(symbol=name)
    defined = about.impact_of(symbols=[name])
    for path in paths:
        assert path in answer_text or path in defined, path


def test_relations_of_a_name_have_its_uses_certain_ones_first(driver: Driver) -> None:
    walker = Walker(driver.session.catalog)
    [use] = walker.walk_from_name(TENANT, Caller(), "OrderRepo::lookupOrder").uses
    assert (use.kind, use.source, use.how) == ("calls", "Service::total", "name")
    assert (use.uri, use.line_start) == ("repo/kt/Service.kt", 4)
    uses = walker.walk_from_name(TENANT, Caller(), "Krate::owners", direction="in").uses
    assert {(one.how, one.confidence) for one in uses} == {("name", 0.8), ("possible", 1 / 3)}
    assert walker.walk_from_name(TENANT, Caller(), "Krate::owners", direction="out").uses == ()


def test_lines_of_a_common_name_are_counted_beyond_those_that_are_kept(
    about: CodeAnswers,
) -> None:
    answer_text = about.what_touches(symbol="ping_all")
    assert "lua/many.lua:3 " in answer_text
    assert "at least 20 places not looked at" in answer_text


def test_names_of_a_text_leave_with_it(
    about: CodeAnswers, shared_installation: Installation, driver: Driver
) -> None:
    root = shared_installation.home.parent / "sources" / TENANT
    name = "scan_once_for_this_test"
    (root / "lib" / "once.rb").write_text(f"def {name}\nend\n")
    driver.sync(TENANT)
    assert "lib/once.rb" in about.impact_of(symbols=[name]) + about.outline("lib/once.rb")
    (root / "lib" / "once.rb").unlink()
    driver.sync(TENANT, allow_deletes=True)
    count = select(func.count()).select_from(name_uses)
    wanted = name_uses.c.tenant == TENANT, name_uses.c.names.contains(name)
    with driver.session.catalog.database.begin() as connection:
        assert connection.scalar(count.where(*wanted)) == 0
        assert connection.scalar(count.where(name_uses.c.tenant == TENANT))
