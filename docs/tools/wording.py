"""Refuse wording that readers of this project had to read twice, and stale names in docstrings.

python -m docs.tools.wording [FOLDER...]

A pattern is here only if no place in the code needs it. CONTRIBUTING.md has the rules for what a
pattern cannot see.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOTS: Final = (
    "rag_assets",
    "resources",
    "sensors",
    "checks",
    "client",
    "docs/tools",
    "benchmarks",
    "examples",
    "tests",
)

SAMPLES: Final = {"migrations", "samples", "indexed"}
"""Folders whose files are data, or are never changed."""

PHRASES: Final = {
    r"\b(?:told|telling) (?!apart)": "name the fact: 'the reported path', 'report the error'",
    r"\blikewise\b": "repeat the verb, or join the two sentences",
    r"\banew\b": "again",
    r"\bbeside\b": "next to, in addition to, instead of: choose one",
    r"\bhangs? on\b": "depends on",
    r"\b(?:wholly|surely|hardly)\b": "completely, certainly, rarely; or leave it out",
    r"\bbegun\b": "started",
    r"(?<!there )\bis no (?!longer|more|less|better)\w": "negate the verb: 'is not a number'",
    r"^(?:Of|What|Whose|Where) ": "start with a verb or a noun",
}
"""Patterns that docstrings may not contain, each with what to write instead."""

NAMES: Final = {
    "anew": "a flag with its verb: relist, reset",
    "begun": "started, start_nodes",
    "beside": "a noun: other_build, for_superseded_build",
    "told": "reported, known",
}
"""Names that no function, class, parameter or attribute may have, each with better ones."""

_ARGUMENTS: Final = re.compile(r"^Args:\n((?: {4}.*\n?|\n)+)", re.MULTILINE)
_DOCUMENTED: Final = re.compile(r"^ {4}(\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)


def main() -> int:
    """Print each refused place; return 1 if there is any."""
    roots = sys.argv[1:] or ROOTS
    places = [
        place for root in roots for path in list_python_files(root) for place in find_refused(path)
    ]
    for place in places:
        sys.stderr.write(f"{place}\n")
    return int(bool(places))


def list_python_files(root: str) -> Iterator[Path]:
    """Yield the Python files in a folder, without those in SAMPLES."""
    for path in sorted(Path(root).rglob("*.py")):
        if SAMPLES.isdisjoint(path.parts):
            yield path


def find_refused(path: Path) -> Iterator[str]:
    """Yield path, pattern and advice for each refused phrase or name of a file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for name in _list_names(node):
            if (advice := NAMES.get(name.strip("_"))) is not None:
                yield f"{path}:{_get_line(node)}: the name `{name}`: use {advice}"
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            for pattern, advice in PHRASES.items():
                if (match := re.search(pattern, text, re.IGNORECASE)) is not None:
                    yield f"{path}:{_get_line(node)}: `{match[0].strip()}` in a docstring: {advice}"
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in _find_unknown_arguments(node):
                yield f"{path}:{_get_line(node)}: `{node.name}` has no parameter `{name}`"


def _find_unknown_arguments(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the arguments that a docstring documents but the function does not have."""
    section = _ARGUMENTS.search(ast.get_docstring(function) or "")
    lines = _DOCUMENTED.findall(section[1]) if section else []
    documented = {name.strip(" *") for line in lines for name in line.split(",")}
    return documented - {one.arg for one in ast.walk(function.args) if isinstance(one, ast.arg)}


def _list_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _get_line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


if __name__ == "__main__":
    sys.exit(main())
