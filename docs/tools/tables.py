"""Parts of pages that several tables have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

_LONG = 10
"""Seconds from which hundredths are insignificant."""


def as_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    lines = [columns, rule, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def origin(result: Mapping[str, Any]) -> str:
    """When, how often and on what a result was taken."""
    facts = result["machine"]
    server = facts["versions"]["elasticsearch server"]
    rounds = result["rounds"]
    return (
        f"Taken {result['taken']}, {rounds} {'round' if rounds == 1 else 'rounds (medians)'};"
        f" {facts['cores']} cores of {facts['processor']}, {facts['memory_gb']:.0f} GB,"
        f" Python {facts['python']}, Elasticsearch {server}; load average before:"
        f" {facts['load_average'][0]}.\n"
    )


def median_of(costs: Sequence[Mapping[str, Any]], field: str) -> float:
    """Of one field of several measurements."""
    return median(cost[field] for cost in costs)


def in_seconds(value: float) -> str:
    """A time."""
    return f"{value:.2f} s" if value < _LONG else f"{value:.1f} s"
