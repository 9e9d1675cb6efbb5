"""Languages that have only tags."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from time import process_time

import pytest

from rag_assets.ingest.parsing.media_types import SOURCE_CODE, find_media_type
from rag_assets.systems.code_memory.languages.name_index import index_names
from rag_assets.systems.code_memory.languages.tags import (
    TagGrammar,
    TagLanguage,
    Tags,
    load_query,
    load_tag_languages,
    read_tags,
)
from rag_assets.systems.code_memory.languages.tree import get_syntax_tree
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.symbols.model import USES, NameUse, list_names, parse_uses
from tests.cost import assert_linear
from tests.unit.systems.code_memory.languages.readers import assert_covers, assert_units_cover

SAMPLES = Path(__file__).parent / "tag_samples"
ASKED_FOR = """
c c++ csharp clojure dart elixir elm erlang go haskell java javascript julia kotlin lua ocaml
php python r ruby rust scala shell sql swift typescript zig terraform protobuf graphql prisma
"""
GRAMMARS = [grammar for one in load_tag_languages().values() for grammar in one.grammars]


FILES = sorted(path for path in SAMPLES.iterdir() if path.suffix != ".txt")
"""The samples, each of which has a list of expected tags."""


def language_of(path: Path) -> TagLanguage:
    media_type = find_media_type(path.name)
    assert media_type is not None
    return load_tag_languages()[media_type.removeprefix("text/x-")]


def format_tags(tags: Tags) -> str:
    """Return tags in the format of the lists of expected tags."""
    lines = [f"{one.line}-{one.line_end} {one.kind} {one.name}" for one in tags.definitions]
    lines.append("--")
    for one in tags.references:
        called = f"{one.receiver}.{one.name}" if one.receiver else one.name
        lines.append(f"{one.line} {one.kind} {called}")
    return "\n".join(lines) + "\n"


def test_every_language_is_listed_and_has_a_media_type_and_a_sample() -> None:
    listed = load_tag_languages().keys()
    assert listed >= set(ASKED_FOR.split())
    assert {f"text/x-{name}" for name in listed} <= SOURCE_CODE
    assert {language_of(path).name for path in FILES} == listed


@pytest.mark.parametrize("grammar", GRAMMARS, ids=lambda one: one.query)
def test_a_query_compiles_against_the_locked_grammar(grammar: TagGrammar) -> None:
    assert load_query(grammar).pattern_count > 0


def test_definitions_in_unreadable_lines_are_found_by_their_form() -> None:
    text = (
        "first() {\n  echo 1\n}\n\nsecond() {\n  if [[ $a =~ ([^]]*)[0-9]]]*} ]]; then\n"
        "    echo `date\n  fi\n}\n\nfunction third() {\n  echo 3\n}\n"
    )
    tags = read_tags(text, load_tag_languages()["shell"])
    assert [(one.name, one.line, one.line_end) for one in tags.definitions] == [
        ("first", 1, 3),
        ("second", 5, 9),
        ("third", 11, 13),
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.suffix[1:])
def test_definitions_and_references_of_a_sample(path: Path) -> None:
    tags = read_tags(path.read_text(), language_of(path))
    assert format_tags(tags) == path.with_name(f"{path.name}.tags.txt").read_text()


@pytest.mark.parametrize("path", FILES, ids=lambda one: one.suffix[1:])
def test_units_cover_a_sample_and_each_word_is_in_its_index(path: Path) -> None:
    text, language = path.read_text(), language_of(path)
    reading = read_code(text, f"text/x-{language.name}")
    assert_units_cover(text, reading)
    [index] = [str(fact.values["names"]) for fact in reading.facts if fact.kind == USES]
    names = set(list_names(index))
    tags = read_tags(text, language)
    assert {reference.name for reference in tags.references} <= names
    assert {definition.name.rpartition("::")[2] for definition in tags.definitions} <= names


@pytest.mark.parametrize(
    ("language", "text", "called"),
    [
        ("go", "package a\nfunc f() { db.Tokens().Create(x) }\n", "Tokens.Create"),
        ("ruby", "Query.new(1).run(2)\n", "Query.run"),
        ("rust", "fn f() { krate.owners(conn); }\n", "krate.owners"),
        ("ruby", "class A\n  def f\n    @users.build(1)\n  end\nend\n", "users.build"),
        ("csharp", "class A { void F() { this.Send(1); } }\n", "self.Send"),
        ("php", "<?php $this->repo->load($x)->save();\n", "load.save"),
        ("c++", "void f() { a[0]->b(1).run(); }\n", "b.run"),
    ],
)
def test_a_call_keeps_the_last_name_in_front_of_it(language: str, text: str, called: str) -> None:
    references = read_tags(text, load_tag_languages()[language]).references
    assert called in {f"{reference.receiver}.{reference.name}" for reference in references}


def read_index(text: str, name: str) -> dict[str, str]:
    """Return the packed uses in the index of a text, by name."""
    language = load_tag_languages()[name]
    index = index_names(text, read_tags(text, language), language)
    return dict(line.split("|", 1) for line in index.split("\n"))


def test_an_index_has_the_uses_of_a_name_and_counts_omitted_ones() -> None:
    lines = "\n".join(f"  owners.each {{ |o| other_name{n % 2} }}" for n in range(30))
    text = f"# the owners of a krate, see KrateOwner\ndef owners\n{lines}\nend\nowners(1)\n"
    packed = read_index(text, "ruby")
    assert "the" not in packed
    assert packed["KrateOwner"] == "n1"
    owners, other = parse_uses(packed["owners"]), parse_uses(packed["other_name0"])
    assert owners.uses[0] == NameUse("definition", 2)
    assert NameUse("call", 34) in owners.uses
    assert sum(use.kind == "mention" for use in other.uses) + other.omitted == 15


def test_an_index_of_commented_lines_takes_linear_time() -> None:
    language = load_tag_languages()["python"]

    def index(lines: int) -> None:
        text = "x = 1  # foo_bar\n" * lines
        comments = tuple((17 * n + 7, 17 * n + 16) for n in range(lines))
        index_names(text, Tags(comments=comments), language)

    assert_linear(index, 4_000)


def test_an_index_of_too_many_names_keeps_definitions_and_uses_before_mentions() -> None:
    names = "\n".join(f"var A{n} = b{n};" for n in range(15_000))
    text = f"{names}\nfunction zebra() {{}}\nzebra();\n"
    packed = read_index(text, "javascript")
    assert len(packed) == 20_000
    assert [use.kind for use in parse_uses(packed["zebra"]).uses] == ["definition", "call"]


def test_only_words_of_prose_that_look_like_names_are_indexed() -> None:
    text = "# Reading\n\nThe store calls `find_order` and OrderRepo.\n"
    reading = read_code(text, "text/markdown")
    [index] = [str(fact.values["names"]) for fact in reading.facts if fact.kind == USES]
    assert {"find_order", "OrderRepo"} <= set(list_names(index))
    assert "calls" not in list_names(index)


def test_a_long_text_has_the_tags_of_its_parts() -> None:
    text, language = (SAMPLES / "sample.rb").read_text(), load_tag_languages()["ruby"]
    once, many = read_tags(text, language), read_tags(text * 150, language)
    assert len(many.definitions) == 150 * len(once.definitions)
    assert len(many.references) == 150 * len(once.references)


HOSTILE = (
    "(" * 100_000,
    "{" * 5_000 + "}" * 5_000,
    "int a[] = {" + "0," * 20_000 + "};\n",
    "class A {" * 1_500,
    "a.b(" * 4_000,
    "def " * 4_000,
    "\x00\x01\x02" * 1_000,
    "\ud7ff\U0001f600é|" * 2_000,
    "'" * 30_001,
    "x" * 200_000,
    "|a|b\n" * 3_000,
    "",
)


@pytest.mark.parametrize("language", sorted(load_tag_languages()))
def test_hostile_text_is_read_in_bounded_time_and_covered(language: str) -> None:
    for text in HOSTILE:
        reading = read_code(text, f"text/x-{language}")
        assert_covers(text, reading)
        for fact in reading.facts:
            if fact.kind == USES:
                for line in filter(None, str(fact.values["names"]).split("\n")):
                    assert parse_uses(line.partition("|")[2]).uses


def test_damaged_text_leaves_little_memory() -> None:
    """The parser reads this text a million times, and never releases the slices it receives."""
    text = "\ud7ff\U0001f600é|" * 5_000
    tracemalloc.start()
    try:
        read_tags(text, load_tag_languages()["lua"])
        get_syntax_tree.cache_clear()
        gc.collect()
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 30_000_000


NESTED = {
    **dict.fromkeys(("clojure",), ("(f ", ")")),
    **dict.fromkeys(("dart", "elixir", "go", "javascript", "python", "ruby"), ("f(", ")")),
    **dict.fromkeys(("c", "csharp", "java"), ("a.b(", ")")),
    "rust": ("{ ", "}"),
}
REPEATED = (".b()", " + b", ", a", "\nf(a)\n", "x", "\x00\x01\u20ac")


@pytest.mark.parametrize("language", sorted(NESTED))
def test_nested_text_takes_linear_time(language: str) -> None:
    first, last = NESTED[language]

    def read(levels: int) -> None:
        read_tags(first * levels + last * levels, load_tag_languages()[language])
        get_syntax_tree.cache_clear()

    assert_linear(read, 700)


@pytest.mark.parametrize("unit", REPEATED)
@pytest.mark.parametrize("language", ["c++", "csharp", "go", "ruby", "typescript"])
def test_repeated_text_takes_linear_time(language: str, unit: str) -> None:
    def read(times: int) -> None:
        read_tags("x = a" + unit * times, load_tag_languages()[language])
        get_syntax_tree.cache_clear()

    assert_linear(read, 1_000)


def test_a_query_stops_soon_after_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag_assets.systems.code_memory.languages.tags._MAX_QUERY_SECONDS", 0.05)
    started = process_time()
    tags = read_tags("f(a, b, c);\n" * 40_000, load_tag_languages()["clojure"])
    get_syntax_tree.cache_clear()
    assert "stopped at its limit" in tags.note
    assert tags.definitions == tags.references == ()
    assert process_time() - started < 5


def test_deep_nesting_beyond_a_window_is_left_out() -> None:
    tags = read_tags("(f " * 60_000 + ")" * 60_000, load_tag_languages()["clojure"])
    get_syntax_tree.cache_clear()
    assert tags.note == "the clojure query stopped at its limit (240000 characters)"


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
    public class Orders : ControllerBase
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
        ("csharp", CSHARP, ["Shop", "Shop::Orders", "Shop::Orders::GetOrder"]),
        ("c++", CPP, ["leveldb", "leveldb::DBImpl::Get", "leveldb::helper"]),
        ("kotlin", KOTLIN, ["User", "Repo", "Repo::find"]),
        ("elixir", ELIXIR, ["Shop::Orders", "Shop::Orders::list", "Shop::Orders::hidden"]),
        ("shell", "usage() {\n  echo hi\n}\nfunction build {\n  make\n}\n", ["usage", "build"]),
        ("lua", "local function one(a)\n  return a\nend\n", ["one"]),
        ("protobuf", "message Order {\n  string id = 1;\n}\n", ["Order"]),
        ("prisma", "model User {\n  id Int @id\n}\n", ["User"]),
    ],
)
def test_a_definition_is_a_unit_with_a_nested_name(
    media_type: str, text: str, symbols: list[str]
) -> None:
    reading = read_code(text, f"text/x-{media_type}")
    assert [unit.symbol for unit in reading.units if unit.symbol] == symbols
    declared = [fact.symbol for fact in reading.facts if fact.kind == "declares"]
    assert declared == symbols
    assert_covers(text, reading)


LUA = "local M = {}\n\n-- Adds.\nlocal add = function(a)\n  return a\nend\n\nreturn M\n"


@pytest.mark.parametrize(
    ("language", "text", "start"),
    [("ruby", RUBY, "# Renders it.\n  def render"), ("lua", LUA, "-- Adds.\nlocal add =")],
)
def test_a_comment_belongs_to_the_definition_below_it(language: str, text: str, start: str) -> None:
    units = read_code(text, f"text/x-{language}").units
    assert any(text[unit.start : unit.end].lstrip().startswith(start) for unit in units)


def test_sql_in_a_string_defines_nothing() -> None:
    text = "sql = <<~SQL\n  select id from comments\n  union all\n  select id from type of\nSQL\n"
    assert not [unit for unit in read_code(text, "text/x-ruby").units if unit.symbol]


def test_the_end_of_a_type_belongs_to_its_last_member() -> None:
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
                *("Shop::Data::IOrders extends IReads", "Shop::Data::Orders extends Base"),
                *("Shop::Data::Orders implements Core::IOrders", "Shop::Data::Orders extends Idle"),
                *("Shop::Data::Line extends Row", "Shop::Data::Line implements ILine"),
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
                *("Repo extends Reads", "OrderRepo extends Base", "OrderRepo implements Repo"),
                *("OrderRepo implements Logs", "Orders implements Repo", "State implements Coded"),
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
                *("Priced extends Named", "Order extends Base", "Order implements Priced"),
                *("Order implements core::Stored", "Orders extends Repo"),
            ],
        ),
        (
            "dart",
            (
                "class CartRepo extends Repo<Cart> with Logs implements Closeable, Sized {}\n"
                "abstract class Shelf implements Sized {}\n"
            ),
            [
                *("CartRepo extends Repo", "CartRepo uses_trait Logs"),
                *("CartRepo implements Closeable", "CartRepo implements Sized"),
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
def test_the_supertypes_of_a_type_are_stated(media_type: str, text: str, stated: list[str]) -> None:
    reading, kinds = (
        read_code(text, f"text/x-{media_type}"),
        {"extends", "implements", "uses_trait"},
    )
    facts = [fact for fact in reading.facts if fact.kind in kinds]
    written = [f"{fact.symbol} {fact.kind} {fact.values['name']}" for fact in facts]
    assert [line.replace("scoped:", "") for line in written] == stated
    for fact in facts:
        assert str(fact.values["name"]).startswith("scoped:")
        last = str(fact.values["name"]).rpartition(":")[2]
        assert last in text[fact.start : fact.end]
        assert "\n" not in text[fact.start : fact.end]


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
    assert declared["Shop::Orders"] == ["", "orders"]
    assert declared["Shop::Orders::GetOrder"] is None


def test_supertypes_are_found_in_linear_time() -> None:
    def text(count: int) -> str:
        return "".join(f"class A{one} : public B{one} {{ int x; }};\n" for one in range(count))

    assert_linear(lambda count: read_code(text(count), "text/x-c++"), 300)
