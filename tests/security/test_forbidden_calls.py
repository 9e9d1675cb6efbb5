"""No module calls functions that execute text, or create objects that a text names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("rag_assets", "resources", "sensors", "checks")
FORBIDDEN_CALLS = {"eval", "exec", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load"}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "xml", "telnetlib"}
SUSPECT = re.compile(
    r"\b(?:eval|exec|system|popen|yaml|shell|random|{})\b".format("|".join(FORBIDDEN_MODULES))
)
"""Words without which a module has none of these: parsing all of them takes ten seconds."""
USES_RANDOM = {
    "rag_assets/models/transport/retries.py",
    "rag_assets/runtime/net.py",
    "rag_assets/search/scoring.py",
}
"""Pauses between attempts, free ports and samples: nothing that must not be guessed."""


def violations(tree: ast.AST) -> Iterator[str]:
    """Yield the forbidden calls and imports of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            if (name := ast.unparse(node.func)) in FORBIDDEN_CALLS:
                yield name
            if any(k.arg == "shell" and ast.unparse(k.value) != "False" for k in node.keywords):
                yield "shell"
        elif isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.split(".")[0] in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in (
            FORBIDDEN_MODULES
        ):
            yield str(node.module)


@pytest.mark.slow
def test_no_module_evaluates_unpickles_or_uses_a_shell() -> None:
    modules = [path for name in FOLDERS for path in (ROOT / name).rglob("*.py")]
    assert len(modules) > 700
    found: dict[str, list[str]] = {}
    uses_random = set()
    for path in modules:
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        if SUSPECT.search(text) is None:
            continue
        tree = ast.parse(text)
        if calls := list(violations(tree)):
            found[name] = calls
        imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
        imported |= {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
        if imported & {"random", "numpy.random"}:
            uses_random.add(name)
    assert found == {}
    assert uses_random == USES_RANDOM


@pytest.mark.parametrize(
    "line",
    ["eval(text)", "run(text, shell=True)", "import pickle", "from xml.etree import ElementTree"],
)
def test_each_kind_would_be_found(line: str) -> None:
    assert SUSPECT.search(line)
    assert list(violations(ast.parse(line)))
