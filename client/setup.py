"""Builds rag_assets_client from the modules of rag_assets.client and the modules that they import.

In a checkout, each build writes the package next to this file. A source distribution contains it.
"""

from __future__ import annotations

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from setuptools import setup

HERE = Path(__file__).resolve().parent
SOURCES = HERE.parent
ROOT = "rag_assets.client"
PACKAGE = "rag_assets_client"
SHARED = f"{PACKAGE}._shared"


def write_package(target: Path) -> None:
    """Write the package into a folder, from the current content of its modules."""
    shutil.rmtree(target, ignore_errors=True)
    for module in sorted(find_modules()):
        source = source_of(module)
        name = renamed(module).removeprefix(PACKAGE).replace(".", "/").lstrip("/")
        file = target / name / "__init__.py" if is_package(source) else target / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(renamed(source.read_text(encoding="utf-8")), encoding="utf-8")
    for folder in [path for path in target.rglob("*") if path.is_dir()]:
        (folder / "__init__.py").touch()
    (target / "py.typed").touch()


def find_modules() -> set[str]:
    """Return the modules of rag_assets.client, and all modules that they import."""
    folder = source_of(ROOT).parent
    rest = [ROOT, *(f"{ROOT}.{path.stem}" for path in folder.glob("[a-z]*.py"))]
    found: set[str] = set()
    while rest:
        if (module := rest.pop()) not in found:
            found.add(module)
            rest += imports(source_of(module))
    return found


def imports(source: Path) -> Iterator[str]:
    """Yield the project's modules that a module imports at its top level."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        package = (isinstance(node, ast.ImportFrom) and node.module) or ""
        if isinstance(node, ast.ImportFrom) and package.startswith("rag_assets."):
            names = [f"{package}.{alias.name}" for alias in node.names]
            modules = [name for name in names if source_of(name).is_file()]
            yield from modules
            if len(modules) < len(names):
                yield package


def source_of(module: str) -> Path:
    """Return the path of a module's file, which may not exist."""
    path = SOURCES.joinpath(*module.split("."))
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


def is_package(source: Path) -> bool:
    """Return whether a file is the `__init__.py` of a package."""
    return source.name == "__init__.py"


def renamed(text: str) -> str:
    """Replace the names of modules in a text by their names in the built package."""
    text = re.sub(r"\brag_assets\.client\b", PACKAGE, text)
    return re.sub(r"\brag_assets\.(?=[a-z_])", f"{SHARED}.", text)


if (SOURCES / "rag_assets").is_dir():
    write_package(HERE / PACKAGE)
setup()
