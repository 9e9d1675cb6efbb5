"""Definitions and imports of real code equal those of `ast`, with their lines."""

import ast
import json
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import pydantic
import pytest
import sqlalchemy

from rag_assets.systems.code_memory.languages.python.facts import read
from tests.unit.systems.code_memory.languages.readers import assert_units_cover

FOLDERS = {
    "json": Path(json.__file__).parent,
    "pydantic": Path(pydantic.__file__).parent,
    "sqlalchemy": Path(sqlalchemy.__file__).parent / "orm",
}


def definitions(tree: ast.AST) -> Iterator[tuple[str, int, int | None]]:
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        for child in ast.iter_child_nodes(node):
            inner = prefix
            if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield prefix + child.name, child.lineno, child.end_lineno
                inner = f"{prefix}{child.name}."
            todo.append((child, inner))


def imports(tree: ast.AST) -> Iterator[tuple[str, str, int, bool]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                yield one.name, one.asname or one.name.partition(".")[0], 0, False
        elif isinstance(node, ast.ImportFrom):
            for one in node.names:
                name = f"{node.module}.{one.name}" if node.module else one.name
                yield name, one.asname or one.name, node.level, True


def differences(text: str) -> list[object]:
    tree = ast.parse(text)
    found = read(text)
    starts = [0, *(at + 1 for at, mark in enumerate(text) if mark == "\n")]
    declared = {
        (fact.symbol, bisect_right(starts, fact.start), bisect_right(starts, fact.end - 1))
        for fact in found.facts
        if fact.kind == "declares"
    }
    values = [fact.values for fact in found.facts if fact.kind == "imports"]
    imported = sorted((v["name"], v["alias"], v["level"], v["member"]) for v in values)
    assert_units_cover(text, found)
    wrong: list[object] = [*(declared ^ set(definitions(tree)))]
    wrong += [] if imported == sorted(imports(tree)) else [imported]
    return wrong + list(found.notes)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS.values(), ids=list(FOLDERS))
def test_real_code_is_read_as_ast_reads_it(folder: Path) -> None:
    paths = sorted(folder.rglob("*.py"))
    wrong = {str(path): found for path in paths if (found := differences(path.read_text("utf-8")))}
    assert len(paths) >= 5
    assert not wrong


def test_a_file_with_errors_keeps_its_definitions() -> None:
    text = "import os\n\nclass A:\n    def f(self):\n        return (1,\n"
    text += "\ndef g(:\n    pass\n\ndef h(): ...\n"
    found = read(text)
    assert found.notes == ("parts of the file could not be parsed as Python",)
    assert "A" in {fact.symbol for fact in found.facts if fact.kind == "declares"}
    assert "os" in {fact.values["name"] for fact in found.facts if fact.kind == "imports"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "x = " + "-" * 100_000 + "1",
        "x = " + "a + " * 50_000 + "a  # django",
        "# django\nurlpatterns = " + "[" * 50_000 + "]" * 50_000,
        "".join(f"{'  ' * depth}def f{depth}():\n" for depth in range(300)) + "  " * 300 + "pass",
        "x = '" + "a" * 5_000_000 + "'",
        "class A(B): pass\nclass B(A): pass\n" * 2_000,
    ],
    ids=["brackets", "signs", "sum", "lists", "functions", "line", "classes"],
)
def test_hostile_text_is_read(text: str) -> None:
    found = read(text)
    assert found.units[-1].end == len(text.rstrip())
