"""The tables about code memory, from what its benchmarks found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from docs.tools.tables import as_table

_Result = Mapping[str, Any]
_SHOWN = 12
"""Digits of a commit's id."""


def code_truth_table(result: _Result) -> str:
    """Routes and columns of applications as Laravel and as rag-assets have them."""
    rows = [
        [
            f"{name} at {found['commit'][:_SHOWN]}, Laravel {found['routes']['laravel']}",
            *(_shares(found["routes"])),
            *(_shares(found["columns"])),
        ]
        for name, found in result["applications"].items()
    ]
    columns = ["application", "routes", "recall", "precision", "columns", "recall", "precision"]
    causes = "".join(f"- {line}\n" for line in _causes(result))
    return f"{as_table(columns, rows)}\n{causes}\nTaken {result['taken']}.\n"


def _shares(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['true']:,}"
    yield f"{found['recall']:.3f}"
    yield f"{found['precision']:.3f}"


def _causes(result: _Result) -> Iterator[str]:
    for name, found in result["applications"].items():
        for what in ("routes", "columns"):
            for side in ("missed", "wrong"):
                for cause, names in found[what][side].items():
                    yield f"{name}: {len(names)} {what} {_SIDES[side]}: {cause}"


_SIDES = {"missed": "not derived", "wrong": "not Laravel's"}
