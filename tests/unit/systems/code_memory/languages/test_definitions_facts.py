"""Facts of each language: symbols, base classes, and calls with known receivers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_assets.systems.code_memory.languages.components import read_vue
from rag_assets.systems.code_memory.languages.javascript import read_javascript, read_typescript
from rag_assets.systems.code_memory.languages.sql import read_sql
from tests.unit.systems.code_memory.languages.readers import READERS, named
from tests.unit.systems.code_memory.languages.samples import SAMPLES

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
def test_calls_are_told_where_the_receiver_is_known(language: str) -> None:
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
def test_ancestors_are_told(language: str) -> None:
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
    found = [
        (fact.values["method"], fact.values["path"])
        for fact in read_javascript(text).facts
        if fact.kind == "fetches"
    ]
    assert found == [
        ("POST", "/users/{}/x"),
        ("GET", "/api/invoices/{}"),
        ("PUT", "/a"),
        ("DELETE", "/b"),
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
    assert [symbol for kind, symbol in made if kind == "declares"] == [
        *("shop.invoices", "i_x", "f", "tr", "p", "public.My View")
    ]
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


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "java",
            (
                "package shop;\nclass Checkout {\n  private Payments payments;\n"
                "  void pay() { payments.charge(); }\n"
                "  void other(Cash payments) { payments.charge(); }\n"
                "  void unknown() { var payments = find(); payments.charge(); }\n}\n"
            ),
        ),
        (
            "swift",
            (
                "class Checkout {\n  let payments: Payments\n"
                "  func pay() { payments.charge() }\n"
                "  func other(payments: Cash) { payments.charge() }\n"
                "  func unknown() { let payments = find(); payments.charge() }\n}\n"
            ),
        ),
    ],
)
def test_a_field_is_a_receiver_without_its_instance_unless_a_local_name_hides_it(
    language: str, text: str
) -> None:
    calls = [fact for fact in READERS[language](text).facts if fact.kind == "calls"]
    assert {
        (call.symbol.rpartition(".")[2], call.values["name"])
        for call in calls
        if call.values["name"].endswith("charge")
    } == {("pay", "Payments.charge"), ("other", "Cash.charge")}


def test_what_no_file_of_go_binds_is_of_its_package() -> None:
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
    assert named(READERS["go"](text), "calls") == {
        ("bills.F", f"bills.{name}") for name in ("T", "U", "T.M", "U.N", "helper")
    }


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
    [whole] = [
        fact
        for fact in READERS[language](text).facts
        if fact.kind == "declares" and fact.symbol.endswith("A")
    ]
    assert text[whole.end - 1 : whole.end] == "}"
    assert text[whole.start : whole.end].count("\n") >= len("{}")
