"""Units of the definitions that tag queries find."""

from __future__ import annotations

import pytest

from rag_assets.systems.code_memory.reading import read_code

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
