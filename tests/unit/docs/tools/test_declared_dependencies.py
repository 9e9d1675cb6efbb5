"""Every distribution that the code imports is declared in pyproject.toml."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
FOLDERS = ("rag_assets", "resources", "sensors", "checks")
NO_DISTRIBUTION = {"java", "org"}
"""Java packages, which JPype makes importable."""
PLUGINS = {"rag_assets/testing.py": "pytest"}
"""A plugin is imported by the program that it is for."""


def imports(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the top-level modules that files import, each with the file."""
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                yield name, str(file.relative_to(ROOT))


def normalized(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def providers(module: str, installed: Mapping[str, list[str]]) -> set[str]:
    """Return the distributions that may provide a module; a namespace has several."""
    return {normalized(one) for one in installed.get(module.partition(".")[0], ())}


def test_imported_distributions_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [one for names in project["optional-dependencies"].values() for one in names]
    declared = {normalized(one) for one in (*project["dependencies"], *extras)}
    installed = packages_distributions()
    undeclared: dict[str, str] = {}
    known = {*sys.stdlib_module_names, "rag_assets", *NO_DISTRIBUTION}
    for folder in FOLDERS:
        for module, file in imports(ROOT / folder):
            top = module.partition(".")[0]
            if top in known or top == PLUGINS.get(file):
                continue
            if not providers(module, installed) & declared:
                undeclared[top] = file
    assert undeclared == {}
