"""Definitions of languages with a grammar: their cover of a file, and their facts."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.systems.code_memory.languages.components import read_vue
from rag_assets.systems.code_memory.languages.javascript import (
    read_any_typescript,
    read_javascript,
    read_typescript,
)
from rag_assets.systems.code_memory.languages.sql import read_sql
from tests.unit.systems.code_memory.languages.readers import READERS, assert_covers, named
from tests.unit.systems.code_memory.languages.samples import SAMPLES

LANGUAGES = sorted(READERS)
PIECES = st.sampled_from(
    [piece for text in SAMPLES.values() for piece in text.splitlines(keepends=True)]
    + [*("\r\n", "\n\n", "é😀", "/*", "*/", "<script>", "</script>"), *"{}('\"`;"]
)


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@settings(max_examples=60, deadline=None)
@given(text=st.lists(PIECES, max_size=25).map("".join))
def test_units_cover_damaged_code(language: str, text: str) -> None:
    assert_covers(text, READERS[language](text))


@pytest.mark.parametrize("language", sorted(SAMPLES))
def test_units_cover_samples_with_either_line_end(language: str) -> None:
    text = SAMPLES[language]
    for written in (text, text.replace("\n", "\r\n"), "😀é\n" + text):
        assert_covers(written, READERS[language](written))


HOSTILE = {
    "brackets": "(" * 100_000,
    "braces": "{" * 50_000 + "}" * 50_000,
    "line": "x" * 10_000_000,
    "quotes": "'" + "\\'" * 100_000,
    "chain": "a" + ".b()" * 20_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("text", HOSTILE.values(), ids=list(HOSTILE))
def test_hostile_text_is_read(language: str, text: str) -> None:
    start = time.process_time()
    assert_covers(text, READERS[language](text))
    assert time.process_time() - start < 30


def test_unreadable_text_is_cut_at_blank_lines_with_a_note() -> None:
    text = "]]] }}} %% ))\n\n(((( ]]] @@ ##\n"
    code = READERS["java"](text)
    assert [unit.role for unit in code.units] == ["rest", "rest"]
    assert "cut at blank lines" in code.notes[0]
    assert "@@" not in code.notes[0]


def test_a_definition_beside_an_error_stays_a_unit() -> None:
    code = READERS["go"]("package p\n\nfunc A() {}\n\nfunc B( {\n\nfunc C() {}\n" + "// x\n" * 40)
    assert "p.A" in {unit.symbol for unit in code.units}
    assert code.notes


def test_elements_with_an_error_among_them_are_read_as_elements() -> None:
    text = "import a from 'b';\nexport default () => <p title={<b>c</b>}>files & folders</p>;\n"
    code = read_any_typescript(text)
    assert [fact.values["name"] for fact in code.facts if fact.kind == "exports"] == ["default"]
    assert code.notes


def test_a_large_type_is_its_head_and_its_members() -> None:
    body = "".join(f"  m{n}() {{ return '{'x' * 300}' }}\n" for n in range(30))
    text = f"/** doc */\nexport class Big {{\n  field = 1\n{body}}}\n"
    units = READERS["typescript"](text).units
    assert [unit.symbol for unit in units] == ["Big", *(f"Big.m{n}" for n in range(30))]
    assert text[units[0].start : units[0].end] == "/** doc */\nexport class Big {\n  field = 1"
    assert text[units[-1].start : units[-1].end].endswith("}\n}")
    small = READERS["typescript"]("export class Small { a() {} b() {} }").units
    assert [unit.symbol for unit in small] == ["Small"]


EXPORTS = Path(__file__).parent / "typescript_exports"
EXPECTED = json.loads((EXPORTS / "expected.json").read_text())
CALLS = {
    "typescript": {("A.constructor", "Svc.go"), ("A.constructor", "A.y"), ("A.m", "A.y")},
    "swift": {("V.go", "Foo.run"), ("V.go", "V.h"), ("V.go", "Svc.save"), ("V.body", "Text")},
    "go": {("billing.A.M", "fmt.Println"), ("billing.A.M", "billing.H.Run")},
    "java": {("a.b.A.m", "c.D.stat"), ("a.b.A.m", "a.b.A.n"), ("a.b.A.A", "Svc.stop")},
    "rust": {("A::new", "std::collections::HashMap::new"), ("A::new", "Foo::run")},
}
NEVER = {
    "typescript": {("helper", "d"), ("helper", "default")},
    "swift": set(),
    "go": {("billing.L", "fmt.Foo")},
    "java": {("a.b.A.m", "bar")},
    "rust": {("A::new", "HashMap::new")},
}


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_exports_are_what_the_compiler_says(name: str) -> None:
    languages = {".ts": "typescript", ".tsx": "tsx", ".js": "javascript"}
    read = READERS[languages[Path(name).suffix]]
    code = read((EXPORTS / name).read_text())
    found = {fact.values["name"] for fact in code.facts if fact.kind == "exports"} - {"*"}
    assert found == set(EXPECTED[name])


@pytest.mark.parametrize("language", sorted(CALLS))
def test_calls_are_stated_where_the_receiver_is_known(language: str) -> None:
    calls = named(READERS[language](SAMPLES[language]), "calls")
    assert calls >= CALLS[language]
    assert not calls & NEVER[language]


ANCESTORS = {
    "typescript": ({("A", "B")}, {("A", "D"), ("A", "E")}),
    "swift": ({("C", "D"), ("P", "AnyObject")}, {("V", "View"), ("Foo.Bar", "Codable")}),
    "java": ({("a.b.A", "B"), ("a.b.I", "J")}, {("a.b.A", "c.D"), ("a.b.R", "a.b.I")}),
    "rust": ({("Tr", "Su"), ("Tr", "Sd")}, {("A", "Tr")}),
    "go": ({("billing.A", "billing.B"), ("billing.A", "b.D")}, set()),
}


@pytest.mark.parametrize("language", sorted(ANCESTORS))
def test_ancestors_are_stated(language: str) -> None:
    code = READERS[language](SAMPLES[language])
    extends, implements = ANCESTORS[language]
    assert named(code, "extends") >= extends
    assert named(code, "implements") >= implements


def test_requests_have_their_method_and_a_path_with_holes() -> None:
    text = """
    const api = axios.create({ baseURL: '/api/' })
    fetch(`/users/${id}/x`, { method: 'post' })
    api.get('/invoices/' + id)
    axios({ url: '/a', method: 'PUT' })
    this.$http.delete('/b')
    router.get('/not-a-request', handler)
    fetch(url)
    """
    fetches = [fact.values for fact in read_javascript(text).facts if fact.kind == "fetches"]
    assert [f"{values['method']} {values['path']}" for values in fetches] == [
        *("POST /users/{}/x", "GET /api/invoices/{}", "PUT /a", "DELETE /b")
    ]


def test_a_component_is_one_export_with_offsets_into_the_whole_file() -> None:
    text = SAMPLES["vue"]
    code = read_vue(text)
    units = {unit.symbol: text[unit.start : unit.end] for unit in code.units if unit.symbol}
    assert units["shared"] == "export const shared = 1"
    assert units["Cart"].startswith('<script setup lang="ts"')
    assert units["Cart"].endswith("</script>")
    assert ("Cart.go", "save") in named(code, "calls")
    declared = next(fact for fact in code.facts if fact.symbol == "Cart.go")
    assert text[declared.start : declared.end].startswith("function go(")


def test_statements_of_sql_are_named_by_what_they_make() -> None:
    code = read_sql(SAMPLES["sql"])
    made = [(fact.kind, fact.symbol) for fact in code.facts]
    declared = [symbol for kind, symbol in made if kind == "declares"]
    assert declared == ["shop.invoices", "i_x", "f", "tr", "p", "public.My View"]
    assert {symbol for kind, symbol in made if kind == "changes"} == {"public.users", "old"}


def test_a_comment_belongs_to_the_definition_after_it() -> None:
    text = "// licence\n\n/** doc */\nexport const a = 1 // note\nexport const b = 2\n"
    found = [text[unit.start : unit.end] for unit in read_typescript(text).units]
    assert found == ["// licence", "/** doc */\nexport const a = 1 // note", "export const b = 2"]


def test_a_receiver_whose_name_begins_as_a_keyword_is_a_type() -> None:
    text = "package p\n\nfunc (m mapEncoder) Encode(f func(), g map[string]T) { f(); g.h() }\n"
    code = READERS["go"](text)
    assert [unit.symbol for unit in code.units if unit.symbol] == ["p.mapEncoder.Encode"]
    assert not named(code, "calls")


FIELDS = {
    "java": """package shop;
class Checkout {
  private Payments payments;
  void pay() { payments.charge(); }
  void other(Cash payments) { payments.charge(); }
  void unknown() { var payments = find(); payments.charge(); }
}
""",
    "swift": """class Checkout {
  let payments: Payments
  func pay() { payments.charge() }
  func other(payments: Cash) { payments.charge() }
  func unknown() { let payments = find(); payments.charge() }
}
""",
}


@pytest.mark.parametrize("language", FIELDS)
def test_a_field_is_a_receiver_unless_a_local_name_hides_it(language: str) -> None:
    calls = named(READERS[language](FIELDS[language]), "calls")
    assert {
        (symbol.rpartition(".")[2], name) for symbol, name in calls if name.endswith("charge")
    } == {("pay", "Payments.charge"), ("other", "Cash.charge")}


def test_a_name_that_a_file_of_go_does_not_bind_is_of_its_package() -> None:
    text = """package bills
func F(given func(), other *Other) {
	made := T{}
	kept := &U{A: 1}
	made.M()
	kept.N()
	helper()
	given()
	unknown := helper()
	unknown.X()
	_ = append(nil, len(other.list))
	for _, each := range other.list { each() }
}
"""
    names = ("T", "U", "T.M", "U.N", "helper")
    assert named(READERS["go"](text), "calls") == {("bills.F", f"bills.{name}") for name in names}


@pytest.mark.parametrize(
    ("language", "text", "calls"),
    [
        (
            "typescript",
            "import {B} from './b';\nexport class A extends B { f() { this.g(); this.f(); } }",
            {"A.g", "B.g", "A.f"},
        ),
        ("java", "package p; class A extends B { void f() { this.g(); } }", {"p.A.g", "B.g"}),
        ("swift", "class A: B { func f() { self.g(); self.f() } }", {"A.g", "B.g", "A.f"}),
    ],
)
def test_a_method_that_a_type_does_not_have_may_be_of_what_it_extends(
    language: str, text: str, calls: set[str]
) -> None:
    assert {name for _, name in named(READERS[language](text), "calls")} == calls


WHOLE = {
    "typescript": "export class A {\n  f() {\n    g();\n  }\n}\n",
    "swift": "@available(iOS 1, *)\nclass A {\n  func f() {\n    g()\n  }\n}\n",
    "go": "package a\n\ntype A struct {\n\tB int\n}\n",
    "java": "class A {\n  void f() {\n    g();\n  }\n}\n",
    "rust": "struct A {\n  b: u8,\n}\n",
}


@pytest.mark.parametrize("language", sorted(WHOLE))
def test_a_definition_has_all_of_its_lines(language: str) -> None:
    text = WHOLE[language]
    facts = READERS[language](text).facts
    [whole] = [one for one in facts if one.kind == "declares" and one.symbol.endswith("A")]
    assert text[whole.end - 1 : whole.end] == "}"
    assert text[whole.start : whole.end].count("\n") >= len("{}")
