"""Parts that the generated tables share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

_USUAL_MACHINE = "2 cores of AMD EPYC, 25 GB, Python 3.11.7, Elasticsearch 9.5.3"
"""The machine that each page names at its start; its results need not repeat it."""
_LONG = 10
"""Seconds above which hundredths are omitted."""


def format_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Format a Markdown table; the first column is text, the others are numbers."""
    rule = ["---", *["---:"] * (len(columns) - 1)]
    lines = [columns, rule, *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def describe_origin(result: Mapping[str, Any]) -> str:
    """Describe a result's date, version, rounds and load, and its machine unless it is usual."""
    facts = result["machine"]
    server = facts["versions"]["elasticsearch server"]
    rounds = result["rounds"]
    machine = (
        f"{facts['cores']} cores of {facts['processor']}, {facts['memory_gb']:.0f} GB,"
        f" Python {facts['python']}, Elasticsearch {server}"
    )
    commit = result.get("commit")
    version = facts["versions"]["rag-assets"] + (f" at {commit}" if commit else "")
    return (
        f"Taken {result['taken']} with {version},"
        f" {rounds} {'round' if rounds == 1 else 'rounds (medians)'};"
        f"{'' if machine == _USUAL_MACHINE else f' {machine};'} load average before:"
        f" {facts['load_average'][0]}.\n"
    )


def compute_median(costs: Sequence[Mapping[str, Any]], field: str) -> float:
    """Return the median of one field of several measurements."""
    return median(cost[field] for cost in costs)


def format_seconds(value: float) -> str:
    """Format a time in seconds."""
    return f"{value:.2f} s" if value < _LONG else f"{value:.1f} s"
