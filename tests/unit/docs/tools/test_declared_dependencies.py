"""Every distribution that the code imports is declared in pyproject.toml."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Set
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
FOLDERS = ("rag_assets", "resources", "sensors", "checks")
NO_DISTRIBUTION = {"java", "org"}
"""Java packages, which JPype makes importable."""
PLUGINS = {"rag_assets/testing.py": "pytest"}
"""A plugin is imported by the program that it is for."""


def imports(tree: ast.AST) -> Iterator[str]:
    """Yield the modules that a file imports; `from a import b` yields `a.b`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            first = node.args[0]
            is_literal = isinstance(first, ast.Constant) and isinstance(first.value, str)
            if name == "import_module" and is_literal:
                yield str(first.value)


def normalized(requirement: str) -> str:
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


@cache
def installed_modules() -> Mapping[str, Set[str]]:
    """Return the distributions that contain each installed module, by its dotted name."""
    found: dict[str, set[str]] = {}
    for distribution in distributions():
        name = normalized(distribution.name)
        for line in (distribution.read_text("RECORD") or "").splitlines():
            file = line.partition(",")[0]
            if file.endswith((".py", ".so")):
                folder, _, last = file.rpartition("/")
                stem = last.partition(".")[0]
                path = folder if stem == "__init__" else f"{folder}/{stem}".lstrip("/")
                found.setdefault(path.replace("/", "."), set()).add(name)
    return found


def providers(imported: str, installed: Mapping[str, Set[str]]) -> Set[str]:
    """Return the distributions that contain an imported module.

    The last names may be attributes of a module. A distribution that is not installed, such as that
    of a large extra, is assumed to have its module's name.
    """
    names = imported.split(".")
    for end in range(len(names), 0, -1):
        if found := installed.get(".".join(names[:end])):
            return found
    return {normalized(names[0])}


def undeclared(
    source: str, declared: Set[str], installed: Mapping[str, Set[str]], known: Set[str]
) -> set[str]:
    """Return the distributions that a file imports but no dependency declares."""
    return {
        " or ".join(sorted(needed))
        for module in imports(ast.parse(source))
        if module.partition(".")[0] not in known
        if not (needed := providers(module, installed)) & declared
    }


@pytest.mark.slow
def test_imported_distributions_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [name for names in project["optional-dependencies"].values() for name in names]
    declared = {normalized(one) for one in (*project["dependencies"], *extras)}
    installed = installed_modules()
    known = {*sys.stdlib_module_names, "rag_assets", *NO_DISTRIBUTION}
    missing: dict[str, set[str]] = {}
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            path = str(file.relative_to(ROOT))
            plugin_of = {PLUGINS[path]} if path in PLUGINS else set()
            source = file.read_text(encoding="utf-8")
            if found := undeclared(source, declared, installed, known | plugin_of):
                missing[path] = found
    assert missing == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import google.auth", {"google-auth"}),
        ("from google.oauth2.service_account import Credentials", {"google-auth"}),
        ("from google import genai", set()),
        ("from google.genai import types", set()),
        ("def load():\n    importlib.import_module('torch')", {"torch"}),
        ("import_module('google.genai')\nimport_module(name)", set()),
        ("import json, pydantic_core._pydantic_core", {"pydantic-core"}),
    ],
)
def test_an_import_belongs_to_the_distribution_it_is_in(source: str, expected: set[str]) -> None:
    installed = {
        "google.auth": {"google-auth"},
        "google.oauth2.service_account": {"google-auth"},
        "google.genai": {"google-genai"},
        "google.genai.types": {"google-genai"},
        "pydantic_core._pydantic_core": {"pydantic-core"},
    }
    assert undeclared(source, {"google-genai"}, installed, {"json"}) == expected


@pytest.mark.slow
def test_installed_modules_are_found_by_their_files() -> None:
    installed = installed_modules()
    assert installed["google.auth"] == {"google-auth"}
    assert installed["google.genai"] == {"google-genai"}
    assert installed["pydantic_core._pydantic_core"] == {"pydantic-core"}
    assert "google" not in installed, "a namespace belongs to no distribution"
