"""The table of the trial of a living index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import describe_origin, format_seconds, format_table

_KINDS = {
    "publish": "publications",
    "rollback": "rollbacks",
    "rollback --now": "rollbacks with `--now`",
}


def build_living_table(result: Mapping[str, Any]) -> str:
    """Return latencies at rest and during the trial, durations of moves, and every fault."""
    rows = [
        [name, *(f"{result[part][at]:.1f} ms" for at in ("p50", "p95", "p99", "max"))]
        for name, part in (("at rest", "at_rest_ms"), ("during the trial", "moving_ms"))
    ]
    columns = [f"{result['rate']:.0f} searches a second", "p50", "p95", "p99", "longest"]
    moves = [
        [name, str(len(seconds)), format_seconds(min(seconds)), format_seconds(max(seconds))]
        for kind, name in _KINDS.items()
        if (seconds := [m["seconds"] for m in result["moves"] if m["kind"] == kind])
    ]
    edits = result["edit_seconds"]
    counted = (
        f"{result['questions']:,} questions in all modes, answered by {len(result['generations'])}"
        f" builds; {result['edits']} edits, found after {format_seconds(edits['median'])} (median),"
        f" {format_seconds(edits['max'])} at most; {result['deletions']} deletions. p95 was"
        f" {result['p95_ratio']:.2f} times the p95 at rest."
    )
    faults = result["faults"]
    violations = "".join(
        f"- {fault}: {count}, as in {example}\n" for fault, (count, example, *_) in faults.items()
    )
    verdict = f"Violated:\n\n{violations}" if faults else "All conditions held.\n"
    return (
        f"{format_table(columns, rows)}\n"
        f"{format_table(['', 'how many', 'shortest', 'longest'], moves)}\n"
        f"{counted}\n\n{verdict}\n{describe_origin(result)}"
    )
