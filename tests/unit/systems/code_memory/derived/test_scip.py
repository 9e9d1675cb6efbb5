"""References of real SCIP indexes, compared with the files that they describe."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rag_assets.systems.code_memory.derived.model import read_document, render_document
from rag_assets.systems.code_memory.derived.scip import (
    ScipIndex,
    ScipReferences,
    SourceFile,
    find_exact_references,
)
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.relations.relations import build_relations
from rag_assets.systems.code_memory.sources.repositories.names import find_repository_type
from rag_assets.systems.code_memory.sources.scip_file import render_index
from tests.scip_index import Document, index_of

PROJECTS = Path(__file__).parent / "indexed"
CHECKOUT = "shop/checkout.py"


def sources_of(project: str, changes: Mapping[str, str] | None = None) -> dict[str, SourceFile]:
    root = PROJECTS / project
    texts = {
        path.relative_to(root).as_posix(): path.read_text()
        for path in root.rglob("*")
        if path.suffix in {".py", ".ts"}
    }
    return read_sources(texts | dict(changes or {}))


def read_sources(texts: Mapping[str, str]) -> dict[str, SourceFile]:
    facts = {
        path: read_code(text, find_repository_type(path) or "").facts
        for path, text in texts.items()
    }
    return {path: SourceFile(f"repo/{path}", facts[path], text) for path, text in texts.items()}


def references_of(project: str, changes: Mapping[str, str] | None = None) -> ScipReferences:
    data = (PROJECTS / project / "index.scip").read_bytes()
    index = ScipIndex.read(render_index(data, "index.scip"))
    return find_exact_references([index], sources_of(project, changes))


def stated(found: ScipReferences, path: str) -> set[tuple[str, str, str, int]]:
    """Return kind, source, target and line of the statements about a file."""
    return {
        (statement.kind, statement.source, statement.target, statement.line_start)
        for document in found.documents
        for statement in document.statements
        if statement.path == path
    }


def test_exact_references_of_a_python_index_lead_to_the_method_of_the_receiver() -> None:
    found = references_of("shop")
    assert found.reports == [("index.scip", "8 documents read, 0 stale, ignored")]
    here = stated(found, CHECKOUT)
    check_out, remind = "shop.checkout.check_out", "shop.checkout.remind"
    assert ("calls", check_out, "shop.carts.Cart.total", 12) in here
    assert ("calls", check_out, "shop.models.Invoice.total", 14) in here
    assert ("calls", check_out, "shop.carts.Cart.close", 15) in here
    assert ("calls", remind, "shop.models.Document.save", 22) in here, "it is inherited"
    assert ("calls", remind, "shop.store.Store.close", 24) in here
    assert ("imports", "", "shop.store.open_store", 6) in here
    assert ("calls", check_out, "shop.models.Invoice", 11) in here, "it is an alias: Bill(number)"
    assert ("calls", check_out, "shop.prices.round_price", 12) in here, "it is an alias: rounded("
    assert ("elsewhere", "", "elsewhere:close", 9) in stated(found, "shop/log.py")
    models = stated(found, "shop/models.py")
    assert ("extends", "shop.models.Invoice", "shop.models.Document", 15) in models


def test_exact_references_count_columns_in_utf16_code_units() -> None:
    """`𝄞` is one character, two UTF-16 code units, and four UTF-8 bytes."""
    calls = stated(references_of("shop"), "shop/prices.py")
    assert ("calls", "shop.prices.currency", "shop.models.Invoice.total", 12) in calls
    assert ("calls", "shop.prices.names", "shop.carts.Cart.total", 16) in calls


def test_exact_references_of_a_typescript_index_follow_default_imports_and_constructors() -> None:
    here = stated(references_of("web"), "src/page.ts")
    page = "src/page#page"
    assert ("calls", page, "src/lib/money#format", 8) in here, "imported as `print`"
    assert ("calls", page, "src/lib/money#Bill", 6) in here
    assert ("calls", page, "src/lib/money#Bill.total", 8) in here
    assert ("calls", page, "src/lib/cart#Cart.total", 8) in here


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        (CHECKOUT, "def check_out", "\ndef check_out"),
        (CHECKOUT, "store.save(bill)", "store.keep(bill)"),
        (CHECKOUT, "bill = Bill(number)", "bill = Cart(number)"),
        (CHECKOUT, "𝄞", ""),
        (CHECKOUT, "import Invoice as Bill, Reminder", "import Remind as Bill, Document"),
    ],
)
def test_exact_references_ignore_a_file_that_changed(path: str, before: str, after: str) -> None:
    text = (PROJECTS / "shop" / path).read_text()
    found = references_of("shop", {path: text.replace(before, after, 1)})
    assert found.reports == [("index.scip", "8 documents read, 1 stale, ignored")]
    assert stated(found, path) == set()
    assert stated(found, "shop/prices.py") == stated(references_of("shop"), "shop/prices.py")


def test_exact_references_find_definitions_in_a_changed_file_by_name() -> None:
    text = (PROJECTS / "shop/shop/models.py").read_text()
    found = references_of("shop", {"shop/models.py": "# a new line\n" + text})
    assert stated(found, "shop/models.py") == set()
    here = stated(found, CHECKOUT)
    assert ("calls", "shop.checkout.check_out", "shop.models.Invoice.total", 14) in here
    renamed = references_of("shop", {"shop/models.py": text.replace("def total", "def sum_up")})
    targets = {target for _, _, target, _ in stated(renamed, CHECKOUT)}
    assert "shop.models.Invoice.total" not in targets


TEXT = "def f():\n    pass\n\n\nx = '€𝄞'; f()\n"
OCCURRENCES = [(0, 4, 5, "f().", 1), (4, 11, 12, "f().", 8)]


@pytest.mark.parametrize(("encoding", "column"), [(1, 15), (2, 11), (3, 10)])
def test_exact_references_read_each_position_encoding(encoding: int, column: int) -> None:
    occurrences = [(0, 4, 5, "f().", 1), (4, column, column + 1, "f().", 8)]
    found = references_of_made(Document("a.py", occurrences, encoding))
    assert stated(found, "a.py") == {("calls", "", "a.f", 5)}


@pytest.mark.parametrize("encoding", [1, 3])
def test_exact_references_of_another_position_encoding_are_stale(encoding: int) -> None:
    found = references_of_made(Document("a.py", OCCURRENCES, encoding))
    assert found.reports == [("index.scip", "1 document read, 1 stale, ignored")]


@pytest.mark.parametrize(("text", "stale"), [(TEXT, 0), (TEXT + "# later\n", 1)])
def test_exact_references_compare_the_text_in_the_index(text: str, stale: int) -> None:
    found = references_of_made(Document("a.py", OCCURRENCES, 2, text=text))
    assert found.reports == [("index.scip", f"1 document read, {stale} stale, ignored")]


@pytest.mark.parametrize(
    "path", ["../a.py", "/a.py", "b/../a.py", "b/../../a.py", "/etc/passwd", ""]
)
def test_exact_references_ignore_paths_that_leave_the_repository(path: str) -> None:
    found = references_of_made(Document(path, OCCURRENCES))
    assert found.documents == ()
    report = "0 documents read, 0 stale, ignored, 1 not among the indexed files"
    assert found.reports == [("index.scip", report)]


@pytest.mark.parametrize(
    ("index", "root"),
    [("back/index.scip", ""), ("index.scip", "file:///ci/back"), ("out/a.scip", "file:///x/back/")],
)
def test_exact_references_find_the_folder_of_a_subproject(index: str, root: str) -> None:
    data = index_of([Document("a.py", OCCURRENCES)], root)
    sources = read_sources({"back/a.py": TEXT, "front/a.py": TEXT})
    found = find_exact_references([ScipIndex.read(render_index(data, index))], sources)
    assert stated(found, "back/a.py") == {("calls", "", "back.a.f", 5)}
    assert stated(found, "front/a.py") == set()


def references_of_made(document: Document) -> ScipReferences:
    """Return the references of an index with one document, in a repository with one file."""
    index = ScipIndex.read(render_index(index_of([document]), "index.scip"))
    return find_exact_references([index], read_sources({"a.py": TEXT}))


def test_the_text_of_references_states_edges_and_has_no_unit() -> None:
    documents = {one.name: one for one in references_of("shop").documents}
    reading = read_document(render_document(documents[f"repo/{CHECKOUT}"]))
    assert reading.units == ()
    edges = build_relations(reading.facts, names="none").edges
    assert {(edge.kind, edge.source, edge.target, edge.line_start) for edge in edges} >= {
        ("calls", "shop.checkout.check_out", "shop.carts.Cart.total", 12),
        ("imports", "file:repo/shop/checkout.py", "shop.carts.Cart", 3),
    }
    assert {(edge.how, edge.confidence, edge.path) for edge in edges} == {("scip", 1.0, CHECKOUT)}
    assert len({edge.line_start for edge in edges if edge.target == "shop.models.Invoice"}) == 3


def test_a_masked_line_of_an_index_is_left_out() -> None:
    data = (PROJECTS / "shop" / "index.scip").read_bytes()
    lines = render_index(data, "index.scip").splitlines()
    places = [at for at, line in enumerate(lines) if line[0].isdigit()]
    lines[places[0]] = "12 ████ 9 0"
    lines[places[1]] = "1 2 3 999999"
    assert find_exact_references([ScipIndex.read("\n".join(lines))], sources_of("shop")).documents


def test_a_long_line_is_read_once_for_all_its_occurrences() -> None:
    """Encoding the line for each occurrence would exceed the time limit of a test."""
    count = 20_000
    text = "é = 1; " + "f(); " * count + "\ndef f():\n    pass\n"
    calls = [(0, 7 + 5 * at, 8 + 5 * at, "p/f().", 0) for at in range(count)]
    document = Document("a.py", [*calls, (1, 4, 5, "p/f().", 1)], encoding=2)
    index = ScipIndex.read(render_index(index_of([document]), "index.scip"))
    found = find_exact_references([index], read_sources({"a.py": text}))
    assert found.reports == [("index.scip", "1 document read, 0 stale, ignored")]
