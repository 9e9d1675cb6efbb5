"""Units of the definitions that tag queries find."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.reading import read_code
from tests.cost import assert_linear

SUPERTYPES = {"extends", "implements", "uses_trait"}
RUBY = """# A reply.
class Comment < ApplicationRecord
  belongs_to :story

  # Renders it.
  def render
    format { |f| f.call(self) }
  end

  def self.latest(count)
    order(:id).limit(count)
  end

  def valid?
    true
  end
end
"""
CSHARP = """namespace Shop {
    [ApiController]
    public class OrdersController : ControllerBase
    {
        [HttpGet("{id}")]
        public async Task<ActionResult<Order>> GetOrder(int id)
        {
            if (id == 0) { return NotFound(id); }
            return await queries.Get(id);
        }
    }
}
"""
CPP = """namespace leveldb {
Status DBImpl::Get(const ReadOptions& options, const Slice& key,
                   std::string* value) {
  return Find(key);
}
static int helper(int a) { return a; }
}
"""
KOTLIN = """package a.b

data class User(val id: Int)

class Repo(private val db: Db) {
    suspend fun find(id: Int): User = db.get(id)
}
"""
ELIXIR = """defmodule Shop.Orders do
  def list(query) do
    query
  end
  defp hidden, do: 1
end
"""


@pytest.mark.parametrize(
    ("media_type", "text", "symbols"),
    [
        ("ruby", RUBY, ["Comment", "Comment::render", "Comment::latest", "Comment::valid?"]),
        (
            *("csharp", CSHARP),
            ["Shop", "Shop::OrdersController", "Shop::OrdersController::GetOrder"],
        ),
        ("c++", CPP, ["leveldb", "leveldb::DBImpl::Get", "leveldb::helper"]),
        ("kotlin", KOTLIN, ["User", "Repo", "Repo::find"]),
        ("elixir", ELIXIR, ["Shop::Orders", "Shop::Orders::list", "Shop::Orders::hidden"]),
        ("shell", "usage() {\n  echo hi\n}\nfunction build {\n  make\n}\n", ["usage", "build"]),
        ("lua", "local function one(a)\n  return a\nend\n", ["one"]),
        ("protobuf", "message Order {\n  string id = 1;\n}\n", ["Order"]),
        ("prisma", "model User {\n  id Int @id\n}\n", ["User"]),
    ],
)
def test_each_definition_is_a_unit_with_a_nested_name(
    media_type: str, text: str, symbols: list[str]
) -> None:
    reading = read_code(text, f"text/x-{media_type}")
    assert [unit.symbol for unit in reading.units if unit.symbol] == symbols
    declared = [fact.symbol for fact in reading.facts if fact.kind == "declares"]
    assert declared == symbols
    covered = "".join(text[unit.start : unit.end] for unit in reading.units)
    assert "".join(covered.split()) == "".join(text.split())


def test_a_comment_belongs_to_the_definition_below_it() -> None:
    reading = read_code(RUBY, "text/x-ruby")
    render = next(unit for unit in reading.units if unit.symbol == "Comment::render")
    assert RUBY[render.start : render.end].lstrip().startswith("# Renders it.")


def test_words_of_queries_and_prose_define_nothing() -> None:
    text = "sql = <<~SQL\n  select id from comments\n  union all\n  select id from type of\nSQL\n"
    assert not [unit for unit in read_code(text, "text/x-ruby").units if unit.symbol]


def test_what_only_closes_a_type_belongs_to_its_last_member() -> None:
    reading = read_code("class A\n  def b\n    1\n  end\nend\n", "text/x-ruby")
    assert [unit.role for unit in reading.units] == ["class", "method"]


def test_constants_and_signatures_share_a_chunk_with_their_neighbours() -> None:
    text = "class A {\n  void b();\n  void c();\n};\n"
    alone = {unit.symbol: unit.alone for unit in read_code(text, "text/x-c++").units if unit.symbol}
    assert alone == {"A": True, "A::b": False, "A::c": False}


@pytest.mark.parametrize(
    ("media_type", "text", "stated"),
    [
        (
            "csharp",
            (
                "namespace Shop.Data {\n"
                "  public interface IOrders : IReads<Order> { Task Add(); }\n"
                "  public class Orders : Base<Order>, Core.IOrders, Idle { }\n"
                "  public record Line(int Id) : Row(Id), ILine;\n"
                "  struct Money : IEquatable<Money> { }\n"
                "  enum Size : byte { Small }\n}\n"
            ),
            [
                "Shop::Data::IOrders extends IReads",
                "Shop::Data::Orders extends Base",
                "Shop::Data::Orders implements Core::IOrders",
                "Shop::Data::Orders extends Idle",
                "Shop::Data::Line extends Row",
                "Shop::Data::Line implements ILine",
                "Shop::Data::Money implements IEquatable",
            ],
        ),
        (
            "kotlin",
            (
                "interface Repo : Reads<Int>\n"
                "class OrderRepo(db: Db) : Base(db), Repo, Logs by console {\n"
                "  val timer = object : Timer() {}\n"
                "  fun run() { class Inner : Hidden() }\n}\n"
                "object Orders : Repo\nenum class State : Coded { OPEN }\n"
            ),
            [
                "Repo extends Reads",
                "OrderRepo extends Base",
                "OrderRepo implements Repo",
                "OrderRepo implements Logs",
                "Orders implements Repo",
                "State implements Coded",
            ],
        ),
        (
            "ruby",
            (
                "module Admin\n  class Users < ::ApplicationController\n"
                "    include Pages, Admin::Sorted\n"
                "    def index\n      list.extend Hidden\n    end\n  end\nend\n"
                "include Outside\nRow = Struct.new(:id)\nclass Line < Struct.new(:id)\nend\n"
            ),
            [
                "Admin::Users extends ApplicationController",
                "Admin::Users uses_trait Pages",
                "Admin::Users uses_trait Admin::Sorted",
            ],
        ),
        (
            "c++",
            (
                "namespace db {\nclass Table : public Iterator, private util::Cache<int> {\n"
                "  struct Row : Cell {};\n};\n}\n"
            ),
            [
                "db::Table extends Iterator",
                "db::Table extends util::Cache",
                "db::Table::Row extends Cell",
            ],
        ),
        (
            "scala",
            (
                "trait Priced extends Named\n"
                "case class Order(id: Int) extends Base[Int](id) with Priced with core.Stored\n"
                "object Orders extends Repo\n"
            ),
            [
                "Priced extends Named",
                "Order extends Base",
                "Order implements Priced",
                "Order implements core::Stored",
                "Orders extends Repo",
            ],
        ),
        (
            "dart",
            (
                "class CartRepo extends Repo<Cart> with Logs implements Closeable, Sized {}\n"
                "abstract class Shelf implements Sized {}\n"
            ),
            [
                "CartRepo extends Repo",
                "CartRepo uses_trait Logs",
                "CartRepo implements Closeable",
                "CartRepo implements Sized",
                "Shelf implements Sized",
            ],
        ),
        (
            "elixir",
            "defmodule Shop.Mail do\n  @behaviour Shop.Sender\nend\n",
            ["Shop::Mail implements Shop::Sender"],
        ),
    ],
)
def test_the_supertypes_of_each_type_are_stated(
    media_type: str, text: str, stated: list[str]
) -> None:
    facts = [
        fact for fact in read_code(text, f"text/x-{media_type}").facts if fact.kind in SUPERTYPES
    ]
    written = [f"{fact.symbol} {fact.kind} {fact.values['name']}" for fact in facts]
    assert written == [*map(_scoped, stated)]
    for fact in facts:
        last = str(fact.values["name"]).rpartition(":")[2]
        assert last in text[fact.start : fact.end]
        assert "\n" not in text[fact.start : fact.end]


def _scoped(stated: str) -> str:
    before, _, name = stated.rpartition(" ")
    return f"{before} scoped:{name}"


def test_a_macro_before_the_name_of_a_class_is_ignored() -> None:
    text = (
        "namespace db {\nclass DB_EXPORT Env {\n public:\n  virtual int Open(int a) = 0;\n};\n"
        "struct DB_EXPORT Disk final : public Env {\n  int Open(int a) override { return a; }\n};\n"
        "class TABLE : Env {};\n}\n"
    )
    facts = read_code(text, "text/x-c++").facts
    assert [fact.symbol for fact in facts if fact.kind == "declares"] == [
        *("db", "db::Env", "db::Env::Open", "db::Disk", "db::Disk::Open", "db::TABLE")
    ]
    assert [fact.symbol for fact in facts if fact.kind == "extends"] == ["db::Disk", "db::TABLE"]
    shown = next(fact for fact in facts if fact.symbol == "db::Env")
    assert text[shown.start : shown.end].startswith("class DB_EXPORT Env {")


def test_types_in_capitalized_namespaces_are_also_found_by_their_last_part() -> None:
    declared = {
        fact.symbol: fact.values.get("called")
        for fact in read_code(CSHARP, "text/x-csharp").facts
        if fact.kind == "declares"
    }
    assert declared["Shop::OrdersController"] == ["", "orderscontroller"]
    assert declared["Shop::OrdersController::GetOrder"] is None


def test_supertypes_are_found_in_linear_time() -> None:
    def text(count: int) -> str:
        return "".join(f"class A{one} : public B{one} {{ int x; }};\n" for one in range(count))

    assert_linear(lambda count: read_code(text(count), "text/x-c++"), 300)
