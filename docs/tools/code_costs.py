"""Tables of code memory's costs, from its benchmark results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from docs.tools.tables import describe_origin, format_seconds, format_table

_Result = Mapping[str, Any]
_NOT_MEASURED = "Not measured yet.\n"
_ROUNDS = {"asked": "first time", "asked again": "repeated"}
_WALKS = {"question": "of a question", "relations, 5 steps": "of `code relations`, 5 steps"}


def build_code_costs_table(result: _Result) -> str:
    """Return the costs of a repository's syncs, and of walks within questions."""
    seconds = result["seconds"]
    syncs = format_table(
        ["sync, without imports", "time"],
        [
            ["everything is new", format_seconds(seconds["cold"])],
            ["nothing changed", format_seconds(seconds["noop"])],
            ["a commit of 10 files", format_seconds(seconds["commit of 10 files"])],
        ],
    )
    size = (
        f"{result['documents']:,} documents, {result['symbols']:,} definitions,"
        f" {result['edges']:,} relations.\n"
    )
    return (
        f"{syncs}\n{size}\n{_build_questions_table(result)}\n"
        f"{describe_origin({'rounds': 1, **result})}"
    )


def _build_questions_table(result: _Result) -> str:
    questions = result["questions"]
    if not _ROUNDS.keys() <= questions.keys():
        return _NOT_MEASURED
    walk = result["walk of depth 5 in ms"]
    columns = ["questions", "with the walk, p50", "p95", "search alone, p50", "p95", "ratio of p50"]
    rows = [
        [
            f"that name nothing, {title}",
            *_format_percentiles(questions[name]["walk and search"]),
            *_format_percentiles(questions[name]["search alone"]),
            f"{questions[name]['ratio']:.2f}",
        ]
        for name, title in _ROUNDS.items()
    ]
    rows += [
        [
            "relations alone, without a vector",
            *_format_percentiles(questions["named"]),
            "–",
            "–",
            "–",
        ],
        ["a walk of 5 steps", *_format_percentiles(walk), "–", "–", "–"],
    ]
    return format_table(columns, rows)


def build_code_scale_table(result: _Result) -> str:
    """Return the latencies of walks over a large tenant's relations."""
    ways = result["walks in ms"]
    rows = [
        [f"{title}, {way}", *_format_percentiles(percentiles[name])]
        for name, title in _WALKS.items()
        for way, percentiles in ways.items()
    ]
    table = format_table([f"walks over {result['edges']:,} relations", "p50", "p95"], rows)
    graph_facts = (
        f"In memory they take {result['memory of the graph in MB']:.0f} MB, load in"
        f" {format_seconds(result['seconds to load it'])}, and follow an edit within"
        f" {format_seconds(result['seconds to follow an edit'])}."
    )
    return f"{table}\n{graph_facts}\n\n{describe_origin({'rounds': 1, **result})}"


def build_reported_edits_table(result: _Result) -> str:
    """Return how soon an edit that a run reports is found."""
    row = [
        f"{result['trials']}, reported by {result['told by']}",
        *(format_seconds(result[name]) for name in ("p50", "p95", "max")),
    ]
    columns = ["commits of a file", "p50", "p95", "longest"]
    return f"{format_table(columns, [row])}\n{describe_origin({'rounds': 1, **result})}"


def _format_percentiles(percentiles: Mapping[str, float]) -> tuple[str, str]:
    return f"{percentiles['p50']:.1f} ms", f"{percentiles['p95']:.1f} ms"
