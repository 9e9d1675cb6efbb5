"""Benchmarks run rarely, so their imports are compared with the code that they import from."""

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks.measure import PROJECT

FILES = sorted((PROJECT / "benchmarks").rglob("*.py"))


@pytest.mark.slow
def test_names_that_benchmarks_import_exist() -> None:
    missing = [
        f"{path.relative_to(PROJECT)}: {module}.{name}"
        for path in FILES
        for module, name in list_imports(path)
        if not has_name(module, name)
    ]
    assert missing == []


def list_imports(path: Path) -> Iterator[tuple[str, str]]:
    """Yield module and name of a file's imports from rag_assets."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("rag_assets"):
            yield from ((str(node.module), alias.name) for alias in node.names)


def has_name(module: str, name: str) -> bool:
    """Return whether a module has an attribute or a submodule of this name."""
    imported = import_module(module)
    if hasattr(imported, name):
        return True
    return hasattr(imported, "__path__") and find_spec(f"{module}.{name}") is not None
