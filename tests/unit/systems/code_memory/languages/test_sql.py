"""SQL in strings: the tables that it names, and the definition that contains it."""

import pytest

from rag_assets.systems.code_memory.languages.sql import add_queries
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from tests.cost import assert_linear

TYPESCRIPT = """
export async function views(id: string) {
  const { filter, tables } = parse(id);
  return rawQuery(`
    with recent as (select * from session where id = ${tables.map(one => `'${one}'`)})
    select count(*), extract(year from created_at)
    from (select * from ${schema}.website_event ${filter}) as t
    join recent on recent.id = t.id
    left join "event_data" on true
  `);
}
const joined = `inner join revenue on revenue.id = t.id`;
const said = "Select a file from folders";
const other = 'select one from the list';
"""
PYTHON = """
class Bills:
    def due(self, day):
        return self.rows(f'''
            SELECT * FROM {self.schema}.bills
            WHERE due < {day}
        ''')

    def pay(self):
        self.run("UPDATE bills b SET paid = true")
        self.run("insert into payments (id) values (1)")
        self.log("update failed, set from a file")
"""
GO = """package store
func (s *Store) Owners() {
	s.db.Query(`SELECT name FROM public.owners WHERE id = $1`)
}
"""
RUBY = """
class Report
  def rows
    execute("DELETE FROM reports WHERE id = #{id}")
  end
end
"""
RUBY_HERE = """
class Report
  def drop
    execute(<<~SQL.squish)
      DELETE FROM reports
      WHERE owner = "none" AND id IN (SELECT id FROM drafts)
    SQL
    log "update the menus"
  end
end
"""
RUST = """
fn follow() {
    sqlx::query!(
        r#"select exists(select 1 from follow) "followed!" from "user" join article using (id)"#,
    );
    sqlx::query!("insert into \\"user\\" (id) values (1)");
    let other = r##"update "author" set name = "#a" from seats"##;
}
"""
CSHARP = """
class Store {
    void Load() {
        db.Query(@"SELECT * FROM ""Users"" u JOIN ""sales"".""Orders"" o ON o.Id = u.Id");
        db.Query("SELECT * FROM [dbo].[Lines] JOIN dbo.[Parts] ON true");
    }
}
"""


ASKED = {
    "typescript": (
        (TYPESCRIPT, "javascript"),
        {":views": {"session", "website_event", "event_data"}, ":joined": {"revenue"}},
    ),
    "python": (
        (PYTHON, "python"),
        {":Bills.due": {"bills"}, ":Bills.pay": {"bills", "payments"}},
    ),
    "go": ((GO, "go"), {":store.Store.Owners": {"owners"}}),
    "ruby": ((RUBY + RUBY_HERE, "none"), {"": {"reports", "drafts"}}),
    "rust": ((RUST, "rust"), {":follow": {"follow", "user", "article", "author", "seats"}}),
    "csharp": ((CSHARP, "none"), {"": {"Users", "Orders", "Lines", "Parts"}}),
}


@pytest.mark.parametrize("language", ASKED)
def test_queries_name_their_tables(language: str) -> None:
    (text, names), expected = ASKED[language]
    facts = read_code(text, f"text/x-{language}").facts
    edges = build_relations(facts, names=names).edges  # type: ignore[arg-type]
    found: dict[str, set[str]] = {}
    for edge in edges:
        if edge.kind == "queries_table":
            found.setdefault(edge.source, set()).add(edge.target.removeprefix("table:"))
    assert found == expected


@pytest.mark.parametrize("text", ["'select " * 20_000, "`" + "${{" * 40_000, '"select(' * 20_000])
def test_strings_of_any_form_cost_little(text: str) -> None:
    kinds = {fact.kind for fact in read_code(text, "text/x-ruby").facts}
    assert "queries_table" not in kinds


@pytest.mark.parametrize(
    "unit",
    ["'select ", "\\'select ", "\\`join ", "'select \"select `join ", '"""select ', "'with a as ("],
)
def test_time_is_linear_in_what_a_text_repeats(unit: str) -> None:
    empty = read_code("", "text/x-ruby")
    assert_linear(lambda size: add_queries(unit * (size // len(unit)), empty), 30_000)
