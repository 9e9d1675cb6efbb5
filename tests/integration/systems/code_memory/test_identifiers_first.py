"""A search for the name of a definition returns the passage that defines it first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rag_assets.search import Retriever
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.systems.code_memory.answers import CodeAnswers
from tests.driving import Driver
from tests.installation import FAST, Installation

TENANT = "identifiers-first"
FILES: Mapping[str, str] = {
    "src/flags.h": "".join(f"#define FLAG_KEY_{n} {n}\n" for n in range(400))
    + "#define FLAG_KEY_NONE 0\n",
    "src/use.c": '#include "flags.h"\nint used(void) {\n  return FLAG_KEY_NONE + FLAG_KEY_7;\n}\n',
    "lib/file.ex": """defmodule Store do
  def link(source) do
    {:ok, source}
  end

  def link!(source) do
    case link(source) do
      {:ok, found} -> found
    end
  end

  def linked?(source) do
    link!(source) != nil
  end
end
""",
    "app/request.rb": """class Request
  def variant
    @variant
  end

  def variant=(value)
    @variant = value
  end
end
""",
    "db/table.cc": """namespace db {
class Table {
 public:
  Table(int rows) : rows_(rows) {}
  bool operator==(const Table& other) const { return rows_ == other.rows_; }
  int& operator[](int row) { return rows_; }
};

Table::~Table() {
  close(rows_);
}
}
""",
    "db/use.cc": """#include "table.h"
int compare(Table* table) {
  Table other(1);
  table->~Table();
  return other == *table;
}
""",
    "src/settings.py": """import os

LIMIT = int(os.environ.get("SHOP_LIMIT", "10"))


def refuse(order):
    raise ValueError(
        "an order may have at most ten lines"
    )
""",
    "src/limits.py": "def limit(order):\n    return order.limit or 10\n",
    "docs/shop.md": "# Shop\n\nSHOP_LIMIT is the number of lines, at most.\n",
    "app/variants.rb": """class Variants
  def all(request)
    request.variant = variant
  end
end
""",
}
ASKED = {
    "FLAG_KEY_NONE": ("src/flags.h", "#define FLAG_KEY_NONE 0"),
    "FLAG_KEY_7": ("src/flags.h", "#define FLAG_KEY_7 7"),
    "Store.link": ("lib/file.ex", "def link(source)"),
    "Store.link!": ("lib/file.ex", "def link!(source)"),
    "link!": ("lib/file.ex", "def link!(source)"),
    "linked?": ("lib/file.ex", "def linked?(source)"),
    "Request#variant=": ("app/request.rb", "def variant=(value)"),
    "variant=": ("app/request.rb", "def variant=(value)"),
    "db::Table": ("db/table.cc", "class Table {"),
    "~Table": ("db/table.cc", "Table::~Table()"),
    "Table::~Table": ("db/table.cc", "Table::~Table()"),
    "db::Table::operator==": ("db/table.cc", "operator==(const Table& other)"),
    "operator[]": ("db/table.cc", "operator[](int row)"),
    "Variants": ("app/variants.rb", "class Variants"),
}


@pytest.fixture(scope="module")
def retriever(shared_installation: Installation, driver: Driver) -> Retriever:
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
    return shared_installation.retriever


@pytest.mark.parametrize("name", ASKED)
def test_the_passage_that_defines_a_name_is_the_first_hit(retriever: Retriever, name: str) -> None:
    path, text = ASKED[name]
    first = retriever.search(TENANT, SearchRequest(query=name)).hits[0]
    assert first.uri == f"repo/{path}"
    assert text in first.text


@pytest.mark.parametrize(
    ("question", "place", "text"),
    [
        ("SHOP_LIMIT", "src/settings.py:3", 'LIMIT = int(os.environ.get("SHOP_LIMIT", "10"))'),
        (
            '"An order may have\n at most ten lines"',
            "src/settings.py:8",
            '"an order may have at most ten lines" )',
        ),
    ],
    ids=["setting", "error text"],
)
def test_the_passage_that_contains_the_question_is_the_first_hit_from_that_line_on(
    retriever: Retriever,
    driver: Driver,
    question: str,
    place: str,
    text: str,
) -> None:
    session = driver.session
    tenant = session.embedders.tenant(session.catalog.tenants.get(TENANT))
    about = CodeAnswers(DocumentReader(session.catalog, session.store), tenant, Caller())
    found = retriever.search(TENANT, SearchRequest(query=question))
    first, below = about.list_hits(found, question).splitlines()[:2]
    assert first.startswith(f"{place}  ")
    assert below.strip().startswith(text)
