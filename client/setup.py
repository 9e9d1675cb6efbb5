"""Build rag_assets_client: the modules of rag_assets.client, and those that they import.

In a checkout the package is written again by each build, next to this file. A source distribution
contains it.
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
    """Write the package with the present content of its modules into a folder."""
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
    """Return the modules of rag_assets.client, and those that importing them imports."""
    folder = source_of(ROOT).parent
    rest = [ROOT, *(f"{ROOT}.{path.stem}" for path in folder.glob("[a-z]*.py"))]
    found: set[str] = set()
    while rest:
        if (module := rest.pop()) not in found:
            found.add(module)
            rest += imports(source_of(module))
    return found


def imports(source: Path) -> Iterator[str]:
    """Yield the modules of the project that a module imports when it is imported itself."""
    for node in ast.parse(source.read_text(encoding="utf-8")).body:
        package = (isinstance(node, ast.ImportFrom) and node.module) or ""
        if isinstance(node, ast.ImportFrom) and package.startswith("rag_assets."):
            names = [f"{package}.{alias.name}" for alias in node.names]
            modules = [name for name in names if source_of(name).is_file()]
            yield from modules
            if len(modules) < len(names):
                yield package


def source_of(module: str) -> Path:
    """Return the file of a module; one that does not exist if there is none."""
    path = SOURCES.joinpath(*module.split("."))
    package = path / "__init__.py"
    return package if package.is_file() else path.with_suffix(".py")


def is_package(source: Path) -> bool:
    """Whether a file is that of a package."""
    return source.name == "__init__.py"


def renamed(text: str) -> str:
    """Return a text with the names that modules have in the built package."""
    text = re.sub(r"\brag_assets\.client\b", PACKAGE, text)
    return re.sub(r"\brag_assets\.(?=[a-z_])", f"{SHARED}.", text)


if (SOURCES / "rag_assets").is_dir():
    write_package(HERE / PACKAGE)
setup()
