"""Tables about experience, from its benchmark results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import format_seconds, format_table

_ASKED = {"failure": "after failures", "task": "before tasks"}
_CATEGORIES = {
    "reworded": "the same, reworded",
    "two-solutions": "one problem, two solutions",
    "two-problems": "two problems, one solution",
    "number": "another number or unit",
    "identifier": "another name",
    "negation": "negated or reversed",
}

_Result = Mapping[str, Any]


def build_merging_table(result: _Result) -> str:
    """Return how many pairs of each kind were merged."""
    rows = [
        [name, str(found["pairs"]), str(found["near"]), str(found["merged"])]
        for category, name in _CATEGORIES.items()
        if (found := result["by_category"].get(category))
    ]
    columns = ["held-out pairs", "pairs", "near by their vectors", "merged"]
    told = "; ".join(
        f"{name}: precision {found['precision']:.3f}, recall {found['recall']:.2f},"
        f" {found['merged']} of {found['pairs']} pairs merged"
        for name, found in (
            ("Held-out pairs", result["held_out"]),
            ("pairs that the bounds were chosen by", result["chosen_on"]),
        )
    )
    bounds = result["bounds"]
    return (
        f"{format_table(columns, rows)}\nLeast cosine of problems {bounds['problem']:.2f}, of"
        f" solutions {bounds['solution']:.2f} ({result['model']}). {told}. "
        f"{_describe_origin(result)}\n"
    )


def build_experience_quality_table(result: _Result) -> str:
    """Return the recall of questions after failures and before tasks."""
    rows = [
        [
            _ASKED[kind],
            str(found["questions"]),
            f"{found['recall']:.2f}",
            f"{found['mrr']:.2f}",
            f"{found['threshold']:.2f}",
            f"{found['held_out']['kept']:.0%}",
            f"{found['held_out']['rejected']:.0%}",
        ]
        for kind, found in result["kinds"].items()
    ]
    columns = [
        *("asked", "questions", "recall@3", "MRR", "highest harmless cosine"),
        *("on the other half: answers kept", "others rejected"),
    ]
    return f"{format_table(columns, rows)}\n{_describe_origin(result)}\n"


def build_experience_costs_table(result: _Result) -> str:
    """Return the costs of captures, checkpoints, syncs and questions."""
    first, later = result["first_sync"], result["later_sync"]
    rate = (
        f"{result['entries_per_second']:.0f} entries a second, {first['cpu']:.0f} s of CPU,"
        f" {first['peak_mb']:.0f} MB"
    )
    count, more = f"{result['entries']:,}", result["later_entries"]
    rows = [
        ["captures", f"{result['captures_per_second']:.0f} a second"],
        [
            f"the request of a checkpoint of {count} entries",
            format_seconds(result["checkpoint_request_seconds"]),
        ],
        [f"the sync of {count} entries", f"{format_seconds(first['wall'])}, {rate}"],
        [
            f"the sync of {more} more",
            f"{format_seconds(later['wall'])}, {later['peak_mb']:.0f} MB",
        ],
        [
            "a look for checkpoints, of all tenants",
            _format_percentiles(result["checkpoints_tick_ms"]),
        ],
        ["whether the tenant is due, once a minute", _format_percentiles(result["tick_ms"])],
        ["a question after a failure", _format_percentiles(result["question_ms"])],
    ]
    return f"{format_table(['what', 'cost'], rows)}\n{_describe_origin(result)}\n"


def _format_percentiles(found: Mapping[str, float]) -> str:
    return f"p50 {found['p50']:.0f} ms, p95 {found['p95']:.0f} ms"


def _describe_origin(result: _Result) -> str:
    facts = result["machine"]
    return (
        f"Taken {result['taken']}; {facts['cores']} cores of {facts['processor']},"
        f" {facts['memory_gb']:.0f} GB."
    )
