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
    compare_names,
    format_routes,
    group_by_cause,
    list_columns,
    list_derived_columns,
)
from benchmarks.code_truth.laravel import (
    Releases,
    Truth,
    read_laravel_routes,
    read_laravel_tables,
)
from benchmarks.code_truth.repository import Checkout, read_checkout
from benchmarks.measure import PROJECT, create_parser, save_result
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.schema.tables import resolve_tables
from tests.unit.systems.code_memory.laravel.routes_truth import ours

WORK = PROJECT / ".local" / "benchmark-code-truth"


def main() -> None:
    """Compare and save the result."""
    options = _parse_options()
    releases = Releases(options.laravel, WORK / "laravel")
    causes = YAML(typ="safe").load(Path(__file__).with_name("causes.yaml")) or {}
    applications = {}
    for root in options.checkouts:
        name = root.resolve().name
        applications[name], failed = compare_application(
            root.resolve(), releases, causes.get(name, {})
        )
        print(json.dumps({name: applications[name], "failed": failed}, indent=1))
    result = {
        "benchmark": options.name,
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "applications": applications,
    }
    print(save_result(options.name, result))


def compare_application(
    root: Path, releases: Releases, causes: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Compare one application; return the figures, and what Laravel could not run, with reasons.

    Args:
        root: the application's worktree.
        releases: releases of Laravel.
        causes: causes of known differences, by pattern.
    """
    checkout = read_checkout(root)
    routes, columns = read_laravel_routes(root, releases), read_laravel_tables(root, releases)
    figures = {
        "commit": checkout.commit,
        "routes": _compare_routes(checkout, routes, causes),
        "columns": _compare_columns(checkout, columns, causes),
    }
    return figures, {**routes.failed, **columns.failed}


def _compare_routes(checkout: Checkout, truth: Truth, causes: Mapping[str, str]) -> dict[str, Any]:
    derived = collect_routes(run_providers(checkout.files))
    own_routes = [ours(route) for route in derived.routes]
    guarded = compare_names(
        format_routes(truth.content, middleware=True), format_routes(own_routes, middleware=True)
    )
    return {
        "laravel": truth.version,
        **_as_json(compare_names(format_routes(truth.content), format_routes(own_routes)), causes),
        "recall with middleware": round(guarded.recall, 4),
        "unresolved": len(derived.unresolved),
        "not run": len(truth.failed),
    }


def _compare_columns(checkout: Checkout, truth: Truth, causes: Mapping[str, str]) -> dict[str, Any]:
    derived = resolve_tables(checkout.files)
    comparison = compare_names(list_columns(truth.content), list_derived_columns(derived.tables))
    return {
        "laravel": truth.version,
        "tables": len(truth.content),
        **_as_json(comparison, causes),
        "not run": len(truth.failed),
    }


def _as_json(comparison: Comparison, causes: Mapping[str, str]) -> dict[str, Any]:
    return {
        "true": comparison.true,
        "derived": comparison.derived,
        "recall": round(comparison.recall, 4),
        "precision": round(comparison.precision, 4),
        "missed": group_by_cause(comparison.missed, causes),
        "wrong": group_by_cause(comparison.wrong, causes),
    }


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("checkouts", nargs="+", type=Path, metavar="CHECKOUT")
    parser.add_argument("--laravel", type=Path, required=True, metavar="CLONE")
    parser.add_argument("--name", default="code-truth")
    return parser.parse_args()


if __name__ == "__main__":
    main()
