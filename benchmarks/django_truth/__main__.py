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

from benchmarks.code_truth.compare import compare_names, group_by_cause
from benchmarks.measure import PROJECT, create_parser, save_result
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
    options = _parse_options()
    entries = YAML(typ="safe").load(HERE / "applications.yaml")
    applications = {}
    for application in options.applications:
        name, _, python = application.partition("=")
        applications[name] = compare_application(name, entries[name], Path(python).absolute())
        print(json.dumps({name: applications[name]}, indent=1))
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "applications": applications,
    }
    print(save_result(options.name, result))


def compare_application(name: str, entry: Mapping[str, Any], python: Path) -> dict[str, Any]:
    """Compare the routes and columns of one application.

    Args:
        name: name of its distribution.
        entry: its entry in `applications.yaml`.
        python: interpreter of the environment in which it is installed.
    """
    package = entry.get("package", name)
    with tempfile.TemporaryDirectory() as folder:
        site = entry.get("files", {})
        written(Path(folder), site)
        init, version = json.loads(_run_python(python, folder, "", "-c", _PACKAGE, name, package))
        printed = _run_python(python, folder, entry["settings"], str(TRUTH))
        django = json.loads(printed[printed.index("{") :])
    files = _read_files(Path(init).parent, entry.get("without", ()), site)
    causes = entry.get("causes", {})
    return {
        "version": version,
        "routes": _summarize(
            _list_django_routes(django, entry), _list_derived_routes(files, entry), causes
        ),
        "columns": _summarize(
            _list_django_columns(django, package), _list_derived_columns(files), causes
        ),
    }


def _run_python(python: Path, folder: str, settings: str, *arguments: str) -> str:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings, "PYTHONPATH": folder}
    return subprocess.run(
        [python, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def _read_files(package: Path, without: list[str], site: Mapping[str, str]) -> list[FileFacts]:
    texts = {
        str(path.relative_to(package.parent)): path.read_text("utf-8")
        for path in sorted(package.rglob("*.py"))
    }
    included = {path: text for path, text in texts.items() if not any(o in path for o in without)}
    return facts({**included, **site})


def _list_django_routes(django: Any, entry: Mapping[str, Any]) -> Iterator[str]:
    # The admin derives its routes from registered models: they are reported as unresolved, once.
    # A route with a format suffix repeats another route.
    admin = entry.get("admin")
    for pattern, name, view, _ in django["routes"]:
        is_admin = admin is not None and pattern.startswith(admin)
        if not is_admin and not is_suffixed(pattern):
            yield f"{pattern} {name or '-'} {_take_last_part(view)}"


def _list_derived_routes(files: list[FileFacts], entry: Mapping[str, Any]) -> Iterator[str]:
    for route in read_routes(files, entry.get("root", "")).routes:
        yield f"{route.pattern} {route.name or '-'} {_take_last_part(route.view.name)}"


def _take_last_part(name: str) -> str:
    """Return the last part of a dotted name, because packages re-export classes and functions."""
    return name.rpartition(".")[2] or "-"


def _list_django_columns(django: Any, package: str) -> Iterator[str]:
    apps = {app for name, (app, *_) in django["models"].items() if name.startswith(f"{package}.")}
    for table, (columns, _) in django["tables"].items():
        if table.partition("_")[0] in apps:
            yield from (f"{table}.{column}" for column in columns)


def _list_derived_columns(files: list[FileFacts]) -> Iterator[str]:
    for table in TableReader(get_framework("django"), [File(file) for file in files]).list_tables():
        yield from (f"{table.name}.{column}" for column in table.columns)


def _summarize(true: Iterable[str], derived: Iterable[str], causes: Mapping[str, str]) -> Any:
    comparison = compare_names(true, derived)
    sides = {"missed": comparison.missed, "wrong": comparison.wrong}
    return {
        "true": comparison.true,
        "derived": comparison.derived,
        "recall": round(comparison.recall, 4),
        "precision": round(comparison.precision, 4),
        **{
            side: {
                cause: len(differences)
                for cause, differences in group_by_cause(names, causes).items()
            }
            for side, names in sides.items()
        },
    }


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("applications", nargs="+", metavar="NAME=PYTHON")
    parser.add_argument("--name", default="code-truth-django")
    return parser.parse_args()


if __name__ == "__main__":
    main()
