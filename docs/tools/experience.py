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
        [name, str(figures["pairs"]), str(figures["near"]), str(figures["merged"])]
        for category, name in _CATEGORIES.items()
        if (figures := result["by_category"].get(category))
    ]
    columns = ["held-out pairs", "pairs", "near by their vectors", "merged"]
    summary = "; ".join(
        f"{name}: precision {figures['precision']:.3f}, recall {figures['recall']:.2f},"
        f" {figures['merged']} of {figures['pairs']} pairs merged"
        for name, figures in (
            ("Held-out pairs", result["held_out"]),
            ("pairs that the bounds were chosen by", result["chosen_on"]),
        )
    )
    bounds = result["bounds"]
    return (
        f"{format_table(columns, rows)}\nLeast cosine of problems {bounds['problem']:.2f}, of"
        f" solutions {bounds['solution']:.2f} ({result['model']}). {summary}. "
        f"{_describe_origin(result)}\n"
    )


def build_experience_quality_table(result: _Result) -> str:
    """Return the recall of questions after failures and before tasks."""
    rows = [
        [
            _ASKED[kind],
            str(figures["questions"]),
            f"{figures['recall']:.2f}",
            f"{figures['mrr']:.2f}",
            f"{figures['threshold']:.2f}",
            f"{figures['held_out']['kept']:.0%}",
            f"{figures['held_out']['rejected']:.0%}",
        ]
        for kind, figures in result["kinds"].items()
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


def _format_percentiles(percentiles: Mapping[str, float]) -> str:
    return f"p50 {percentiles['p50']:.0f} ms, p95 {percentiles['p95']:.0f} ms"


def _describe_origin(result: _Result) -> str:
    facts = result["machine"]
    return (
        f"Taken {result['taken']}; {facts['cores']} cores of {facts['processor']},"
        f" {facts['memory_gb']:.0f} GB."
    )
