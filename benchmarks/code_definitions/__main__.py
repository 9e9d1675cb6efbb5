"""Compare exports of TypeScript with its compiler's, and definitions of Swift with a judge's.

    python -m benchmarks.code_definitions [--typescript CHECKOUT...] [--swift CHECKOUT]

TypeScript is installed once by npm into .local. The CHECKOUT of Swift is the project that
swift.yaml names. No code of a checkout is run.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.code_truth.compare import Comparison, compare_names
from benchmarks.code_truth.repository import read_commit
from benchmarks.measure import PROJECT, create_parser, save_result
from rag_assets.systems.code_memory.reading import read_code
from rag_assets.systems.code_memory.sources.git import GitConfig, GitSource

WORK = PROJECT / ".local" / "benchmark-code-definitions"
COMPILER: Final = "typescript@5.9.3"
_SCRIPTS: Final = frozenset({"text/x-typescript", "text/x-javascript"})
_PROPERTY: Final = re.compile(r"[^{(]*\b(?:var|let)\s")
_SWIFT_ROLES: Final = frozenset({"class", "type", "method", "function"})


def main() -> None:
    """Compare and save the result."""
    options = _parse_options()
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "typescript": {
            root.resolve().name: compare_exports(root.resolve()) for root in options.typescript
        },
        "swift": {root.resolve().name: compare_swift(root.resolve()) for root in options.swift},
    }
    print(json.dumps(result, indent=1))
    print(save_result(options.name, result))


def compare_exports(root: Path) -> dict[str, Any]:
    """Compare the exports of a repository's ES modules with the compiler's.

    Args:
        root: the worktree.
    """
    texts = dict(_read_texts(root, _SCRIPTS))
    true = list_compiler_exports(root, list(texts))
    derived = {path: list_exports(texts[path], "text/x-typescript") for path in true}
    return {
        "commit": read_commit(root),
        "modules": len(true),
        **_as_json(compare_names(_format_names(true), _format_names(derived))),
    }


def list_exports(text: str, media_type: str) -> list[str]:
    """Return the names that a module exports according to code memory."""
    facts = read_code(text, media_type).facts
    names = {
        str(fact.values["name"])
        for fact in facts
        if fact.kind == "exports" and fact.values["name"] != "export="
    }
    return sorted(names)


def list_compiler_exports(root: Path, paths: Sequence[str]) -> dict[str, list[str]]:
    """Return the names that each file exports according to TypeScript's compiler, by path.

    Args:
        root: the folder that paths are relative to.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    if not (WORK / "node_modules" / "typescript").exists():
        install = ["npm", "install", "--no-save", "--ignore-scripts", "--silent", COMPILER]
        subprocess.run(install, cwd=WORK, check=True)
    with TemporaryDirectory() as folder:
        paths_file = Path(folder) / "given.json"
        paths_file.write_text(json.dumps([str(root / path) for path in paths]), encoding="utf-8")
        script = Path(__file__).with_name("exports.mjs")
        command = ["node", str(script), str(paths_file)]
        process = subprocess.run(command, cwd=WORK, capture_output=True, text=True, check=True)
    exports_by_path: dict[str, list[str]] = json.loads(process.stdout)
    return {
        path: exports_by_path[str(root / path)]
        for path in paths
        if str(root / path) in exports_by_path
    }


def compare_swift(root: Path) -> dict[str, Any]:
    """Compare the types and functions of a Swift project with the judged list.

    Args:
        root: the worktree.
    """
    judged = YAML(typ="safe").load(Path(__file__).with_name("swift.yaml"))[root.name]
    texts = dict(_read_texts(root, frozenset({"text/x-swift"})))
    derived = {path: list_swift_definitions(texts[path]) for path in judged["files"]}
    return {
        "commit": judged["commit"],
        "files": len(derived),
        **_as_json(compare_names(_format_names(judged["files"]), _format_names(derived))),
    }


def list_swift_definitions(text: str) -> list[str]:
    """Return the types and functions that Swift code defines or extends, without duplicates."""
    facts = read_code(text, "text/x-swift").facts
    definitions = (
        fact
        for fact in facts
        if fact.kind == "declares"
        and fact.values["role"] in _SWIFT_ROLES
        and not _PROPERTY.match(text, fact.start, fact.end)
    )
    return sorted({fact.symbol.partition("(")[0] for fact in definitions})


def _read_texts(root: Path, types: frozenset[str]) -> Iterator[tuple[str, str]]:
    source = GitSource(GitConfig(name="repo", root=root))
    for file in source.list():
        if file.media_type in types:
            content = source.read(file.path, max_bytes=source.max_bytes)
            yield file.path, content.decode("utf-8", "replace")


def _format_names(names_by_path: Mapping[str, Sequence[str]]) -> list[str]:
    return [f"{path}: {name}" for path, names in names_by_path.items() for name in names]


def _as_json(comparison: Comparison) -> dict[str, Any]:
    return {
        "true": comparison.true,
        "recall": round(comparison.recall, 4),
        "precision": round(comparison.precision, 4),
        "missed": list(comparison.missed),
        "wrong": list(comparison.wrong),
    }


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("--typescript", nargs="*", type=Path, default=[], metavar="CHECKOUT")
    parser.add_argument("--swift", nargs="*", type=Path, default=[], metavar="CHECKOUT")
    parser.add_argument("--name", default="code-definitions")
    return parser.parse_args()


if __name__ == "__main__":
    main()
