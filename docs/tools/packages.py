"""The table of packages on the architecture page: their sizes and imports."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from docs.tools.tables import format_table

PAGE = Path(__file__).resolve().parents[1] / "architecture.md"
ROOT = Path(__file__).resolve().parents[2] / "rag_assets"
_MARKED = re.compile(r"(<!-- packages -->\n).*?(<!-- end -->)", re.DOTALL)
_IMPORT = re.compile(r"^\s*(?:from|import) rag_assets\.([\w.]+)", re.MULTILINE)


def build_architecture_page() -> str:
    """Return the page with an up-to-date table."""
    table = _build_packages_table()
    return _MARKED.sub(
        lambda mark: f"{mark[1]}\n{table}\n{mark[2]}", PAGE.read_text(encoding="utf-8")
    )


def _build_packages_table() -> str:
    modules: dict[str, int] = defaultdict(int)
    lines: dict[str, int] = defaultdict(int)
    importers: dict[str, set[str]] = defaultdict(set)
    imported: dict[str, set[str]] = defaultdict(set)
    for name, text in _list_modules():
        package = _get_package(name)
        modules[package] += 1
        lines[package] += text.count("\n")
        for target in set(_IMPORT.findall(text)):
            if (other := _get_package(target)) != package:
                imported[package].add(target)
                importers[other].add(name)
    rows = [
        [f"`{one}`", *(f"{_round(number):,}" for number in numbers)]
        for one in sorted(modules)
        for numbers in [(modules[one], lines[one], len(importers[one]), len(imported[one]))]
    ]
    return format_table(["package", "modules", "lines", "imported by", "imports"], rows)


def _list_modules() -> Iterator[tuple[str, str]]:
    """Yield the dotted name below rag_assets and the text of each module in a package."""
    for package in ROOT.iterdir():  # rglob does not follow links
        for path in package.rglob("*.py") if package.is_dir() else [package]:
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if path.suffix == ".py" and name not in {"__init__", "systems.__init__"}:
                yield name, path.read_text("utf-8")


def _get_package(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "systems" else parts[0]


def _round(number: int) -> int:
    """Return a number with two significant digits, so that most commits leave the table alone."""
    step = 10 ** max(0, len(str(number)) - 2)
    return round(number / step) * step
