"""Compare derived routes and columns of real Laravel applications with those Laravel makes.

    python -m benchmarks.code_truth --laravel CLONE CHECKOUT... [--name NAME]

CLONE is a clone of laravel/framework, a CHECKOUT the worktree of an application, as cloned. The
release of Laravel is the one in the application's composer.lock. Its providers, route files and
migrations are run by PHP, without its packages and controllers: only name applications whose code
you would run. `causes.yaml` explains the differences.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from benchmarks.code_truth.compare import (
    Comparison,
    column_names,
    compare,
    derived_columns,
    explained,
    route_names,
)
from benchmarks.code_truth.laravel import (
    Releases,
    Truth,
    routes_by_laravel,
    tables_by_laravel,
)
from benchmarks.code_truth.repository import Checkout, checkout
from benchmarks.measure import PROJECT, save
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.schema.tables import resolve_tables
from tests.unit.systems.code_memory.laravel.routes_truth import ours

WORK = PROJECT / ".local" / "benchmark-code-truth"


def main() -> None:
    """Compare and save the result."""
    options = _options()
    releases = Releases(options.laravel, WORK / "laravel")
    causes = YAML(typ="safe").load(Path(__file__).with_name("causes.yaml")) or {}
    applications = {}
    for root in options.checkouts:
        name = root.resolve().name
        applications[name], failed = compared(root.resolve(), releases, causes.get(name, {}))
        print(json.dumps({name: applications[name], "failed": failed}, indent=1))
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "applications": applications,
    }
    print(save(options.name, result))


def compared(
    root: Path, releases: Releases, causes: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Compare one application; return the figures, and what Laravel could not run, with reasons.

    Args:
        root: the application's worktree.
        releases: releases of Laravel.
        causes: causes of known differences, by pattern.
    """
    read = checkout(root)
    routes, columns = routes_by_laravel(root, releases), tables_by_laravel(root, releases)
    found = {
        "commit": read.commit,
        "routes": _routes(read, routes, causes),
        "columns": _columns(read, columns, causes),
    }
    return found, {**routes.failed, **columns.failed}


def _routes(read: Checkout, truth: Truth, causes: Mapping[str, str]) -> dict[str, Any]:
    derived = collect_routes(run_providers(read.files))
    mine = [ours(route) for route in derived.routes]
    guarded = compare(route_names(truth.told, middleware=True), route_names(mine, middleware=True))
    return {
        "laravel": truth.version,
        **_told(compare(route_names(truth.told), route_names(mine)), causes),
        "recall with middleware": round(guarded.recall, 4),
        "unresolved": len(derived.unresolved),
        "not run": len(truth.failed),
    }


def _columns(read: Checkout, truth: Truth, causes: Mapping[str, str]) -> dict[str, Any]:
    derived = resolve_tables(read.files)
    found = compare(column_names(truth.told), derived_columns(derived.tables))
    return {
        "laravel": truth.version,
        "tables": len(truth.told),
        **_told(found, causes),
        "not run": len(truth.failed),
    }


def _told(found: Comparison, causes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "true": found.true,
        "derived": found.found,
        "recall": round(found.recall, 4),
        "precision": round(found.precision, 4),
        "missed": explained(found.missed, causes),
        "wrong": explained(found.wrong, causes),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--laravel", type=Path, required=True, metavar="CLONE")
    parser.add_argument("--name", default="code-truth")
    return parser.parse_args()


if __name__ == "__main__":
    main()
