"""Compare derived routes and columns of Django applications with Django's own.

    python -m benchmarks.django_truth NAME=PYTHON... [--name NAME]

NAME is an application of `applications.yaml`, PYTHON the interpreter of an environment in which its
package is installed. Django loads the application there with its settings; the derivation only
reads its files. Differences are counted by cause.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

from benchmarks.code_truth.compare import compare, explained
from benchmarks.measure import PROJECT, save
from rag_assets.systems.code_memory.django.urlconf import read_routes
from rag_assets.systems.code_memory.frameworks.definitions import get_framework
from rag_assets.systems.code_memory.frameworks.repository import File
from rag_assets.systems.code_memory.frameworks.tables import TableReader
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.django.project import facts, is_suffixed, written

HERE: Final = Path(__file__).parent
TRUTH: Final = PROJECT / "tests/unit/systems/code_memory/django/truth.py"
_PACKAGE: Final = (
    "import importlib, importlib.metadata, json, sys; name, package = sys.argv[1:];"
    "held = importlib.import_module(package).__file__;"
    "print(json.dumps([held, importlib.metadata.version(name)]))"
)


def main() -> None:
    """Compare and save the result."""
    options = _options()
    known = YAML(typ="safe").load(HERE / "applications.yaml")
    applications = {}
    for application in options.applications:
        name, _, python = application.partition("=")
        applications[name] = compared(name, known[name], Path(python).absolute())
        print(json.dumps({name: applications[name]}, indent=1))
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "applications": applications,
    }
    print(save(options.name, result))


def compared(name: str, about: Mapping[str, Any], python: Path) -> dict[str, Any]:
    """Compare the routes and columns of one application.

    Args:
        name: name of its distribution.
        about: its entry in `applications.yaml`.
        python: interpreter of the environment in which it is installed.
    """
    package = about.get("package", name)
    with tempfile.TemporaryDirectory() as folder:
        site = about.get("files", {})
        written(Path(folder), site)
        init, version = json.loads(_run(python, folder, "", "-c", _PACKAGE, name, package))
        printed = _run(python, folder, about["settings"], str(TRUTH))
        told = json.loads(printed[printed.index("{") :])
    files = _read(Path(init).parent, about.get("without", ()), site)
    causes = about.get("causes", {})
    return {
        "version": version,
        "routes": _shares(_told_routes(told, about), _routes(files, about), causes),
        "columns": _shares(_told_columns(told, package), _columns(files), causes),
    }


def _run(python: Path, folder: str, settings: str, *arguments: str) -> str:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": folder}
    return subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def _read(package: Path, without: list[str], site: Mapping[str, str]) -> list[FileFacts]:
    texts = {
        str(path.relative_to(package.parent)): path.read_text("utf-8")
        for path in sorted(package.rglob("*.py"))
    }
    kept = {path: text for path, text in texts.items() if not any(o in path for o in without)}
    return facts({**kept, **site})


def _told_routes(told: Any, about: Mapping[str, Any]) -> Iterator[str]:
    # The admin derives its routes from registered models: they are reported as unresolved, once.
    # A route with a format suffix repeats another route.
    admin = about.get("admin")
    for pattern, name, view, _ in told["routes"]:
        is_admin = admin is not None and pattern.startswith(admin)
        if not is_admin and not is_suffixed(pattern):
            yield f"{pattern} {name or '-'} {_last(view)}"


def _routes(files: list[FileFacts], about: Mapping[str, Any]) -> Iterator[str]:
    for route in read_routes(files, about.get("root", "")).routes:
        yield f"{route.pattern} {route.name or '-'} {_last(route.view.name)}"


def _last(name: str) -> str:
    """Return the last part of a dotted name, because packages re-export classes and functions."""
    return name.rpartition(".")[2] or "-"


def _told_columns(told: Any, package: str) -> Iterator[str]:
    apps = {app for name, (app, *_) in told["models"].items() if name.startswith(f"{package}.")}
    for table, (columns, _) in told["tables"].items():
        if table.partition("_")[0] in apps:
            yield from (f"{table}.{column}" for column in columns)


def _columns(files: list[FileFacts]) -> Iterator[str]:
    for table in TableReader(get_framework("django"), [File(file) for file in files]).tables():
        yield from (f"{table.name}.{column}" for column in table.columns)


def _shares(true: Iterable[str], found: Iterable[str], causes: Mapping[str, str]) -> Any:
    both = compare(true, found)
    sides = {"missed": both.missed, "wrong": both.wrong}
    return {
        "true": both.true,
        "derived": both.found,
        "recall": round(both.recall, 4),
        "precision": round(both.precision, 4),
        **{
            side: {cause: len(held) for cause, held in explained(names, causes).items()}
            for side, names in sides.items()
        },
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("applications", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--name", default="code-truth-django")
    return parser.parse_args()


if __name__ == "__main__":
    main()
